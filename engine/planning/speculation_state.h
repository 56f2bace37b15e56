#pragma once
// The statistics of speculation for a pair of models on a device: costs, acceptance, calibration. They outlive replies.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "engine/speculation/controller.h"
#include "engine/speculation/cost_policy.h"

namespace canopy {

/// What the statistics need to know of the pair.
struct PairFacts {
  uint32_t block_size = 0;  // rows of the drafter's pass
  /// The target's roofline on this device, without corrections by measured passes; asked for once, when it is needed,
  /// as the device may have to be measured for it.
  std::function<Roofline()> roofline;
  /// Recordings of passes that target and drafter have made; empty: none are ever made.
  std::function<uint64_t()> recordings;
};

class SpeculationState {
 public:
  /// `table` as it was measured, possibly empty; where it is silent the roofline of the target stands in. Throws
  /// bad_input for a block size below 2.
  SpeculationState(PairFacts pair, CostTable table);

  /// Predicts by this policy from now on. What was learnt under another one is forgotten; the table stays.
  void use(CostPolicy policy);
  CostPolicy policy() const { return policy_; }
  /// A newer table, e.g. of a longer calibration. What was learnt of acceptance stays.
  void replace(CostTable table);
  /// Where a round adds to them, its times are not those of such rounds.
  uint64_t recordings() const { return pair_.recordings ? pair_.recordings() : 0; }
  /// Whether use() was called, by the first reply of a mode with a draft.
  bool is_started() const { return started_; }

  uint32_t block_size() const { return pair_.block_size; }

  // What passes cost is worked out when it is first asked for: fixed modes need the controller alone, and are not to
  // wait while the device is measured.
  Controller& controller() { return controller_; }
  const Controller& controller() const { return controller_; }
  ObservedCost& cost();
  bool is_priced() const { return cost_ != nullptr; }
  const CostTable& table() const { return table_; }
  /// The table with what rounds took worked in; nothing where they taught nothing of it.
  std::optional<CostTable> refreshed_table() const {
    return cost_ == nullptr ? std::nullopt : cost_->refreshed_table();
  }
  /// The target's roofline on this device, without corrections by measured passes.
  const Roofline& roofline();

  /// The table, shared by all recordings of it.
  std::shared_ptr<const CostTable> shared_table() const;
  /// What was learnt so far, of acceptance and, where costs are worked out, of them. One that reads must have been made
  /// with the same block size, roofline and table, and use the same policy.
  void archive(StateArchive& archive);

  /// For tests and what-ifs: rounds count as taking the time that this says, whatever the clock says. It must outlive
  /// the state; null: the clock's.
  void run_on(const PassCost* times) { times_ = times; }
  const PassCost* times() const { return times_; }

  /// Tokens per second of autoregressive decoding behind so many positions, by the table; 0 where nothing was measured.
  double ar_tokens_per_second(uint32_t context) const;

 private:
  void price();

  PairFacts pair_;
  std::optional<Roofline> roofline_;
  CostTable table_;
  CostPolicy policy_ = CostPolicy::measured;
  std::unique_ptr<ObservedCost> cost_;
  Controller controller_;  // under policy_
  bool started_ = false;
  const PassCost* times_ = nullptr;
  mutable std::shared_ptr<const CostTable> shared_table_;  // a copy of table_, once it was asked for
};

/// How a policy chooses: those of the paper by its objective, and they know no calibration.
ControllerOptions controller_options(CostPolicy policy);

}  // namespace canopy

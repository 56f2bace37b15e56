#pragma once
// The statistics of speculation for a pair of models on a device: costs, acceptance, calibration. They outlive replies.

#include <memory>
#include <optional>

#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/speculation/controller.h"
#include "engine/speculation/cost_policy.h"

namespace canopy {

class SpeculationState {
 public:
  /// `table` as it was measured, possibly empty; where it is silent the roofline of the target stands in, for which the
  /// device is measured (a second) as soon as it is needed. Model and drafter must outlive the state.
  SpeculationState(const Model& target, const Drafter& drafter, CostTable table);

  /// Predicts by this policy from now on. What was learnt under another one is forgotten; the table stays.
  void use(CostPolicy policy);
  CostPolicy policy() const { return policy_; }
  /// A newer table, e.g. of a longer calibration. What was learnt of acceptance stays.
  void replace(CostTable table);
  /// Recordings that target and drafter have made: where a round adds to them, its times are not those of such rounds.
  uint64_t recordings() const { return target_.recordings() + drafter_.recordings(); }
  /// Whether use() was called, by the first reply of a mode with a draft.
  bool is_started() const { return started_; }

  // What passes cost is worked out when it is first asked for: fixed modes need the controller alone, and are not to
  // wait while the device is measured.
  Controller& controller() { return controller_; }
  ObservedCost& cost();
  const CostTable& table() const { return table_; }
  /// The table with what rounds took worked in; nothing where they taught nothing of it.
  std::optional<CostTable> refreshed_table() const {
    return cost_ == nullptr ? std::nullopt : cost_->refreshed_table();
  }
  /// The target's roofline on this device, without corrections by measured passes.
  const Roofline& roofline();

  /// Tokens per second of autoregressive decoding behind so many positions, by the table; 0 where nothing was measured.
  double ar_tokens_per_second(uint32_t context) const;

 private:
  void price();

  const Model& target_;
  const Drafter& drafter_;
  std::optional<Roofline> roofline_;
  CostTable table_;
  CostPolicy policy_ = CostPolicy::measured;
  std::unique_ptr<ObservedCost> cost_;
  Controller controller_;  // under policy_
  bool started_ = false;
};

/// The sizes of the target that its roofline depends on.
ModelShape model_shape(const Model& model);

}  // namespace canopy

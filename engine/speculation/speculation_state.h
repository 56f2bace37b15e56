#pragma once
// The statistics of speculation for a pair of models on a device, which outlive replies: costs, acceptance,
// calibration. And the record of how they stood when a reply began, from which a recording of it is run again
// (docs/traces.md).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/speculation/controller.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/roofline.h"

namespace canopy {

// The records that a re-run of a reply needs beside its rounds: how drafting stood when it began, and where its drafts
// come from.

/// What was known and allowed when the first round of a reply began.
struct TraceDrafting {
  uint32_t rules = 0;           // controller_rules of the program that recorded
  uint32_t block = 0;           // rows of the drafter's pass; 0: there was no drafter
  uint32_t drafted_tokens = 0;  // that its head is over
  uint32_t rows = 0;            // of a pass, at most
  uint32_t most_waiting = 0;    // features that can wait for a draft
  uint32_t backlog = 0;         // that waited
  uint32_t prompt_read = 0;     // of these or injected already: of the part of the prompt that was read for this reply
  bool goes_on = false;         // the rest of the prompt is the text of the reply before, with what waited of it
  uint32_t committed = 0;       // positions before the first round
  uint32_t remaining = 0;       // tokens that the reply might still get, the first round's included
  uint32_t beams = 1;           // paths that one pass of a model which drafts token by token could go on with
  DraftSources sources = kFromDflash;  // that were asked; before there was a choice, the drafter alone
  std::string policy;                  // that costs were predicted by
  bool priced = false;                 // the costs below were in force; else nothing was predicted
  std::optional<Roofline> roofline;    // of target and device, uncalibrated; none where it was not needed
  /// As they were measured before the reply; null: none were recorded.
  std::shared_ptr<const CostTable> costs;
  std::string state;  // SpeculationState::archive()
};

/// The drafts that a reply has beside those of its rounds: one behind each of `positions` roots from `first` on.
struct TraceDense {
  uint32_t reply = 0;  // in the file
  uint32_t first = 0;  // committed positions before the first root
  uint32_t positions = 0;
  std::string device = {};  // that drafted
  std::string driver = {};
  std::string variants = {};
  std::string canopy_version = {};
};

/// Appends the record. With `costs_as_before`, the costs are those of the file's record before this one.
void encode(const TraceDrafting& drafting, bool costs_as_before, std::string& bytes);
/// `before`: the costs of the file's record before this one. Throws bad_input naming what is wrong.
TraceDrafting decode_trace_drafting(std::string_view payload, const std::shared_ptr<const CostTable>& before);

nlohmann::ordered_json to_json(const TraceDrafting& drafting);
nlohmann::ordered_json to_json(const TraceDense& dense);
TraceDense parse_trace_dense(std::string_view json);

// The statistics of speculation for a pair of models on a device: costs, acceptance, calibration. They outlive replies.

/// What the statistics need to know of the pair.
struct PairFacts {
  uint32_t block_size = 0;  // rows of the drafter's pass, one more than it drafts; 0: there is no drafter
  bool by_token = false;    // it drafts token by token
  /// The target's roofline on this device, without corrections by measured passes; asked for once, when it is needed,
  /// as the device may have to be measured for it.
  std::function<Roofline()> roofline;
  /// Recordings of passes that target and drafter have made; empty: none are ever made.
  std::function<uint64_t()> recordings;
};

class SpeculationState {
 public:
  /// `table` as it was measured, possibly empty; where it is silent the roofline of the target stands in. Throws
  /// bad_input for a block size of 1.
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

  /// What was learnt of drafts alone, for the next launch; the times of passes are not part of it.
  std::string learnt();
  /// Takes that over. False, and nothing changes, where it is of other rules or another drafter.
  bool take_learnt(std::string_view bytes);

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

#pragma once
// Chooses for each round whether to draft and how wide a tree to verify (design.md, section 3). Pure arithmetic without
// clock or device: the same calls give the same choices.
//
//   controller.begin_reply();
//   while (...) {
//     DraftPlan plan = controller.plan(context, backlog, limits, cost);
//     if (plan.draft) {
//       // draft plan.depth tokens, begin the tree with controller.calibration(plan.depth)
//       while (controller.wants_more(builder.tree()) && builder.next() == TreeStep::added) {}
//       WidthChoice choice = controller.choose(builder.tree(), candidates);
//       // cut the tree to choice.best.width, or make it a chain of choice.best.width - 1
//     }
//     // verify, walk, commit
//     controller.observe({emitted, draft_ms, verify_ms, other_ms});
//   }

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/speculation/acceptance_estimate.h"
#include "engine/speculation/acceptance_ledger.h"
#include "engine/speculation/controller_choice.h"
#include "engine/speculation/controller_speed.h"
#include "engine/speculation/depth_calibration.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/speculation_bound.h"

namespace canopy {

/// Raised whenever the same calls give other choices than before: a recording of another number is not re-run to its
/// own decisions.
constexpr uint32_t controller_rules = 1;

struct ControllerOptions {
  WidthObjective objective = WidthObjective::long_run;
  bool calibrate = true;  // the drafter's log q by depth
  BoundSettings bound;
};

/// The decision before the drafter runs: whether to draft, and how deep.
struct DraftPlan {
  bool draft = false;
  bool trial = false;  // a trial: drafting did not pay lately, and is tried again
  uint32_t depth = 0;  // tokens to draft, at most B - 1
  uint32_t width = 1;  // of the widest tree that may come of it
  double ar_ms = 0;    // of an AR round: verify_ms + other_ms
  double verify_ms = 0, other_ms = 0;
  double draft_ms = 0;
  double speed_up = 1;  // of rounds with a draft over AR ones, lately
  double believed = 1;  // the speed-up assumed of a drafter that has not drafted yet, at the costs measured here
  std::string reason;   // one sentence
};

/// The outcome of a round; times in milliseconds. Times that are negative or NaN are replaced by the prediction.
struct RoundOutcome {
  std::span<const uint32_t> emitted;  // at least one token
  double draft_ms = 0;                // 0 where nothing was drafted
  double verify_ms = 0;
  double other_ms = 0;
};

class Controller {
 public:
  /// Throws Error(bad_input) for a block size below 2 and bad bounds.
  Controller(const ControllerOptions& options, uint32_t block_size);

  /// Begins a new text: drafts that wait for their tokens are dropped, learnt statistics stay.
  void begin_reply();

  /// Decides whether to draft. `context` committed positions, `backlog` features that a draft has to inject first.
  /// The owner of `cost` corrects it by the times of rounds. Throws Error(bad_input) for a cost that is no
  /// number.
  DraftPlan plan(uint32_t context, uint32_t backlog, const WidthLimits& limits, const PassCost& cost);

  /// For TreeBuilder::begin() in a round that was planned; empty where calibration is off.
  std::span<const DepthCalibration> calibration(uint32_t depths) const;

  /// Whether the tree should get another node: a wider one might be chosen, or is needed to learn from. The tree may
  /// grow by one node between two calls.
  bool wants_more(const DraftTree& tree);

  /// Decides the width. `tree` is the best-first tree as far as it was built, `candidates` those it was built from.
  WidthChoice choose(const DraftTree& tree, std::span<const DepthCandidates> candidates);

  /// Learns from the draft of a round that was not planned here (in a fixed mode).
  void watch(const DraftTree& tree, std::span<const DepthCandidates> candidates,
             std::span<const DepthCalibration> calibration = {});

  /// Forecasts for widths of a best-first tree in a round that was not planned here: at most 64 of them, ascending,
  /// `chosen` among them where the tree is as wide. `depth` tokens were drafted.
  std::vector<WidthForecast> forecast(const DraftTree& tree, uint32_t depth, uint32_t chosen, uint32_t context,
                                      uint32_t backlog, const PassCost& cost) const;

  /// After every round, planned or not.
  void observe(const RoundOutcome& outcome);

  /// The text goes on with tokens that no round here wrote: drafts that wait are scored against them, and nothing else
  /// is learnt.
  void skip(std::span<const uint32_t> tokens);

  // Learnt statistics, for the application.
  const DepthCalibrator& calibrator() const { return calibrator_; }
  const HindsightCurve& hindsight() const { return hindsight_; }  // of this reply
  const PromiseRecord& promises() const { return promises_; }
  const DraftingSpeed& speed() const { return speed_; }
  const SpeculationBound& bound() const { return bound_; }

  /// What was learnt, between two replies: drafts that wait for their tokens are no part of it.
  void archive(StateArchive& archive);
  /// Forgets all that depends on what passes cost; what was learnt of the drafter stays.
  void forget_times();

 private:
  struct Stages {
    double draft = 0, verify = 0, other = 0;
    double sum() const { return draft + verify + other; }
  };
  /// The round between plan() and observe().
  struct Round {
    bool planned = false;
    DraftPlan plan;
    uint32_t width = 1;
    std::vector<Stages> predicted;    // [plan.width]
    std::vector<double> ms;           // [plan.width] of the whole round
    double cheapest_ms = 0;           // of the rounds that verify a draft
    std::vector<double> promised;     // [tree so far] accepted tokens by score
    std::vector<double> tree, chain;  // expected emitted, by width
  };

  DraftPlan decide(uint32_t context, uint32_t backlog, const WidthLimits& limits, const PassCost& cost);
  DraftPlan without_draft(DraftPlan plan, std::string reason) const;
  double usual_round_ms() const { return std::max(round_.cheapest_ms, longest_run_ms_); }
  static Stages stages(uint32_t width, uint32_t context, uint32_t backlog, const PassCost& cost);
  void predict(uint32_t widest, uint32_t context, uint32_t backlog, const PassCost& cost);
  double most_possible(const DraftPlan& plan) const;
  struct Hopes {
    double believed = 0;  // speed-up of a drafter as good as is believed of one that was not seen yet
    double most = 0;      // and of a perfect one
  };
  Hopes hopes(const DraftPlan& plan, uint32_t context, const PassCost& cost) const;
  bool is_hopeful(const DraftPlan& plan) const;
  double tree_emitted(uint32_t width, double promised, uint32_t depth) const;
  WidthCurves curves() const;
  void follow(const DraftTree& tree);
  void learn_ar(double ms);
  double cautious_ar_ms() const;
  void settle(const DraftOutcome& outcome);

  ControllerOptions options_;
  uint32_t depths_;  // B - 1
  SpeculationBound bound_;
  DraftingSpeed speed_;
  AcceptanceLedger ledger_;
  PromiseLines tree_lines_, chain_lines_;
  DepthCalibrator calibrator_;
  HindsightCurve hindsight_;
  PromiseRecord promises_;
  Round round_;
  double ar_mean_ms_ = 0;          // of the AR rounds lately, slowly faded; 0 before the first
  double ar_variance_ = 0;         // of those, in squared milliseconds
  double longest_run_ms_ = 0;      // predicted time of the longest round with a draft lately
  uint32_t drafted_in_a_row_ = 0;  // rounds without an AR one
  uint32_t tokens_since_draft_ = 0;
  uint32_t tokens_since_settled_ = 0;
};

}  // namespace canopy

#pragma once
// Chooses for each round whether to draft and how wide a tree to verify, within a bound on the time that a user may
// lose, and says why. Pure arithmetic without clock or device: the same calls give the same choices.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculation/acceptance.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/state_archive.h"

namespace canopy {

// The recent speed of drafting rounds relative to autoregressive decoding.

/// Ratio of faded sums: tokens that rounds with a draft emitted to the AR rounds that would have fitted in their
/// time. A few assumed rounds of speed-up 1 stand for what is not known yet.
class DraftingSpeed {
 public:
  /// A round with a draft emitted `tokens` in the time of `ar_rounds` AR ones, `distance` tokens of text after
  /// the one before it.
  void learn(double tokens, double ar_rounds, double distance);

  /// Speed-up over autoregressive decoding.
  double mean() const;
  /// The mean and a little more, by how uncertain it is: being wrong about it costs little where it is tried again.
  double hopeful() const;
  double rounds() const { return n_; }

  void archive(StateArchive& archive) {
    for (double* value : {&n_, &tokens_, &time_, &tt_, &tv_, &vv_}) archive.number(*value);
  }

 private:
  double n_ = 0;
  double tokens_ = 0, time_ = 0;
  double tt_ = 0, tv_ = 0, vv_ = 0;  // products of tokens and time
};

// The bound on the time that a user may lose by speculation.

struct BoundSettings {
  double slack = 0.02;         // share of autoregressive decoding's time that may be lost
  double rounds = 2;           // and as many rounds
  double trial_share = 0.01;   // share of the time that trial drafts may lose, within the slack
  uint32_t shortest_wait = 8;  // tokens between trial drafts, at first
  uint32_t longest_wait = 256;
};

/// Throws Error(bad_input) naming the field unless all are finite, not negative and in order.
void validate(const BoundSettings& settings);

/// Keeps the account of a reply: elapsed <= (1 + slack) * (time of its tokens in autoregressive decoding) + `rounds`
/// rounds, including the worst case of the next round. The measured time of an AR round counts as autoregressive
/// decoding itself, so that only the time of speculated tokens is estimated.
class SpeculationBound {
 public:
  explicit SpeculationBound(const BoundSettings& settings);

  /// Begins a reply. Time that the reply before gained may not be lost in this one; time that it lost beyond the bound
  /// still counts.
  void begin_reply();

  /// An AR round took `ms`.
  void decoded(double ms);
  /// A round with a draft took `ms` and emitted `tokens`, which take `ar_ms` each autoregressively. trial: it was
  /// allowed by may_try().
  void speculated(double ms, uint32_t tokens, double ar_ms, bool trial);
  /// The same of a round that verified what cost no pass.
  void found(double ms, uint32_t tokens, double ar_ms);

  /// Whether a round that may take `worst_ms` and emits one token keeps the bound. `round_ms` is the length of each of
  /// the `rounds` rounds; the cheapest one is the safe choice.
  bool allows(double worst_ms, double ar_ms, double round_ms) const {
    return worst_ms <= longest_allowed(ar_ms, round_ms);
  }
  double longest_allowed(double ar_ms, double round_ms) const;

  /// While drafting does not pay: whether a trial that may lose `cost_ms` is due and within `part` of the trials'
  /// share.
  bool may_try(double cost_ms, double part = 1) const;
  /// Milliseconds of the trials' share of all replies so far that are not used up.
  double trials_left_ms() const { return settings_.trial_share * elapsed_ - trials_lost_; }
  /// Tokens until the next trial is due by its interval alone.
  uint32_t wait() const { return since_draft_ < interval_ ? interval_ - since_draft_ : 0; }

  /// Milliseconds that may be lost before only the `rounds` rounds are left; negative when those are in use.
  double balance_ms() const { return balance_; }

  /// The account, not the settings.
  void archive(StateArchive& archive);

 private:
  void adapt_interval(double gain_ms);

  BoundSettings settings_;
  double balance_ = 0;
  double elapsed_ = 0;      // of all replies
  double trials_lost_ = 0;  // in those that lost, less what others gained; not below 0
  uint32_t interval_;
  uint32_t since_draft_ = 0;  // tokens emitted since the last draft
};

}  // namespace canopy

namespace canopy::reason {

// The controller's decisions in words, a sentence each, with the numbers they rest on.

std::string no_room(const WidthLimits& limits);
std::string nothing_found();
std::string free_chosen(const WidthForecast& best, double ar_tokens_per_second);
std::string free_not_worth(double expected, uint32_t width, const WidthForecast& plain);
std::string cannot_pay(double most, double draft_ms, double ar_ms);
std::string bound_reached(double round_ms, double balance_ms, double rounds);
std::string measuring_ar(uint32_t rounds);
std::string not_believed(double believed, double draft_ms);
std::string drafting(double speed_up, double rounds);
std::string trial(double speed_up);
std::string first_trial(double believed);
std::string waiting(double speed_up, uint32_t tokens);
std::string saving(double speed_up, double draft_ms);

std::string chosen(DecodeMode shape, const WidthForecast& best, double ar_tokens_per_second);
std::string not_worth_verifying(const WidthForecast& plain, double verified_expected, uint32_t verified_width);

}  // namespace canopy::reason

namespace canopy {

// How a controller is called:
//
//   controller.begin_reply();
//   while (...) {
//     // the best-first tree of what cost no pass, by controller.free_calibration(); null where that is nothing
//     DraftPlan plan = controller.plan(context, backlog, limits, cost, found);
//     if (plan.free) {
//       // cut that tree to controller.free_choice().best.width
//     } else if (plan.draft) {
//       // draft plan.depth tokens, begin the tree with controller.calibration(plan.depth)
//       while (controller.wants_more(builder.tree()) && builder.next() == TreeStep::added) {}
//       WidthChoice choice = controller.choose(builder.tree(), candidates);
//       // cut the tree to choice.best.width, or make it a chain of choice.best.width - 1
//     }
//     // verify, walk, commit
//     controller.observe({emitted, draft_ms, verify_ms, other_ms});
//   }

struct ControllerOptions {
  WidthObjective objective = WidthObjective::long_run;
  bool calibrate = true;  // the drafter's log q by depth
  BoundSettings bound;
};

/// The decision before the drafter runs: whether to draft, and how deep.
struct DraftPlan {
  bool draft = false;
  bool free = false;   // what costs no pass is verified alone, without the drafter's pass; never with `draft`
  bool trial = false;  // a trial: drafting did not pay lately, and is tried again
  uint32_t depth = 0;  // tokens to draft, at most B - 1
  std::vector<double> costs = {};  // DraftWish::costs
  uint32_t width = 1;              // of the widest tree that may come of it
  double ar_ms = 0;                // of an AR round: verify_ms + other_ms
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
  /// block_size: rows of the drafter's pass; 0: there is no drafter. Throws Error(bad_input) for 1 and for bad bounds.
  Controller(const ControllerOptions& options, uint32_t block_size);

  /// Begins a new text: drafts that wait for their tokens are dropped, learnt statistics stay.
  void begin_reply();

  /// Decides whether to draft. `context` committed positions, `backlog` features that a draft has to inject first.
  /// `limits.depth` is the drafter's, 0 where it is not asked. `found`: the best-first tree of drafts that cost no
  /// pass, no deeper than the other limits allow; null: nothing. The owner of `cost` corrects it by the times of
  /// rounds. Throws Error(bad_input) for a cost that is no number.
  DraftPlan plan(uint32_t context, uint32_t backlog, const WidthLimits& limits, const PassCost& cost,
                 const DraftTree* found = nullptr);

  /// The width of a round whose plan has `free`.
  const WidthChoice& free_choice() const { return free_choice_; }
  /// The groups of drafts that cost no pass, for TreeDrafter::begin(), whether these are verified alone or beside a
  /// drafter's.
  std::span<const DepthCalibration> free_calibration() const { return free_calibrator_.calibration(kFreeGroups); }
  /// Judges such drafts by this from now on, and drops those that wait for their tokens.
  void judge_free_by(DepthCalibrator known) {
    free_calibrator_ = std::move(known);
    free_ledger_.clear();
  }
  /// Learns from such drafts, whatever is verified of them: `tree` is the best-first tree of these alone.
  void watch_free(const DraftTree& tree, const FreeDraft& found, const FreeDraft& recycled) {
    free_ledger_.add(tree, found, recycled);
  }

  /// What was drafted is predicted to have taken so long. It differs from the plan where the draft was made token by
  /// token.
  void drafted(double ms);

  /// For TreeBuilder::begin() in a round that was planned; empty where calibration is off.
  std::span<const DepthCalibration> calibration(uint32_t depths) const;

  /// Whether the tree should get another node: a wider one might be chosen, or is needed to learn from. The tree may
  /// grow by one node between two calls.
  bool wants_more(const DraftTree& tree);

  /// Decides the width. `tree` is the best-first tree as far as it was built, `candidates` those it was built from.
  /// `behind`: BlockDraft::behind of these.
  WidthChoice choose(const DraftTree& tree, std::span<const DepthCandidates> candidates,
                     std::span<const uint32_t> behind = {});

  /// Learns from the draft of a round that was not planned here (in a fixed mode).
  void watch(const DraftTree& tree, std::span<const DepthCandidates> candidates,
             std::span<const DepthCalibration> calibration = {}, std::span<const uint32_t> behind = {});

  /// Forecasts for widths of a best-first tree in a round that was not planned here: at most 64 of them, ascending,
  /// `chosen` among them where the tree is as wide. `depth` tokens were drafted in what is predicted as `draft_ms`.
  /// With no tokens drafted it is a tree of drafts that cost no pass.
  std::vector<WidthForecast> forecast(const DraftTree& tree, uint32_t depth, uint32_t chosen, uint32_t context,
                                      double draft_ms, const PassCost& cost) const;

  /// After every round, planned or not.
  void observe(const RoundOutcome& outcome);

  /// What belongs to one reply alone: its drafts that wait for their tokens, and its hindsight.
  struct ReplyPart {
    AcceptanceLedger ledger, free_ledger;
    HindsightCurve hindsight;
  };
  /// Exchanges that with another reply's, between two rounds: replies may be written by turns.
  void exchange(ReplyPart& other) {
    std::swap(ledger_, other.ledger);
    std::swap(free_ledger_, other.free_ledger);
    std::swap(hindsight_, other.hindsight);
  }

  /// The text goes on with tokens that no round here wrote: drafts that wait are scored against them, and nothing else
  /// is learnt.
  void skip(std::span<const uint32_t> tokens);

  // Learnt statistics, for the application.
  const DepthCalibrator& calibrator() const { return calibrator_; }
  const DepthCalibrator& free_calibrator() const { return free_calibrator_; }
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
    uint32_t free_depth = 0;          // of drafts that cost no pass; 0: there are none
  };

  void consider_free(const DraftTree& found, uint32_t context, const WidthLimits& limits, const PassCost& cost);
  DraftPlan decide(uint32_t context, uint32_t backlog, const WidthLimits& limits, const PassCost& cost);
  DraftPlan without_draft(DraftPlan plan, std::string reason) const;
  double usual_round_ms() const { return std::max(round_.cheapest_ms, longest_run_ms_); }
  bool has_drafter() const { return depths_ > 0; }
  Stages stages(uint32_t width, uint32_t context, uint32_t backlog, uint32_t depths, const PassCost& cost) const;
  std::vector<double> pass_costs(const DraftPlan& plan, uint32_t context, const PassCost& cost) const;
  void predict(const DraftPlan& plan, uint32_t context, uint32_t backlog, const PassCost& cost);
  double most_possible(const DraftPlan& plan) const;
  struct Hopes {
    double believed = 0;  // speed-up of a drafter as good as is believed of one that was not seen yet
    double most = 0;      // and of a perfect one
  };
  Hopes hopes(const DraftPlan& plan, uint32_t context, const PassCost& cost) const;
  bool is_hopeful(const DraftPlan& plan) const;
  uint32_t deepest() const { return std::max(round_.plan.depth, round_.free_depth); }
  double tree_emitted(uint32_t width, double promised, uint32_t depth) const;
  WidthCurves curves() const;
  void follow(const DraftTree& tree);
  void learn_ar(double ms);
  double cautious_ar_ms() const;
  void settle(const DraftOutcome& outcome);
  void settle_free(const DraftOutcome& outcome);
  void follow(std::span<const uint32_t> tokens);

  ControllerOptions options_;
  uint32_t depths_;  // B - 1; 0 without a drafter
  SpeculationBound bound_;
  DraftingSpeed speed_;
  // Of drafts that the drafter was asked for, and of those that cost no pass alone, in every round.
  AcceptanceLedger ledger_, free_ledger_;
  PromiseLines tree_lines_, chain_lines_;
  DepthCalibrator calibrator_, free_calibrator_;
  HindsightCurve hindsight_;
  PromiseRecord promises_;
  Round round_;
  WidthChoice free_choice_;
  // Of drafts that cost no pass, by width.
  std::vector<Stages> free_predicted_;
  std::vector<double> free_emitted_, free_ms_;
  double ar_mean_ms_ = 0;          // of the AR rounds lately, slowly faded; 0 before the first
  double ar_variance_ = 0;         // of those, in squared milliseconds
  double longest_run_ms_ = 0;      // predicted time of the longest round with a draft lately
  uint32_t drafted_in_a_row_ = 0;  // rounds without an AR one
  uint32_t tokens_since_draft_ = 0;
  uint32_t tokens_since_settled_ = 0;
};

}  // namespace canopy

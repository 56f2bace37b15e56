#include "engine/speculation/controller.h"

#include <cmath>
#include <cstdio>

#include "engine/base/error.h"
#include "engine/speculation/beam_draft.h"

namespace canopy {
namespace {

// The assumed acceptance of a drafter that has not drafted yet. With the measured costs of passes it decides whether
// drafting is tried at once, or only when autoregressive decoding has saved up the time that an attempt may lose.

/// Tokens that a round of `width` rows is believed to emit, where at most `depths` tokens are drafted. Each next token
/// is believed to be accepted at 0.85: 4.8 tokens of a block of 8 and 6.2 of 16, about what the authors of DFlash
/// measured of theirs on text that suits them, and more than most drafters reach on most texts. Wide trees get no more
/// than a chain: where a wide tree pays, a chain pays already.
double believed_emitted(uint32_t width, uint32_t depths) {
  constexpr double accepted = 0.85;
  const uint32_t deepest = std::min(std::max(width, 1u) - 1, depths);
  return (1 - std::pow(accepted, deepest + 1)) / (1 - accepted);
}

constexpr double memory_tokens = 200;
constexpr double assumed_rounds = 4;    // rounds of speed-up 1, one token each ...
constexpr double assumed_variance = 4;  // ... that might as well have brought two more
constexpr double hope = 0.5;            // standard errors

/// Weight that older evidence keeps when `distance` tokens of text were written since: text changes with its length,
/// not with the number of drafts. Never below a half, so that a draft after a long pause does not count alone.
double fading_over(double distance, double memory) {
  return std::max(0.5, std::exp(-distance / memory));
}

}  // namespace

void DraftingSpeed::learn(double tokens, double ar_rounds, double distance) {
  const double f = fading_over(distance, memory_tokens);
  n_ = f * n_ + 1;
  tokens_ = f * tokens_ + tokens;
  time_ = f * time_ + ar_rounds;
  tt_ = f * tt_ + tokens * tokens;
  tv_ = f * tv_ + tokens * ar_rounds;
  vv_ = f * vv_ + ar_rounds * ar_rounds;
}

double DraftingSpeed::mean() const {
  return (tokens_ + assumed_rounds) / (time_ + assumed_rounds);
}

double DraftingSpeed::hopeful() const {
  const double s = mean();
  const double spread = std::max(0.0, tt_ - 2 * s * tv_ + s * s * vv_) + assumed_rounds * assumed_variance;
  return s + hope * std::sqrt(spread) / (time_ + assumed_rounds);
}

namespace {

void check(double value, const char* field) {
  if (std::isfinite(value) && value >= 0) return;
  throw bad_input("The speculation bound has " + std::string(field) + " " + std::to_string(value) +
                  "; it must be finite and not negative.");
}

}  // namespace

void validate(const BoundSettings& settings) {
  check(settings.slack, "slack");
  check(settings.rounds, "rounds");
  check(settings.trial_share, "trial_share");
  if (settings.shortest_wait == 0 || settings.shortest_wait > settings.longest_wait) {
    throw bad_input("The speculation bound has shortest_wait " + std::to_string(settings.shortest_wait) +
                    " and longest_wait " + std::to_string(settings.longest_wait) +
                    "; allowed: 1 <= shortest_wait <= longest_wait.");
  }
}

SpeculationBound::SpeculationBound(const BoundSettings& settings)
    : settings_(settings), interval_(settings.shortest_wait) {
  validate(settings);
}

void SpeculationBound::begin_reply() {
  balance_ = std::min(balance_, 0.0);
}

void SpeculationBound::decoded(double ms) {
  balance_ += settings_.slack * ms;
  elapsed_ += ms;
  since_draft_ += 1;
}

void SpeculationBound::speculated(double ms, uint32_t tokens, double ar_ms, bool trial) {
  const double gain = tokens * ar_ms - ms;
  balance_ += settings_.slack * tokens * ar_ms + gain;
  elapsed_ += ms;
  since_draft_ = 0;
  if (!trial) return;
  trials_lost_ = std::max(0.0, trials_lost_ - gain);
  adapt_interval(gain);
}

void SpeculationBound::found(double ms, uint32_t tokens, double ar_ms) {
  balance_ += (1 + settings_.slack) * tokens * ar_ms - ms;
  elapsed_ += ms;
  since_draft_ += tokens;
}

void SpeculationBound::adapt_interval(double gain_ms) {
  // After a trial that gained time the next is due at once: the gain pays for it.
  interval_ = gain_ms > 0 ? 1 : std::clamp(interval_ + interval_ / 2, settings_.shortest_wait, settings_.longest_wait);
}

double SpeculationBound::longest_allowed(double ar_ms, double round_ms) const {
  return balance_ + (1 + settings_.slack) * ar_ms + settings_.rounds * round_ms;
}

void SpeculationBound::archive(StateArchive& archive) {
  for (double* value : {&balance_, &elapsed_, &trials_lost_}) archive.number(*value);
  archive.whole(interval_);
  archive.whole(since_draft_);
}

bool SpeculationBound::may_try(double cost_ms, double part) const {
  return wait() == 0 && trials_lost_ + cost_ms <= part * settings_.trial_share * elapsed_;
}

}  // namespace canopy

namespace canopy::reason {
namespace {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string ms(double value) {
  return number(value, 1) + " ms";
}

std::string times(double speed_up) {
  return number(speed_up, 2) + "×";
}

}  // namespace

std::string no_room(const WidthLimits& limits) {
  return "Plain: no room for a draft (" + std::to_string(limits.widest()) + " rows, paths of " +
         std::to_string(limits.deepest()) + " tokens).";
}

std::string nothing_found() {
  return "Plain: no drafter is asked, and nothing like the last words is known.";
}

std::string free_chosen(const WidthForecast& best, double ar_tokens_per_second) {
  return "Guesses that cost no pass, " + std::to_string(best.width) + " rows: " + number(best.expected, 2) +
         " tokens expected in " + ms(best.ms) + ", " + number(best.tokens_per_second(), 1) + " tok/s against " +
         number(ar_tokens_per_second, 1) + " plain.";
}

std::string free_not_worth(double expected, uint32_t width, const WidthForecast& plain) {
  return "Plain: guesses that cost no pass are not worth verifying (" + number(expected, 2) + " tokens expected of " +
         std::to_string(width) + " rows, one of " + ms(plain.ms) + " without).";
}

std::string cannot_pay(double most, double draft_ms, double ar_ms) {
  return "Plain: even a draft accepted in full would run at " + times(most) + " plain decoding (draft " + ms(draft_ms) +
         ", plain round " + ms(ar_ms) + ").";
}

std::string bound_reached(double round_ms, double balance_ms, double rounds) {
  return "Plain: drafting has cost more than it brought (" + ms(-balance_ms) + " beyond the slack; " +
         number(rounds, 0) + " rounds of " + ms(round_ms) + " are the most).";
}

std::string measuring_ar(uint32_t rounds) {
  return "Plain: measured again after " + std::to_string(rounds) + " rounds with drafts.";
}

std::string not_believed(double believed, double draft_ms) {
  return "Plain: on this device even a good drafter would run at " + times(believed) +
         " plain decoding; a first draft (" + ms(draft_ms) + ") waits until its time is earned.";
}

std::string drafting(double speed_up, double rounds) {
  if (rounds < 1) return "Drafting: nothing is known about this drafter yet.";
  return "Drafting: lately " + times(speed_up) + " plain decoding.";
}

std::string trial(double speed_up) {
  return "Drafting to see whether it pays by now; lately " + times(speed_up) + " plain decoding.";
}

std::string first_trial(double believed) {
  return "Drafting to see what this drafter is worth; a good one would run at " + times(believed) + " plain decoding.";
}

std::string waiting(double speed_up, uint32_t tokens) {
  return "Plain: drafting ran at " + times(speed_up) + " plain decoding lately; tried again in " +
         std::to_string(tokens) + " tokens.";
}

std::string saving(double speed_up, double draft_ms) {
  return "Plain: drafting ran at " + times(speed_up) +
         " plain decoding lately; trials have used up their share of time (one takes " + ms(draft_ms) + ").";
}

std::string chosen(DecodeMode shape, const WidthForecast& best, double ar_tokens_per_second) {
  return std::string(shape == DecodeMode::chain ? "Chain" : "Tree") + " of " + std::to_string(best.width) +
         " rows: " + number(best.expected, 2) + " tokens expected in " + ms(best.ms) + ", " +
         number(best.tokens_per_second(), 1) + " tok/s against " + number(ar_tokens_per_second, 1) + " plain.";
}

std::string not_worth_verifying(const WidthForecast& plain, double verified_expected, uint32_t verified_width) {
  return "Plain: the draft is not worth verifying (" + number(verified_expected, 2) + " tokens expected of " +
         std::to_string(verified_width) + " rows, one of " + ms(plain.ms) + " without).";
}

}  // namespace canopy::reason

namespace canopy {
namespace {

// Trees are built at least this wide, so that hindsight sees more than was chosen; it costs some 20 microseconds.
constexpr uint32_t width_to_learn = 64;
// AR rounds that their mean looks back on, and rounds with drafts after which it is out of date.
constexpr uint32_t ar_mean_rounds = 50;
// The largest width considered; wider passes pay on no device known to us.
constexpr uint32_t widest_considered = 1025;
// Rounds with drafts after which an AR round is measured again, since all is compared with its time. Multiplied by the
// square of the speed-up of drafting.
constexpr double rounds_between_ar = 128;
// The width at which promises are judged: a usual one, which every built tree reaches.
constexpr uint32_t judged_width = 16;

constexpr double lines_memory = 500;
// The share of the time for trials that drafts alone may take where even a good drafter would lose. The rest is saved
// for verifying a draft that promises much.
constexpr double drafts_part = 0.5;
// A round with a draft counts as at most so many times its predicted time.
constexpr double stall = 2;
// Rounds with drafts over which the time of the longest one fades, as the device or the chosen widths may change.
constexpr double long_run_rounds = 32;

double checked_ms(double ms, const char* what) {
  if (std::isfinite(ms) && ms >= 0) return ms;
  throw bad_input("The predicted time of " + std::string(what) + " is " + std::to_string(ms) +
                  " ms; it must be finite and not negative.");
}

double positive_ms(double ms, const char* what) {
  if (std::isfinite(ms) && ms > 0) return ms;
  throw bad_input("The predicted time of " + std::string(what) + " is " + std::to_string(ms) +
                  " ms; it must be finite and more than 0.");
}

double measured_or(double measured, double predicted) {
  return std::isfinite(measured) && measured >= 0 ? measured : predicted;
}

}  // namespace

Controller::Controller(const ControllerOptions& options, uint32_t block_size)
    : options_(options),
      depths_(block_size == 0 ? 0 : block_size - 1),
      bound_(options.bound),
      calibrator_(depths_),
      free_calibrator_(kAssumedFree) {
  if (block_size == 1) throw bad_input("The drafter's block size is 1; it must be at least 2, or 0 without a drafter.");
}

void Controller::begin_reply() {
  bound_.begin_reply();
  ledger_.clear();
  free_ledger_.clear();
  hindsight_.clear();
  round_.planned = false;
}

void Controller::archive(StateArchive& archive) {
  bound_.archive(archive);
  speed_.archive(archive);
  tree_lines_.archive(archive);
  chain_lines_.archive(archive);
  calibrator_.archive(archive);
  if (archive.rules() >= 2) free_calibrator_.archive(archive);
  promises_.archive(archive);
  for (double* value : {&ar_mean_ms_, &ar_variance_, &longest_run_ms_}) archive.number(*value);
  for (uint32_t* value : {&drafted_in_a_row_, &tokens_since_draft_, &tokens_since_settled_}) archive.whole(*value);
  if (archive.reads()) begin_reply();
}

void Controller::forget_times() {
  bound_ = SpeculationBound(options_.bound);
  speed_ = DraftingSpeed();
  ar_mean_ms_ = ar_variance_ = longest_run_ms_ = 0;
  drafted_in_a_row_ = tokens_since_draft_ = 0;
}

DraftPlan Controller::plan(uint32_t context, uint32_t backlog, const WidthLimits& limits, const PassCost& cost,
                           const DraftTree* found) {
  round_.plan = decide(context, backlog, limits, cost);
  round_.planned = true;
  round_.width = 1;
  round_.promised.assign(1, 0);
  round_.tree.assign(1, 1);
  round_.free_depth = 0;
  if (found == nullptr || found->drafted() == 0) return round_.plan;
  for (const TreeNode& node : found->nodes()) round_.free_depth = std::max(round_.free_depth, node.depth);
  consider_free(*found, context, limits, cost);
  return round_.plan;
}

/// Verifies what cost no pass alone where that is expected to bring the most tokens for its time: more than plain
/// decoding, and than rounds with the drafter did lately. Its probabilities are taken at their word: they were scored
/// in every round, whatever was verified.
void Controller::consider_free(const DraftTree& found, uint32_t context, const WidthLimits& limits,
                               const PassCost& cost) {
  DraftPlan& plan = round_.plan;
  // A drafter that was never asked is tried before it is passed over.
  if (plan.draft && !plan.trial && speed_.rounds() == 0) return;
  const uint32_t widest = std::min({found.width(), limits.widest(), widest_considered});
  if (widest < 2) return;
  const double speed = std::max(1.0, plan.speed_up);
  if (!plan.draft && drafted_in_a_row_ >= rounds_between_ar * speed * speed) {
    plan.reason = reason::measuring_ar(drafted_in_a_row_);
    return;
  }
  std::vector<Stages>& predicted = free_predicted_;
  std::vector<double>&emitted = free_emitted_, &times = free_ms_;
  predicted.clear(), emitted.clear(), times.clear();
  double promised = 0, cheapest = INFINITY;
  for (uint32_t width = 1; width <= widest; ++width) {
    if (width > 1) promised += std::exp(found[width - 1].score);
    predicted.push_back(width == 1 ? Stages{0, plan.verify_ms, plan.other_ms} : stages(width, context, 0, 1, cost));
    predicted.back().draft = 0;
    emitted.push_back(1 + std::min<double>(width - 1, promised));
    times.push_back(predicted.back().sum());
    if (width > 1) cheapest = std::min(cheapest, times.back());
  }
  const double one = 1;
  WidthCurves offered;
  offered.tree = emitted;
  offered.chain = {&one, 1};
  offered.ms = times;
  offered.longest_ms = bound_.longest_allowed(plan.ar_ms, std::max(cheapest, longest_run_ms_));
  // The speed of this round, not of the long run: where texts repeat they do so in stretches.
  offered.objective = WidthObjective::per_round;
  WidthChoice choice = choose_width(offered);
  choice.ar_tokens_per_second = 1000 / plan.ar_ms;
  if (choice.shape == DecodeMode::ar) {
    if (!has_drafter() || limits.depth == 0) plan.reason = reason::free_not_worth(emitted.back(), widest, choice.best);
    return;
  }
  const double drafter = plan.draft && !plan.trial ? plan.speed_up : 1;
  if (choice.best.tokens_per_second() * plan.ar_ms <= 1000 * drafter) return;
  choice.verify_ms = predicted[choice.best.width - 1].verify;
  choice.other_ms = predicted[choice.best.width - 1].other;
  choice.candidates = forecasts(offered, choice.best.width);
  choice.reason = reason::free_chosen(choice.best, choice.ar_tokens_per_second);
  plan.draft = plan.trial = false;
  plan.free = true;
  plan.depth = round_.free_depth;
  plan.width = choice.best.width;
  plan.draft_ms = 0;
  plan.reason = choice.reason;
  round_.width = choice.best.width;
  std::swap(round_.predicted, predicted);
  std::swap(round_.ms, times);
  round_.cheapest_ms = cheapest;
  free_choice_ = std::move(choice);
}

DraftPlan Controller::without_draft(DraftPlan plan, std::string reason) const {
  plan.draft = false;
  plan.depth = 0;
  plan.width = 1;
  plan.reason = std::move(reason);
  return plan;
}

DraftPlan Controller::decide(uint32_t context, uint32_t backlog, const WidthLimits& limits, const PassCost& cost) {
  DraftPlan plan;
  plan.draft = true;
  plan.depth = std::min(depths_, limits.deepest());
  plan.width = std::max(1u, std::min(limits.widest(), widest_considered));
  if (plan.width < 2 || plan.depth < 1) plan.width = 1;
  const Stages one = stages(1, context, backlog, plan.depth, cost);
  round_.predicted.assign(1, one);
  plan.draft_ms = one.draft;
  plan.verify_ms = one.verify;
  plan.other_ms = one.other;
  plan.ar_ms = one.verify + one.other;
  const bool asks = has_drafter() && limits.depth > 0;
  plan.speed_up = asks ? speed_.mean() : 1;
  if (!has_drafter()) return without_draft(plan, reason::nothing_found());
  if (plan.width < 2) return without_draft(plan, reason::no_room(limits));

  // Decisions that need no forecast come first: most AR rounds end here.
  const Hopes hoped = hopes(plan, context, cost);
  plan.believed = hoped.believed;
  const bool hopeful = is_hopeful(plan);
  if (!hopeful && !bound_.may_try(plan.draft_ms, plan.believed < 1 ? drafts_part : 1)) {
    if (hoped.most <= 1) return without_draft(plan, reason::cannot_pay(hoped.most, plan.draft_ms, plan.ar_ms));
    if (speed_.rounds() == 0) return without_draft(plan, reason::not_believed(plan.believed, plan.draft_ms));
    return without_draft(plan, bound_.wait() > 0 ? reason::waiting(plan.speed_up, bound_.wait())
                                                 : reason::saving(plan.speed_up, plan.draft_ms));
  }
  predict(plan, context, backlog, cost);
  if (const double most = most_possible(plan); most <= 1) {
    return without_draft(plan, reason::cannot_pay(most, plan.draft_ms, plan.ar_ms));
  }
  if (!bound_.allows(round_.cheapest_ms, plan.ar_ms, usual_round_ms())) {
    return without_draft(plan, reason::bound_reached(usual_round_ms(), bound_.balance_ms(), options_.bound.rounds));
  }
  if (hopeful && drafted_in_a_row_ >= rounds_between_ar * plan.speed_up * plan.speed_up) {
    return without_draft(plan, reason::measuring_ar(drafted_in_a_row_));
  }
  plan.trial = !hopeful;
  plan.costs = pass_costs(plan, context, cost);
  plan.reason = hopeful               ? reason::drafting(plan.speed_up, speed_.rounds())
                : speed_.rounds() > 0 ? reason::trial(plan.speed_up)
                                      : reason::first_trial(plan.believed);
  return plan;
}

/// Where the drafter drafts token by token: what a pass of it over 1, 2, ... paths takes, with the rows that verify one
/// more token of each, in tokens that are expected to save that time. The next token of a path is accepted with the
/// path or not at all, and then saves its share of the rounds of late.
std::vector<double> Controller::pass_costs(const DraftPlan& plan, uint32_t context, const PassCost& cost) const {
  std::vector<double> costs;
  if (!cost.drafts_by_token()) return costs;
  constexpr double accepted = 0.85;  // of the next token, as believed_emitted() has it
  const uint32_t wide = std::min(plan.width, 9u);
  const double row = std::max(0.0, round_.predicted[wide - 1].verify - plan.verify_ms) / (wide - 1);
  const double saved = accepted * plan.ar_ms / std::max(1.0, plan.speed_up);
  for (uint32_t paths = 1; paths <= kMostBeams; ++paths) {
    costs.push_back((checked_ms(cost.draft_ms(paths, context), "the draft") + paths * row) / saved);
  }
  costs.front() = std::min(1.0, costs.front());  // one that is certain goes on
  return costs;
}

Controller::Stages Controller::stages(uint32_t width, uint32_t context, uint32_t backlog, uint32_t depths,
                                      const PassCost& cost) const {
  return {has_drafter() ? checked_ms(cost.whole_draft_ms(backlog, context, depths), "the draft") : 0,
          positive_ms(cost.verify_ms(width, context), "the target's pass"),
          checked_ms(cost.other_ms(width), "the rest of a pass")};
}

/// Predicts the milliseconds of rounds of all widths.
void Controller::predict(const DraftPlan& plan, uint32_t context, uint32_t backlog, const PassCost& cost) {
  const uint32_t widest = plan.width;
  round_.predicted.resize(widest);
  round_.ms.resize(widest);
  round_.cheapest_ms = INFINITY;
  for (uint32_t width = 1; width <= widest; ++width) {
    Stages& here = round_.predicted[width - 1];
    if (width > 1) here = stages(width, context, backlog, std::min(width - 1, plan.depth), cost);
    round_.ms[width - 1] = here.sum();
    if (width > 1) round_.cheapest_ms = std::min(round_.cheapest_ms, here.sum());
  }
}

/// The speed-up if every draft were accepted as far as it goes.
double Controller::most_possible(const DraftPlan& plan) const {
  double most = 0;
  for (uint32_t width = 2; width <= plan.width; ++width) {
    most = std::max(most, std::min(width, plan.depth + 1) * plan.ar_ms / round_.ms[width - 1]);
  }
  return most;
}

/// Limits as in the middle of a reply: no prompt to inject and many tokens left.
Controller::Hopes Controller::hopes(const DraftPlan& plan, uint32_t context, const PassCost& cost) const {
  const uint32_t widest = std::min(plan.width, depths_ + 1);
  Hopes best;
  for (uint32_t width = 2; width <= widest; ++width) {
    const double emitted = believed_emitted(width, depths_);
    const double ms = stages(width, context, static_cast<uint32_t>(emitted), width - 1, cost).sum();
    best.believed = std::max(best.believed, emitted * plan.ar_ms / ms);
    best.most = std::max(best.most, width * plan.ar_ms / ms);
  }
  return best;
}

/// Whether recent drafting allows another draft: where even a good drafter would lose, it must have gained time; else
/// it must not have lost time.
bool Controller::is_hopeful(const DraftPlan& plan) const {
  return plan.believed >= 1 ? speed_.hopeful() >= 1 : speed_.mean() > 1;
}

std::span<const DepthCalibration> Controller::calibration(uint32_t depths) const {
  if (!options_.calibrate) return {};
  return calibrator_.calibration(std::min(depths, depths_));
}

void Controller::drafted(double ms) {
  checked_ms(ms, "the draft");
  round_.cheapest_ms = INFINITY;
  for (size_t i = 0; i < round_.predicted.size(); ++i) {
    round_.predicted[i].draft = ms;
    round_.ms[i] = round_.predicted[i].sum();
    if (i > 0) round_.cheapest_ms = std::min(round_.cheapest_ms, round_.ms[i]);
  }
}

double Controller::tree_emitted(uint32_t width, double promised, uint32_t depth) const {
  const uint32_t most = std::min(width - 1, depth);
  return 1 + std::min<double>(most, tree_lines_.expected(width - 1, promised));
}

WidthCurves Controller::curves() const {
  const DraftPlan& plan = round_.plan;
  WidthCurves curves;
  curves.tree = round_.tree;
  curves.chain = round_.chain;
  curves.ms = round_.ms;
  curves.tokens_per_ms = std::max(1.0, plan.speed_up) / plan.ar_ms;
  curves.objective = options_.objective;
  curves.longest_ms = bound_.longest_allowed(plan.ar_ms, usual_round_ms());
  // The draft is there, and its probabilities are known. Where even a good drafter was expected to lose, it is verified
  // only if the time that would be lost without any accepted token has been saved up.
  if (plan.trial && plan.believed < 1) {
    curves.longest_ms = std::min(curves.longest_ms, plan.ar_ms + bound_.trials_left_ms());
  }
  return curves;
}

/// Adds the nodes that the tree got since the last call to the curves.
void Controller::follow(const DraftTree& tree) {
  const auto nodes = tree.nodes();
  while (round_.promised.size() < std::min<size_t>(nodes.size(), round_.plan.width)) {
    const size_t i = round_.promised.size();
    round_.promised.push_back(round_.promised.back() + std::exp(nodes[i].score));
    round_.tree.push_back(tree_emitted(static_cast<uint32_t>(i + 1), round_.promised.back(), deepest()));
  }
}

bool Controller::wants_more(const DraftTree& tree) {
  const DraftPlan& plan = round_.plan;
  if (!round_.planned || !plan.draft) return false;
  if (tree.width() >= plan.width) return false;
  if (tree.width() < width_to_learn) return true;
  // Later nodes are no more probable than the last one. Checked only now and then, since the check goes over all
  // widths.
  if ((tree.width() & (tree.width() - 1)) != 0) return true;
  follow(tree);
  const WidthCurves offered = curves();
  double best = -INFINITY;
  for (uint32_t width = 1; width <= tree.width(); ++width) {
    best = std::max(best, worth(offered, round_.tree[width - 1], round_.ms[width - 1]));
  }
  const double most_each = std::exp(tree.nodes().back().score);
  for (uint32_t width = tree.width() + 1; width <= plan.width; ++width) {
    const double promised = round_.promised.back() + (width - tree.width()) * most_each;
    if (worth(offered, tree_emitted(width, promised, deepest()), round_.ms[width - 1]) > best) return true;
  }
  return false;
}

WidthChoice Controller::choose(const DraftTree& tree, std::span<const DepthCandidates> candidates,
                               std::span<const uint32_t> behind) {
  if (!round_.planned || !round_.plan.draft) {
    throw bad_input("A width was to be chosen in a pass that plan() left without a draft.");
  }
  const DraftPlan& plan = round_.plan;
  follow(tree);
  auto depths = static_cast<uint32_t>(candidates.size());
  if (!behind.empty()) {
    depths = 1 + std::ranges::max(path_lengths(behind, static_cast<uint32_t>(candidates[0].tokens.size())));
  }
  watch(tree, candidates, calibration(depths), behind);
  const std::vector<double>& promised = ledger_.newest().chain_predicted;
  round_.chain.assign(1, 1);
  // What cost no pass is no part of the drafter's chain: then there are trees alone, narrow as one where it pays.
  for (uint32_t length = 1; round_.free_depth == 0 && length <= std::min<size_t>(promised.size(), plan.width - 1);
       ++length) {
    const double accepted = chain_lines_.expected(length - 1, promised[length - 1]);
    round_.chain.push_back(1 + std::min<double>(length, accepted));
  }

  const WidthCurves offered = curves();
  WidthChoice choice = choose_width(offered);
  round_.width = choice.best.width;
  const Stages& now = round_.predicted[round_.width - 1];
  choice.draft_ms = now.draft;
  choice.verify_ms = now.verify;
  choice.other_ms = now.other;
  choice.ar_tokens_per_second = 1000 / plan.ar_ms;
  choice.candidates = forecasts(offered, round_.width);
  const auto built = static_cast<uint32_t>(round_.tree.size());
  choice.reason = choice.shape == DecodeMode::ar
                      ? reason::not_worth_verifying(choice.best, round_.tree.back(), built)
                      : reason::chosen(choice.shape, choice.best, choice.ar_tokens_per_second);
  return choice;
}

void Controller::watch(const DraftTree& tree, std::span<const DepthCandidates> candidates,
                       std::span<const DepthCalibration> calibration, std::span<const uint32_t> behind) {
  ledger_.add(tree, candidates, calibration, behind);
}

std::vector<WidthForecast> Controller::forecast(const DraftTree& tree, uint32_t depth, uint32_t chosen,
                                                uint32_t context, double draft_ms, const PassCost& cost) const {
  const auto nodes = tree.nodes();
  const auto round_ms = [&](uint32_t width) {
    Stages now = stages(width, context, 0, depth, cost);
    now.draft = depth == 0 ? 0 : checked_ms(draft_ms, "the draft");
    return now.sum();
  };
  std::vector<double> emitted(1, 1), ms(1, round_ms(1));
  double promised = 0;
  for (uint32_t width = 2; width <= nodes.size(); ++width) {
    promised += std::exp(nodes[width - 1].score);
    emitted.push_back(depth == 0 ? 1 + std::min<double>(width - 1, promised) : tree_emitted(width, promised, depth));
    ms.push_back(round_ms(width));
  }
  WidthCurves offered;
  offered.tree = emitted;
  offered.ms = ms;
  return forecasts(offered, chosen);
}

void Controller::observe(const RoundOutcome& outcome) {
  const auto emitted = static_cast<uint32_t>(outcome.emitted.size());
  tokens_since_draft_ += emitted;
  if (round_.planned) {
    const DraftPlan& plan = round_.plan;
    const Stages& expected = round_.predicted[round_.width - 1];
    const double verify = measured_or(outcome.verify_ms, expected.verify);
    const double other = measured_or(outcome.other_ms, expected.other);
    if (plan.draft || plan.free) {
      const double predicted_ms = round_.ms[round_.width - 1];
      const double draft = plan.draft ? measured_or(outcome.draft_ms, expected.draft) : 0;
      // The time of a round that something else delayed is no evidence on drafting: AR rounds meet such stalls as well.
      // If the device has become slower, the costs follow from the second such round on.
      const double ms = std::min(draft + verify + other, stall * predicted_ms);
      longest_run_ms_ = std::max(predicted_ms, longest_run_ms_ + (predicted_ms - longest_run_ms_) / long_run_rounds);
      if (plan.free) {
        bound_.found(ms, emitted, cautious_ar_ms());
      } else {
        bound_.speculated(ms, emitted, cautious_ar_ms(), plan.trial);
        speed_.learn(emitted, ms / plan.ar_ms, tokens_since_draft_);
        tokens_since_draft_ = 0;
      }
      ++drafted_in_a_row_;
    } else {
      bound_.decoded(verify + other);
      learn_ar(verify + other);
      drafted_in_a_row_ = 0;
    }
    round_.planned = false;
  }
  follow(outcome.emitted);
}

void Controller::skip(std::span<const uint32_t> tokens) {
  tokens_since_draft_ += static_cast<uint32_t>(tokens.size());
  follow(tokens);
}

void Controller::follow(std::span<const uint32_t> tokens) {
  tokens_since_settled_ += static_cast<uint32_t>(tokens.size());
  ledger_.follow(tokens, [this](const DraftOutcome& settled) { settle(settled); });
  free_ledger_.follow(tokens, [this](const DraftOutcome& settled) { settle_free(settled); });
}

void Controller::learn_ar(double ms) {
  if (ar_mean_ms_ == 0) ar_mean_ms_ = ms;
  const double off = ms - ar_mean_ms_;
  ar_mean_ms_ += off / ar_mean_rounds;
  ar_variance_ += (off * off - ar_variance_) / ar_mean_rounds;
}

/// The milliseconds that the bound assumes for an AR round. On a noisy device drafts are allowed at just those moments
/// at which plain decoding looks slow by chance: a standard error less than its mean, while that is not out of date.
double Controller::cautious_ar_ms() const {
  const double predicted = round_.plan.ar_ms;
  if (ar_mean_ms_ == 0 || drafted_in_a_row_ >= ar_mean_rounds) return predicted;
  const double error = std::sqrt(ar_variance_ / ar_mean_rounds);
  return std::min(predicted, std::max(ar_mean_ms_ / 2, ar_mean_ms_ - error));
}

void Controller::settle_free(const DraftOutcome& outcome) {
  free_calibrator_.learn(outcome.found);
  if (has_drafter()) return;
  const uint32_t width = std::min(judged_width, outcome.built());
  promises_.learn(outcome.raw[width - 1], outcome.predicted[width - 1], outcome.accepted(width));
  hindsight_.learn(outcome);
}

void Controller::settle(const DraftOutcome& outcome) {
  const uint32_t width = std::min(judged_width, outcome.built());
  promises_.learn(outcome.raw[width - 1], outcome.predicted[width - 1], outcome.accepted(width));
  calibrator_.learn(outcome);
  hindsight_.learn(outcome);
  const double kept = fading_over(tokens_since_settled_, lines_memory);
  tokens_since_settled_ = 0;
  tree_lines_.fade(kept);
  chain_lines_.fade(kept);
  tree_lines_.learn(outcome.predicted, [&](size_t i) { return outcome.accepted(static_cast<uint32_t>(i + 1)); });
  chain_lines_.learn(outcome.chain_predicted,
                     [&](size_t i) { return outcome.chain_accepted(static_cast<uint32_t>(i + 1)); });
}

}  // namespace canopy

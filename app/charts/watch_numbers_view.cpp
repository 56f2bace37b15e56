#include "app/charts/watch_numbers_view.h"

#include <algorithm>
#include <cmath>

#include "app/state/words.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {

Elsewhere elsewhere_up_to(const WhatIfThere& there, size_t reply, uint32_t context) {
  Elsewhere all;
  if (!there.problem.empty()) return all;
  all.device = there.name;
  all.detail = there.detail;
  all.from = there.from;
  all.at_most = !there.run.exact;
  double ms = 0, ar_ms = 0;
  for (const WhatIfRound& round : there.run.rounds) {
    if (round.reply != reply || round.record.context > context) continue;
    const uint32_t guesses = round.record.width - 1;
    all.least = all.rounds == 0 ? guesses : std::min(all.least, guesses);
    all.most = std::max(all.most, guesses);
    all.guesses = guesses;
    all.tokens += static_cast<double>(round.record.emitted.size());
    ms += round.record.ms.total();
    ar_ms += round.ar_ms;
    ++all.rounds;
  }
  if (all.rounds == 0 || ms <= 0 || ar_ms <= 0) return all;
  const auto rounds = static_cast<double>(all.rounds);
  all.ratio = ar_ms / ms;
  all.plain_tokens = ms / (ar_ms / all.tokens) / rounds;
  all.tokens /= rounds;
  return all;
}

namespace {

constexpr double kClearlyFaster = 1.05;  // least ratio that is shown as one
constexpr double kPaysPerGuess = 0.4;    // a pass that costs so many plain tokens a row pays for each guess
constexpr double kRidesAlong = 2;        // a pass that costs no more plain tokens carries its guesses nearly free
constexpr size_t kMostCurvePoints = 64;

/// 469, 39.8, 4.21: three digits.
std::string three_digits(double value) {
  return value >= 99.95 ? whole(value) : fixed(value, value >= 9.995 ? 1 : 2);
}

/// "29", "2.4": of plain tokens.
std::string in_tokens(double value) {
  return value >= 9.95 ? whole(value) : fixed(value, 1);
}

std::string guesses_words(uint32_t guesses) {
  return counted(guesses, "guess", "guesses");
}

/// "an RTX 4090": the names of the profiles begin with letters that are spelt out.
std::string article(const std::string& device) {
  const bool vowel = !device.empty() && std::string_view("AEFHILMNORSX").find(device[0]) != std::string_view::npos;
  return (vowel ? "an " : "a ") + device;
}

std::string span_words(uint32_t least, uint32_t most) {
  return least == most ? guesses_words(most) : grouped(least) + " to " + guesses_words(most);
}

void add_tokens(const WatchQuestion& q, WatchNumbers& numbers) {
  const RoundStatistics& s = q.reply->rounds;
  if (s.rounds() == 0) return;
  numbers.tokens_per_pass = s.tau();
  numbers.passes = s.rounds();
  numbers.tokens = {true,
                    fixed(s.tau(), 1),
                    "",
                    "tokens per pass",
                    "plain decoding gets 1",
                    q.live            ? "measured"
                    : q.times.empty() ? "replayed"
                                      : "re-run",
                    "The tokens of this reply so far over the passes of the big model that wrote them: " +
                        counted(s.emitted(), "token", "tokens") + " / " + counted(s.rounds(), "pass", "passes") +
                        " = " + fixed(s.tau(), 2) + ". Plain decoding writes one token with each pass."};
}

std::string times_badge(const WatchQuestion& q) {
  if (!q.times.empty()) return q.times;
  return q.live ? "measured" : "replayed";
}

/// Nothing is "here" whose times are of another device.
std::string where_of(const WatchQuestion& q) {
  return q.times.empty() ? "here" : q.times;
}

/// What the cost says of this device, in a few words; may be empty.
std::string cost_remark(const WatchQuestion& q, const WatchNumbers& numbers) {
  if (numbers.plain_tokens <= kRidesAlong) return "the guesses ride along";
  if (numbers.plain_tokens < kPaysPerGuess * (numbers.guesses + 1)) return "";
  return q.on_cpu ? "this CPU pays per guess" : "this device pays per guess";
}

void add_plain_tokens(const WatchQuestion& q, WatchNumbers& numbers) {
  WatchNumber& cost = numbers.cost;
  ArReference plain = *q.plain;
  plain.where.clear();  // the number stands beside the names of model and device
  const double plain_ms = plain.ms();
  if (plain_ms <= 0) {
    cost.subtitle = "plain decoding was not measured here yet";
    cost.why += " How many plain tokens that is, is not known: plain decoding was not measured here yet.";
    return;
  }
  numbers.plain_tokens = numbers.pass_ms / plain_ms;
  const std::string tokens = in_tokens(numbers.plain_tokens);
  const std::string count = tokens + (tokens == "1.0" ? " plain token" : " plain tokens");
  cost.subtitle = (plain.measured() ? "= " : "about ") + count;
  if (const std::string remark = cost_remark(q, numbers); !remark.empty()) cost.subtitle += ": " + remark;
  cost.why += " One plain token takes " + milliseconds(plain_ms) + " (" + ar_origin(plain, q.now_ms) +
              "): " + three_digits(numbers.pass_ms) + " / " + three_digits(plain_ms) + " = " + count + ".";
}

/// What a mixture's pass had to read; empty of other models.
std::string experts_words(const RoundRecord& pass) {
  if (pass.distinct_experts <= 0) return "";
  const std::string tokens =
      pass.width == 1 ? "its one token needed " : "its " + grouped(pass.width) + " tokens together needed ";
  return " This model is split into experts, of which a token needs a few: " + tokens +
         fixed(pass.distinct_experts, 1) + " different ones of a layer, on average, and these had to be read.";
}

void add_cost(const WatchQuestion& q, WatchNumbers& numbers) {
  if (q.shown == nullptr || q.shown->ms.total() <= 0) return;
  const RoundTimes& ms = q.shown->ms;
  numbers.pass_ms = ms.total();
  numbers.guesses = q.shown->width - std::min(q.shown->width, 1u);
  WatchNumber& cost = numbers.cost;
  cost = {true, three_digits(ms.total()), "ms", "", "", times_badge(q), ""};
  if (numbers.guesses == 0) {
    cost.title = "a plain pass, " + where_of(q);
    cost.subtitle = "nothing was guessed this time";
    cost.why = "The time of this pass: " + milliseconds(ms.total()) + ". Nothing was guessed, it wrote one token." +
               experts_words(*q.shown);
    return;
  }
  cost.title = "a pass over " + guesses_words(numbers.guesses) + ", " + where_of(q);
  const bool from_text = guessed_by(*q.shown) == kFromSuffix;
  cost.why = "The time of this pass " + (q.times.empty() ? "by the clock" : "there, " + q.times) + ": " +
             (from_text ? "none to guess, as all was found in the text, + " : three_digits(ms.draft) + " to guess + ") +
             three_digits(ms.verify) + " to check + " + three_digits(ms.total() - ms.draft - ms.verify) +
             " for the rest = " + milliseconds(ms.total()) + "." + experts_words(*q.shown);
  add_plain_tokens(q, numbers);
}

void add_elsewhere(const WatchQuestion& q, WatchNumbers& numbers) {
  if (q.elsewhere == nullptr || q.elsewhere->ratio <= 0) return;
  const Elsewhere& there = *q.elsewhere;
  numbers.ratio = there.ratio;
  numbers.device = there.device;
  numbers.least = there.least;
  numbers.most = there.most;
  const bool shown = there.ratio >= kClearlyFaster && enough_drafted(q.reply->rounds);
  const std::string detail = there.detail.empty() ? "" : " (" + there.detail + ")";
  numbers.elsewhere = {shown,
                       times(there.ratio),
                       "",
                       "as if on",
                       "over plain",
                       "predicted",
                       "Predicted, not measured: the same text in " + counted(there.rounds, "pass", "passes") + " of " +
                           article(numbers.device) + detail +
                           ", each of the size that would be chosen there: " + span_words(there.least, there.most) +
                           ". A pass then writes " + fixed(there.tokens, 1) + " tokens in the time of " +
                           fixed(there.plain_tokens, 1) + " plain ones, its guessing included: " + times(there.ratio) +
                           ". " + there.from + " What if shows more of it."};
}

std::string who_asked_for_plain(TreeSetBy set_by) {
  switch (set_by) {
    case TreeSetBy::recording: return "Plain decoding was set when this was recorded";
    case TreeSetBy::fallback: return "There is no drafter that could guess";
    default: return "Plain decoding was asked for";
  }
}

std::string who_set_the_tree(TreeSetBy set_by) {
  switch (set_by) {
    case TreeSetBy::recording: return "Set when this was recorded";
    case TreeSetBy::fallback: return "A small tree, to be looked at";
    default: return "You set them";
  }
}

std::string who_set(const RoundRecord& record, TreeSetBy set_by) {
  const bool plain = record.shape == DecodeMode::ar;
  switch (record.mode) {
    case DecodeMode::ar: return who_asked_for_plain(set_by);
    case DecodeMode::chain:
      if (plain) return "There was no room for a guess";
      return guessed_by(record) == kFromSuffix ? "One line, as far as the text suggests"
                                               : "One line, as long as the drafter guesses";
    case DecodeMode::tree: return plain ? "There was no room for a guess" : who_set_the_tree(set_by);
    case DecodeMode::adaptive: break;
  }
  return plain ? "Guessing was not expected to pay this time" : "Canopy chose them: the most tokens for their time";
}

/// What the text had to do with it, as a sentence behind that of who_set(); empty where it had nothing.
std::string who_guessed(const RoundRecord& record) {
  const DraftSources sources = guessed_by(record);
  if (sources == kFromSuffix) return ". All were found in the text, so no drafter was asked";
  if (sources == kUsualSources) {
    const auto by_text = [](const RoundNode& row) { return (row.node.sources & kFromSuffix) != 0; };
    const auto found = static_cast<uint64_t>(std::ranges::count_if(record.nodes, by_text));
    return ". " + grouped(found) + " of them " + (found == 1 ? "was" : "were") + " found in the text";
  }
  return record.match > 0 ? ". What the text suggests was left out" : "";
}

void add_curve(const RoundRecord& record, const BudgetView& budget, BudgetLine& line) {
  if (budget.predicted.size() < 2) return;
  double highest = budget.ar_tokens_per_second;
  for (const WidthSpeed& each : budget.predicted) highest = std::max(highest, each.tokens_per_second());
  const double widest = budget.predicted.back().budget();
  if (highest <= 0 || widest <= 0) return;
  const auto point = [&](uint32_t width, double speed) {
    return BudgetLine::Point{static_cast<float>((width - 1) / widest), static_cast<float>(speed / highest)};
  };
  const size_t count = budget.predicted.size(), step = (count + kMostCurvePoints - 1) / kMostCurvePoints;
  for (size_t i = 0; i < count; i += step)
    line.curve.push_back(point(budget.predicted[i].width, budget.predicted[i].tokens_per_second()));
  if ((count - 1) % step != 0)
    line.curve.push_back(point(budget.predicted.back().width, budget.predicted.back().tokens_per_second()));
  if (budget.ar_tokens_per_second > 0) line.plain = static_cast<float>(budget.ar_tokens_per_second / highest);
  const WidthSpeed& own = budget.own ? *budget.own : budget.realised;
  line.own = point(std::max(1u, record.width), std::min(highest, own.tokens_per_second()));
  line.own.x = std::min(1.0f, line.own.x);
}

}  // namespace

WatchNumbers watch_numbers(const WatchQuestion& question) {
  WatchNumbers numbers;
  add_tokens(question, numbers);
  add_cost(question, numbers);
  add_elsewhere(question, numbers);
  return numbers;
}

BudgetLine budget_line(const RoundRecord& record, const BudgetView& budget, TreeSetBy set_by,
                       const Elsewhere* elsewhere) {
  BudgetLine line;
  const uint32_t guesses = record.width - std::min(record.width, 1u);
  line.question = guesses == 0 ? "Why no guesses?" : "Why " + guesses_words(guesses) + "?";
  line.sentence = who_set(record, set_by) + who_guessed(record);
  if (budget.best_budget && record.mode != DecodeMode::ar && !(budget.was_chosen && budget.is_argmax)) {
    line.sentence += ". Best here: " + (*budget.best_budget == 0 ? std::string("none") : grouped(*budget.best_budget));
    line.badge = "predicted";
  } else if (budget.was_chosen) {
    line.badge = "predicted";
  }
  if (elsewhere != nullptr && elsewhere->guesses) {
    const std::string best = grouped(*elsewhere->guesses);
    const bool all = elsewhere->at_most && *elsewhere->guesses == guesses;  // more were not recorded
    line.elsewhere = "best on " + article(elsewhere->device) + ": " + best + (all ? " or more" : "");
    line.elsewhere_brief = elsewhere->device + ": " + best + (all ? "+" : "");
  }
  add_curve(record, budget, line);
  return line;
}

namespace {

/// What is known of the other device for the reply that holds this round; null where nothing is.
const WhatIfThere* there_of(const ViewModel& view, size_t round, size_t& reply) {
  const WhatIfAsked& chip = view.what_if.chip;
  const RoundLog& log = *view.rounds.log;
  if (chip.log.lock() != view.rounds.log || chip.answer.there.empty()) return nullptr;
  const size_t shown = log.summary(round).reply;
  reply = 0;
  if (log.is_live()) return log.replies()[shown].first_round == chip.first_round ? chip.answer.there[0].get() : nullptr;
  // Replies without a text are not re-run.
  for (size_t i = 0; i < shown; ++i) reply += log.replies()[i].first_token && log.replies()[i].rounds > 0 ? 1 : 0;
  return chip.answer.there[0].get();
}

/// The passes there up to the place of this round.
Elsewhere elsewhere_at(const ViewModel& view, std::optional<size_t> round, const RoundRecord* record) {
  // What is predicted already is not predicted from.
  if (!round || record == nullptr || !view.rounds.log->times().empty()) return {};
  size_t reply = 0;
  const WhatIfThere* there = there_of(view, *round, reply);
  return there != nullptr ? elsewhere_up_to(*there, reply, record->context) : Elsewhere();
}

/// The newest round that may be spoken of: the one on show, or the one before it; nullopt before the first.
std::optional<size_t> newest_with(const Playback& play, bool shown_too) {
  if (shown_too) return play.shown;
  return play.shown > 0 ? std::optional(play.shown - 1) : std::nullopt;
}

std::shared_ptr<const RoundRecord> record_of(const RoundLog& log, std::optional<size_t> round) {
  return round && *round < log.rounds() ? log.round(*round) : nullptr;
}

}  // namespace

void WatchSource::update(const ViewModel& view) {
  const std::shared_ptr<RoundLog>& log = view.rounds.log;
  const Playback& play = view.rounds.playback;
  // In slow motion tokens count when they have arrived in the text, and a pass has its price when it has been checked:
  // until then the figures are those of the passes before it. The tour is about one pass, and its figures stand still.
  const bool still = view.shell.tour.shown;
  const std::optional<size_t> counted = newest_with(play, still || play.told()),
                              priced = newest_with(play, still || play.checked());
  const TrailPoint nothing;
  const std::shared_ptr<const RoundRecord> pass = record_of(*log, priced);
  const ArReference plain = priced ? ar_reference(view, *priced) : ArReference();
  const std::shared_ptr<const RoundRecord> told = record_of(*log, counted);
  const Elsewhere elsewhere = elsewhere_at(view, counted, told.get());
  WatchQuestion question;
  question.reply = counted ? &trail_.up_to(log, *counted, StatisticsTrail::kRoundsAFrame) : &nothing;
  question.shown = pass.get();
  question.plain = &plain;
  question.elsewhere = &elsewhere;
  question.live = log->is_live();
  question.times = std::string(log->times());
  question.on_cpu = question.live ? view.model && view.model->on_processor() : log->on_processor();
  question.now_ms = view.chat.now_ms;
  numbers_ = watch_numbers(question);
  // The costs of the loaded pair hold for its own rounds alone.
  const CostSnapshot* costs = question.live ? view.calibration.costs.get() : nullptr;
  round_ = counted;
  budget_ = {};
  if (told) budget_ = budget_view(*told, costs, ar_reference(view, *counted));
  line_.reset();
  if (!pass) return;
  const Elsewhere there = elsewhere_at(view, priced, pass.get());
  line_ = budget_line(*pass, counted == priced ? budget_ : budget_view(*pass, costs, plain),
                      tree_set_by(view, *pass, log->summary(*priced).reply), &there);
}

namespace {

bool holds(const WidthAnswer& answer, uint32_t guesses) {
  return guesses >= answer.least && guesses <= answer.most;
}

}  // namespace

std::optional<uint32_t> best_guesses(const BudgetView& budget) {
  if (!budget.hindsight) return std::nullopt;
  if (budget.ar_tokens_per_second >= budget.hindsight->tokens_per_second()) return 0;
  return budget.hindsight->budget();
}

void WidthGame::set(bool on) {
  on_ = on;
  round_ = SIZE_MAX;
  answered_.reset();
  asked_ = right_ = 0;
}

void WidthGame::show(size_t round, const BudgetView& budget) {
  if (!on_ || round == round_) return;
  round_ = round;
  best_ = best_guesses(budget);
  answered_.reset();
}

void WidthGame::answer(size_t index) {
  if (!asking() || index >= kWidthAnswers.size()) return;
  answered_ = index;
  ++asked_;
  if (holds(kWidthAnswers[index], *best_)) ++right_;
}

std::string WidthGame::verdict() const {
  if (!answered_ || !best_) return "";
  const std::string best =
      *best_ == 0 ? "none would have been best here: plain decoding" : grouped(*best_) + " would have been best here";
  const WidthAnswer& said = kWidthAnswers[*answered_];
  return holds(said, *best_) ? "Right: " + best + "." : "You said " + std::string(said.words) + "; " + best + ".";
}

std::string WidthGame::points() const {
  return std::to_string(right_) + " of " + std::to_string(asked_) + " right";
}

}  // namespace canopy::app

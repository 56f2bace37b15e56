#include "app/charts/watch_numbers_view.h"

#include <algorithm>
#include <cmath>

#include "app/state/models.h"
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

/// "14.5 guesses", "no guess": of a pass, on average.
std::string guesses_of(double guesses) {
  if (guesses <= 0) return "no guess";
  const std::string count = fixed(guesses, 1);
  return (count.ends_with(".0") ? count.substr(0, count.size() - 2) : count) + (count == "1.0" ? " guess" : " guesses");
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
                    "",
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

/// Whose figures they are. Nothing is "here" that ran on another day or device.
std::string where_of(const WatchQuestion& q) {
  if (q.live) return " here";
  const std::string on = q.recorded_on.empty() ? ", as recorded" : " on " + q.recorded_on;
  return q.times.empty() ? on : on + ", " + q.times;
}

/// What the cost says of its device, in a few words; may be empty.
std::string cost_remark(const WatchQuestion& q, const WatchNumbers& numbers) {
  if (numbers.plain_tokens <= kRidesAlong) return "the guesses ride along";
  if (numbers.plain_tokens < kPaysPerGuess * (numbers.guesses + 1)) return "";
  return std::string(q.live ? "this " : "that ") + (q.on_cpu ? "CPU" : "device") + " pays per guess";
}

void add_plain_tokens(const WatchQuestion& q, WatchNumbers& numbers) {
  WatchNumber& cost = numbers.cost;
  ArReference plain = *q.plain;
  plain.where.clear();  // the number stands beside the names of model and device
  const double plain_ms = plain.ms();
  if (plain_ms <= 0) {
    const std::string unknown = std::string("plain decoding was not ") + (q.live ? "measured here yet" : "recorded");
    cost.subtitle = unknown;
    cost.why += " How many plain tokens that is, is not known: " + unknown + ".";
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

/// What the shown pass of a mixture had to read; empty of other models.
std::string experts_words(const RoundRecord* pass) {
  if (pass == nullptr || pass->distinct_experts <= 0) return "";
  const std::string tokens =
      pass->width == 1 ? "its one token needed " : "its " + grouped(pass->width) + " tokens together needed ";
  return " This model is split into experts, of which a token needs a few: in the pass on show " + tokens +
         fixed(pass->distinct_experts, 1) + " different ones of a layer, on average, and these had to be read.";
}

/// The time of a pass: the mean over those that the tokens per pass are the mean over.
void add_cost(const WatchQuestion& q, WatchNumbers& numbers) {
  const RoundStatistics& s = q.reply->rounds;
  if (s.rounds() == 0 || s.ms().total() <= 0) return;
  const auto passes = static_cast<double>(s.rounds());
  numbers.pass_ms = s.ms().total() / passes;
  numbers.guesses = static_cast<double>(s.drafted()) / passes;
  numbers.tokens_per_second = s.tokens_per_second();
  const std::string tokens_a_second = speed(numbers.tokens_per_second) + " tok/s";
  WatchNumber& cost = numbers.cost;
  cost = {true, three_digits(numbers.pass_ms), "ms", "", "", "", times_badge(q), ""};
  cost.title = (s.drafted() == 0 ? "a plain pass" : "a pass") + where_of(q) + ": " + tokens_a_second;
  cost.brief = "a pass: " + tokens_a_second;
  const double draft = s.ms().draft / passes, verify = s.ms().verify / passes;
  const std::string guessing = draft > 0         ? three_digits(draft) + " to guess + "
                               : s.drafted() > 0 ? "none to guess, as all was found in the text, + "
                                                 : "";
  cost.why = "The time of the same passes" + (q.times.empty() ? "" : ", " + q.times) + ", with " +
             guesses_of(numbers.guesses) + " each: " + three_digits(s.ms().total()) + " ms / " +
             counted(s.rounds(), "pass", "passes") + " = " + milliseconds(numbers.pass_ms) + ": " + guessing +
             three_digits(verify) + " to check + " + three_digits(numbers.pass_ms - draft - verify) +
             " for the rest. Tokens per pass over this time is the speed: " + fixed(s.tau(), 2) + " / " +
             milliseconds(numbers.pass_ms) + " = " + fixed(numbers.tokens_per_second, 1) + " tok/s." +
             experts_words(q.shown);
  if (s.drafted() == 0 && s.ms().draft <= 0) {
    cost.subtitle = "nothing was guessed so far";
    return;
  }
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
                       "",
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
    case TreeSetBy::client: return "Plain decoding was asked for by the client";
    default: return "Plain decoding was asked for";
  }
}

std::string who_set_the_tree(TreeSetBy set_by) {
  switch (set_by) {
    case TreeSetBy::recording: return "Set when this was recorded";
    case TreeSetBy::fallback: return "Not chosen: a small tree, to be looked at";
    case TreeSetBy::client: return "The client set them";
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
  return plain ? "Guessing was not expected to pay this time" : "Chosen: the most tokens for their time";
}

/// Who or what set the size of the tree. Not "the most tokens for their time" where the curve expects more of another.
std::string who_set(const RoundRecord& record, const BudgetView& budget, TreeSetBy set_by) {
  if (record.mode == DecodeMode::adaptive && record.shape != DecodeMode::ar && budget.best_budget &&
      !budget.is_argmax) {
    if (record.shape == DecodeMode::chain) return "One line, for what such lines brought lately";
    if (*budget.best_budget == 0) return "Tried, to see whether guessing pays by now";
  }
  return who_set(record, set_by);
}

/// What the text had to do with it, as a sentence behind that of who_set(); empty where it had nothing.
std::string who_guessed(const RoundRecord& record) {
  const DraftSources sources = guessed_by(record);
  if (sources == kFromSuffix) return ". All found in the text, without the drafter";
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
  line.sentence = who_set(record, budget, set_by) + who_guessed(record);
  if (budget.best_budget && record.mode != DecodeMode::ar && !(budget.was_chosen && budget.is_argmax)) {
    line.sentence +=
        ". Expected best: " + (*budget.best_budget == 0 ? std::string("plain") : grouped(*budget.best_budget));
    line.badge = "predicted";
  } else if (budget.was_chosen) {
    line.badge = "predicted";
  }
  // Of a pass without a guess nothing is known of what guessing would have brought.
  if (guesses > 0 && elsewhere != nullptr && elsewhere->guesses) {
    const std::string best = *elsewhere->guesses == 0 ? "none" : grouped(*elsewhere->guesses);
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

/// The newest round that may be spoken of: the one on show, or the one before it in the same reply; nullopt before the
/// first.
std::optional<size_t> newest_with(const RoundLog& log, const Playback& play, bool shown_too) {
  if (shown_too) return play.shown;
  if (play.shown == 0 || play.shown >= log.rounds()) return std::nullopt;
  const bool goes_on = log.first_of_reply(play.shown - 1) == log.first_of_reply(play.shown);
  return goes_on ? std::optional(play.shown - 1) : std::nullopt;
}

/// The last round whose tokens the chat shows: of an own reply that is written all of it, whatever pass is looked at,
/// as its speed in the chat is of all; else the round itself.
size_t last_in_chat(const RoundLog& log, const Playback& play, size_t round) {
  if (!log.is_live() || play.slow_motion || round >= log.rounds()) return round;
  size_t last = round;
  while (last + 1 < log.rounds() && log.first_of_reply(last + 1) == log.first_of_reply(round)) ++last;
  const size_t reply = log.summary(last).reply;
  return reply < log.replies().size() && log.replies()[reply].reason ? last : round;
}

std::shared_ptr<const RoundRecord> record_of(const RoundLog& log, std::optional<size_t> round) {
  return round && *round < log.rounds() ? log.round(*round) : nullptr;
}

}  // namespace

void WatchSource::update(const ViewModel& view) {
  const std::shared_ptr<RoundLog>& log = view.rounds.log;
  const Playback& play = view.rounds.playback;
  // In slow motion a pass counts when its tokens have arrived in the text: until then the means are those of the passes
  // before it, and of itself nothing is said. The tour is about one pass, and its figures stand still.
  const bool told_now = view.shell.tour.shown || play.told();
  const std::optional<size_t> counted = newest_with(*log, play, told_now);
  const TrailPoint nothing;
  const ArReference plain = counted ? ar_reference(view, *counted) : ArReference();
  const std::shared_ptr<const RoundRecord> told = record_of(*log, counted);
  std::optional<size_t> basis = counted;
  if (counted && !view.shell.tour.shown) basis = last_in_chat(*log, play, *counted);
  const Elsewhere elsewhere = elsewhere_at(view, basis, record_of(*log, basis).get());
  WatchQuestion question;
  question.reply = basis ? &trail_.up_to(log, *basis, StatisticsTrail::kRoundsAFrame) : &nothing;
  question.shown = told_now ? told.get() : nullptr;
  question.plain = &plain;
  question.elsewhere = &elsewhere;
  question.live = log->is_live();
  question.recorded_on = without_brackets(view.replay.origin().device);
  question.times = std::string(log->times());
  question.on_cpu = question.live ? view.model && view.model->on_processor() : log->on_processor();
  question.now_ms = view.chat.now_ms;
  numbers_ = watch_numbers(question);
  // The costs of the loaded pair hold for its own rounds alone.
  const CostSnapshot* costs = question.live ? view.calibration.costs.get() : nullptr;
  round_ = counted;
  budget_ = {};
  if (told) budget_ = budget_view(*told, costs, plain);
  line_.reset();
  if (!told || !told_now) return;
  line_ = budget_line(*told, budget_, tree_set_by(view, *told, log->summary(*counted).reply), &elsewhere);
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
      *best_ == 0 ? "none was best afterwards: plain decoding" : grouped(*best_) + " was best afterwards";
  const WidthAnswer& said = kWidthAnswers[*answered_];
  return holds(said, *best_) ? "Right: " + best + "." : "You said " + std::string(said.words) + "; " + best + ".";
}

std::string WidthGame::points() const {
  return std::to_string(right_) + " of " + std::to_string(asked_) + " right";
}

}  // namespace canopy::app

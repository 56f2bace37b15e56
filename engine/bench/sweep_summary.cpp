#include "engine/bench/sweep_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>

namespace canopy {
namespace {

bool is_speed(double value) {
  return std::isfinite(value) && value > 0;
}

/// The 97.5 % quantile of Student's distribution for the mean of so many values, two at least.
double errors_of_chance(uint32_t values) {
  constexpr double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                  2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093};
  return values - 2 < std::size(quantiles) ? quantiles[values - 2] : 2.09;
}

}  // namespace

double Spread::error() const {
  return count < 2 ? 0 : sd / std::sqrt(static_cast<double>(count));
}

Spread spread_of(std::span<const double> values) {
  Spread spread;
  spread.count = static_cast<uint32_t>(values.size());
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  if (values.size() == 1) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.sd = std::sqrt(squares / (count - 1));
  return spread;
}

bool Ratio::differs_from_one() const {
  return has_error() && std::abs(value - 1) > errors_of_chance(pairs) * error;
}

Ratio ratio_of_pairs(std::span<const std::pair<double, double>> pairs) {
  std::vector<double> logarithms;
  for (const auto& [first, second] : pairs) {
    if (is_speed(first) && is_speed(second)) logarithms.push_back(std::log(first) - std::log(second));
  }
  if (logarithms.empty()) return {};
  const Spread spread = spread_of(logarithms);
  const double value = std::exp(spread.mean);
  return {value, value * spread.error(), spread.count};
}

namespace {

using nlohmann::ordered_json;

/// One column in one repeat, over the prompts that count.
struct RepeatSums {
  uint64_t tokens = 0;
  double ms = 0;
  double tokens_per_second() const { return ms > 0 ? 1000.0 * static_cast<double>(tokens) / ms : 0; }
};

class Summary {
 public:
  explicit Summary(const Sweep& sweep) : sweep_(sweep) {
    for (const MeasuredRun& run : sweep.runs) by_key_[run.key] = &run;
    for (const SweepPrompt& prompt : sweep.prompts) {
      if (std::ranges::find(categories_, prompt.category) == categories_.end()) categories_.push_back(prompt.category);
    }
    if (categories_.size() == 1) categories_.clear();
    categories_.push_back(kAllCategories);
  }

  std::vector<SweepCell> cells(uint32_t baseline) {
    std::vector<SweepCell> result;
    for (size_t i = 0; i < categories_.size(); ++i) {
      choose_runs(i + 1 == categories_.size() ? nullptr : &categories_[i]);
      for (uint32_t contestant = 0; contestant < sweep_.contestants.size(); ++contestant)
        result.push_back(cell(contestant, categories_[i], baseline));
    }
    return result;
  }

 private:
  const MeasuredRun* find(uint32_t contestant, uint32_t prompt, uint32_t repeat) const {
    const auto found = by_key_.find({contestant, prompt, repeat});
    return found == by_key_.end() ? nullptr : found->second;
  }

  bool all_have(uint32_t prompt, uint32_t repeat) const {
    for (uint32_t contestant = 0; contestant < sweep_.contestants.size(); ++contestant)
      if (find(contestant, prompt, repeat) == nullptr) return false;
    return true;
  }

  /// Fills counted_: by repeat, the prompts that count. category: null for all.
  void choose_runs(const std::string* category) {
    counted_.clear();
    std::vector<uint32_t> prompts;
    for (uint32_t i = 0; i < sweep_.prompts.size(); ++i)
      if (category == nullptr || sweep_.prompts[i].category == *category) prompts.push_back(i);
    for (uint32_t repeat = 0; repeat < sweep_.settings.repeats; ++repeat) {
      const bool whole = std::ranges::all_of(prompts, [&](uint32_t prompt) { return all_have(prompt, repeat); });
      if (whole) counted_[repeat] = prompts;
    }
    if (!counted_.empty()) return;
    std::vector<uint32_t> so_far;
    std::ranges::copy_if(prompts, std::back_inserter(so_far), [&](uint32_t prompt) { return all_have(prompt, 0); });
    if (!so_far.empty()) counted_[0] = so_far;
  }

  RepeatSums sums(uint32_t contestant, uint32_t repeat, const std::vector<uint32_t>& prompts) const {
    RepeatSums sums;
    for (const uint32_t prompt : prompts) {
      const MeasuredRun& run = *find(contestant, prompt, repeat);
      if (run.decode_ms <= 0) continue;  // a reply that came in one piece says nothing of speed
      sums.tokens += run.tokens > 0 ? run.tokens - 1 : 0;
      sums.ms += run.decode_ms;
    }
    return sums;
  }

  Ratio ratio(uint32_t contestant, uint32_t reference) const {
    std::vector<std::pair<double, double>> pairs;
    for (const auto& [repeat, prompts] : counted_)
      pairs.emplace_back(sums(contestant, repeat, prompts).tokens_per_second(),
                         sums(reference, repeat, prompts).tokens_per_second());
    return ratio_of_pairs(pairs);
  }

  SweepCell cell(uint32_t contestant, const std::string& category, uint32_t baseline) const {
    SweepCell cell;
    cell.contestant = contestant;
    cell.category = category;
    std::vector<double> speeds, joules;
    uint64_t rows = 0;
    for (const auto& [repeat, prompts] : counted_) {
      const RepeatSums total = sums(contestant, repeat, prompts);
      speeds.push_back(total.tokens_per_second());
      cell.tokens += total.tokens;
      double energy = 0;
      bool told = total.tokens > 0;
      for (const uint32_t prompt : prompts) {
        const MeasuredRun& run = *find(contestant, prompt, repeat);
        add_run(run, cell, rows);
        told = told && run.energy_j.has_value();
        energy += run.energy_j.value_or(0);
      }
      if (told) joules.push_back(energy / static_cast<double>(total.tokens));
    }
    finish(cell, rows);
    cell.tokens_per_second = spread_of(speeds);
    cell.joules_per_token = spread_of(joules);
    cell.times_baseline = ratio(contestant, baseline);
    if (const auto plain = sweep_.plain_of(contestant)) cell.times_plain = ratio(contestant, *plain);
    return cell;
  }

  static void add_run(const MeasuredRun& run, SweepCell& cell, uint64_t& rows) {
    ++cell.replies;
    cell.rounds += run.rounds;
    rows += run.rows;
    RoundTimes& ms = cell.round_ms;
    ms.draft += run.ms.draft;
    ms.build += run.ms.build;
    ms.verify += run.ms.verify;
    ms.walk += run.ms.walk;
    ms.commit += run.ms.commit;
    ms.other += run.ms.other;
    if (!run.differs_at) return;
    ++cell.different;
    cell.differs_at = std::min(cell.differs_at.value_or(*run.differs_at), *run.differs_at);
  }

  /// Sums over rounds become means.
  static void finish(SweepCell& cell, uint64_t rows) {
    if (cell.rounds == 0) return;
    const auto rounds = static_cast<double>(cell.rounds);
    cell.tau = static_cast<double>(cell.tokens) / rounds;
    cell.mean_rows = static_cast<double>(rows) / rounds;
    RoundTimes& ms = cell.round_ms;
    for (double* stage : {&ms.draft, &ms.build, &ms.verify, &ms.walk, &ms.commit, &ms.other}) *stage /= rounds;
  }

  const Sweep& sweep_;
  std::map<RunKey, const MeasuredRun*> by_key_;
  std::vector<std::string> categories_;  // kAllCategories last
  std::map<uint32_t, std::vector<uint32_t>> counted_;
};

ordered_json ratio_json(const Ratio& ratio) {
  if (!ratio.known()) return nullptr;
  return {{"value", ratio.value},
          {"error", ratio.has_error() ? ordered_json(ratio.error) : ordered_json(nullptr)},
          {"pairs", ratio.pairs}};
}

ordered_json cell_json(const Sweep& sweep, const SweepCell& cell) {
  const RoundTimes& ms = cell.round_ms;
  const WayToDecode& way = sweep.contestants[cell.contestant].way;
  ordered_json json = {{"name", sweep.name_of(cell.contestant)},
                       {"mode", std::string(to_string(way.mode))},
                       {"budget", way.budget > 0 ? ordered_json(way.budget) : ordered_json(nullptr)},
                       {"sources", list_of(way.sources)},
                       {"subject", sweep.contestants[cell.contestant].subject},
                       {"category", cell.category},
                       {"replies", cell.replies},
                       {"rounds", cell.rounds},
                       {"tokens", cell.tokens},
                       {"tau", cell.tau},
                       {"mean_rows", cell.mean_rows},
                       {"tokens_per_second", cell.tokens_per_second.mean},
                       {"sd", cell.tokens_per_second.sd},
                       {"repeats", cell.tokens_per_second.count},
                       {"times_baseline", ratio_json(cell.times_baseline)},
                       {"times_ar", ratio_json(cell.times_plain)},
                       {"round_ms", {{"draft", ms.draft}, {"verify", ms.verify}, {"total", ms.total()}}}};
  if (cell.joules_per_token.count > 0)
    json["joules_per_token"] = {{"mean", cell.joules_per_token.mean}, {"sd", cell.joules_per_token.sd}};
  json["different_texts"] = cell.different;
  json["differs_at"] = cell.differs_at ? ordered_json(*cell.differs_at) : ordered_json(nullptr);
  return json;
}

void add_agreement(const Sweep& sweep, std::vector<std::string>& sentences) {
  std::set<uint32_t> told;
  for (const MeasuredRun& run : sweep.runs) {
    const bool wrong = run.differs_at && sweep.must_agree(run.key.contestant, sweep.baseline);
    if (!wrong || !told.insert(run.key.contestant).second) continue;
    sentences.push_back(sweep.name_of(run.key.contestant) + " wrote another text than " +
                        sweep.name_of(sweep.baseline) + " from token " + std::to_string(*run.differs_at + 1) +
                        " on (prompt " + sweep.prompts[run.key.prompt].id +
                        "), which should not be possible: an error of this program or of the driver.");
  }
}

std::string with_digits(double value, int digits) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

struct PassSums {
  double rounds = 0, rows = 0, ms = 0;
  double mean_rows() const { return rounds > 0 ? rows / rounds : 0; }
  double mean_ms() const { return rounds > 0 ? ms / rounds : 0; }
};

/// Says of each subject whose widest passes took more than half as long for a row as plain ones that they did.
void add_dear_rows(const Sweep& sweep, std::vector<std::string>& sentences) {
  std::vector<PassSums> sums(sweep.contestants.size());
  for (const MeasuredRun& run : sweep.runs) {
    PassSums& of = sums[run.key.contestant];
    of.rounds += run.rounds;
    of.rows += static_cast<double>(run.rows);
    of.ms += run.ms.verify;
  }
  for (uint32_t subject = 0; subject < sweep.subjects.size(); ++subject) {
    std::optional<uint32_t> widest;
    for (uint32_t i = 0; i < sums.size(); ++i) {
      const bool wider = !widest || sums[i].mean_rows() > sums[*widest].mean_rows();
      if (sweep.contestants[i].subject == subject && wider) widest = i;
    }
    const std::optional<uint32_t> plain = widest ? sweep.plain_of(*widest) : std::nullopt;
    if (!plain || sums[*plain].mean_ms() <= 0) continue;
    const double rows = sums[*widest].mean_rows() / std::max(sums[*plain].mean_rows(), 1.0);
    const double ratio = sums[*widest].mean_ms() / sums[*plain].mean_ms();
    if (rows < 2 || ratio <= rows / 2) continue;
    sentences.push_back("On " + sweep.subjects[subject].device + " a pass of " + with_digits(rows, 1) + " rows (" +
                        sweep.name_of(*widest) + ") took " + with_digits(ratio, 1) +
                        " times as long as one of a row: wide trees cost much more there than on most GPUs.");
  }
}

}  // namespace

std::vector<SweepCell> summarize(const Sweep& sweep, uint32_t baseline) {
  return Summary(sweep).cells(baseline);
}

ordered_json summary_json(const Sweep& sweep, uint32_t baseline) {
  ordered_json json = ordered_json::array();
  for (const SweepCell& cell : summarize(sweep, baseline)) json.push_back(cell_json(sweep, cell));
  return json;
}

std::optional<double> drift(const Sweep& sweep) {
  std::map<uint32_t, std::pair<size_t, RepeatSums>> repeats;
  for (const MeasuredRun& run : sweep.runs) {
    if (run.key.contestant != sweep.baseline) continue;
    auto& [count, sums] = repeats[run.key.repeat];
    ++count;
    sums.tokens += run.tokens > 0 ? run.tokens - 1 : 0;
    sums.ms += run.decode_ms;
  }
  std::erase_if(repeats, [&](const auto& each) {
    return each.second.first != sweep.prompts.size() || each.second.second.tokens_per_second() <= 0;
  });
  if (repeats.size() < 2) return std::nullopt;
  return repeats.rbegin()->second.second.tokens_per_second() / repeats.begin()->second.second.tokens_per_second();
}

std::vector<std::string> remarks(const Sweep& sweep) {
  std::vector<std::string> sentences;
  add_agreement(sweep, sentences);
  if (sweep.settings.repeats < 2 || (!sweep.runs.empty() && !drift(sweep)))
    sentences.push_back("Nothing was measured twice as a whole yet: no error of the ratios is known.");
  if (const auto change = drift(sweep); change && std::abs(*change - 1) > 0.05) {
    sentences.push_back(sweep.name_of(sweep.baseline) + " became " +
                        std::to_string(std::lround(100 * std::abs(*change - 1))) + "% " +
                        (*change < 1 ? "slower" : "faster") +
                        " from the first repeat to the last (clocks, heat, other programs): trust the ratios more than "
                        "the speeds.");
  }
  add_dear_rows(sweep, sentences);
  return sentences;
}

namespace {

Agreement agreement_of(const Sweep& sweep) {
  Agreement agreement = sweep.runs.empty() ? Agreement::unknown : Agreement::same;
  for (const MeasuredRun& run : sweep.runs) {
    if (!run.differs_at) continue;
    if (sweep.must_agree(run.key.contestant, sweep.baseline)) return Agreement::must_not;
    agreement = Agreement::may;
  }
  return agreement;
}

std::string text_words(Agreement agreement, const Sweep& sweep, uint32_t contestant) {
  if (agreement == Agreement::same) return "same text";
  const bool differs = std::ranges::any_of(sweep.runs, [&](const MeasuredRun& run) {
    return run.key.contestant == contestant && run.differs_at.has_value();
  });
  if (agreement == Agreement::must_not) return differs ? "but another text" : "but not all texts are the same";
  return differs ? "another text, as it may be" : "same text";
}

}  // namespace

std::string ratio_figures(const Ratio& ratio) {
  if (!ratio.has_error()) return with_digits(ratio.value, 2);
  // One digit of the error, two where it begins with 1.
  int digits = 2;
  if (ratio.error > 0) {
    const double exponent = std::floor(std::log10(ratio.error));
    const bool begins_with_one = ratio.error / std::pow(10.0, exponent) < 1.95;
    digits = std::clamp(static_cast<int>(-exponent) + (begins_with_one ? 1 : 0), 1, 4);
  }
  return with_digits(ratio.value, digits) + " \u00b1 " + with_digits(ratio.error, digits);
}

std::string doubt_of(const Ratio& ratio) {
  if (ratio.pairs < 2) return ", measured once (three repeats show more)";
  if (ratio.pairs < kLeastRepeats) return ", measured twice (three repeats show more)";
  if (ratio.differs_from_one()) return {};
  return ", which " + std::to_string(ratio.pairs) + " repeats cannot tell from no difference";
}

bool decoded_plainly(const Sweep& sweep, const SweepCell& cell) {
  return sweep.contestants[cell.contestant].way.mode != DecodeMode::ar && cell.rounds > 0 && cell.mean_rows <= 1;
}

namespace {

std::vector<SweepCell> whole_cells_of(const Sweep& sweep, uint32_t baseline) {
  std::vector<SweepCell> cells = summarize(sweep, baseline);
  std::erase_if(cells, [](const SweepCell& cell) { return cell.category != kAllCategories || cell.replies == 0; });
  return cells;
}

/// Whether every other column is slower by more than chance explains.
bool beats_all(const Sweep& sweep, uint32_t contestant) {
  return std::ranges::all_of(whole_cells_of(sweep, contestant), [&](const SweepCell& cell) {
    return cell.contestant == contestant || (cell.times_baseline.value < 1 && doubt_of(cell.times_baseline).empty());
  });
}

}  // namespace

Verdict verdict_of(const Sweep& sweep) {
  Verdict verdict;
  verdict.agreement = agreement_of(sweep);
  std::vector<SweepCell> cells = whole_cells_of(sweep, sweep.baseline);
  if (cells.size() != sweep.contestants.size() || cells.empty()) return verdict;
  const auto speed = [](const SweepCell& cell) { return cell.tokens_per_second.mean; };
  const SweepCell best = *std::ranges::max_element(cells, {}, speed);
  const std::string base = sweep.name_of(sweep.baseline);
  if (cells.size() == 1) {
    verdict.sentence = base + " writes " + with_digits(speed(best), 1) + " tokens a second here";
    return verdict;
  }
  // Of a baseline that is the fastest, the strongest of the others says what speculation costs here.
  const bool base_is_best = best.contestant == sweep.baseline;
  if (base_is_best) std::erase_if(cells, [&](const SweepCell& cell) { return cell.contestant == sweep.baseline; });
  const SweepCell& named = *std::ranges::max_element(cells, {}, speed);
  const bool plainly = decoded_plainly(sweep, named);
  const std::string doubt = doubt_of(named.times_baseline);
  const bool shown = doubt.empty() && !plainly;
  verdict.sentence = sweep.name_of(named.contestant) + " is " + ratio_figures(named.times_baseline) + " \u00d7 " + base;
  if (!shown)
    verdict.sentence = "no winner here: " + verdict.sentence + doubt + (plainly ? ", and made no guesses" : "");
  else if (base_is_best)
    verdict.sentence = base + " is the fastest here: " + verdict.sentence;
  else
    verdict.sentence += " here";
  verdict.sentence += "; " + text_words(verdict.agreement, sweep, named.contestant);
  if (shown && beats_all(sweep, best.contestant)) verdict.fastest = best.contestant;
  return verdict;
}

}  // namespace canopy

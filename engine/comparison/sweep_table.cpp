#include "engine/comparison/sweep_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

#include "engine/comparison/sweep_overlay.h"
#include "engine/comparison/sweep_summary.h"
#include "engine/comparison/verdict.h"

namespace canopy {
namespace {

std::string decimals(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// The shortest text that is read back as the same number.
std::string whole_number(double value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string();
}

std::string optional_number(const std::optional<double>& value) {
  return value ? whole_number(*value) : "";
}

std::string ratio_value(const Ratio& ratio) {
  return ratio.known() ? decimals(ratio.value, 3) : "-";
}

std::string ratio_error(const Ratio& ratio) {
  return ratio.has_error() ? decimals(ratio.error, 3) : "-";
}

std::string same_words(const Sweep& sweep, const SweepCell& cell) {
  if (cell.replies == 0) return "-";
  if (cell.different == 0) return "yes";
  const std::string at = " at " + std::to_string(*cell.differs_at + 1);
  return (sweep.must_agree(cell.contestant, sweep.baseline) ? "NO" : "other") + at;
}

}  // namespace

TextTable summary_table(const Sweep& sweep, uint32_t baseline) {
  const std::vector<SweepCell> cells = summarize(sweep, baseline);
  const bool energy = std::ranges::any_of(cells, [](const SweepCell& c) { return c.joules_per_token.count > 0; });
  TextTable table;
  table.columns = {"category",   "way",       "tok/s",      "sd",    "x " + sweep.name_of(baseline),
                   "error of x", "S(N)",      "error of S", "tau",   "rows",
                   "round ms",   "same text", "replies",    "tokens"};
  if (energy) table.columns.insert(table.columns.end(), {"J/token", "sd of J"});
  for (const SweepCell& cell : cells) {
    std::vector<std::string> row = {cell.category,
                                    sweep.name_of(cell.contestant),
                                    decimals(cell.tokens_per_second.mean, 2),
                                    decimals(cell.tokens_per_second.sd, 2),
                                    ratio_value(cell.times_baseline),
                                    ratio_error(cell.times_baseline),
                                    ratio_value(cell.times_plain),
                                    ratio_error(cell.times_plain),
                                    cell.rounds > 0 ? decimals(cell.tau, 2) : "-",
                                    cell.rounds > 0 ? decimals(cell.mean_rows, 1) : "-",
                                    cell.rounds > 0 ? decimals(cell.round_ms.total(), 2) : "-",
                                    same_words(sweep, cell),
                                    std::to_string(cell.replies),
                                    std::to_string(cell.tokens)};
    if (energy) {
      const bool told = cell.joules_per_token.count > 0;
      row.push_back(told ? decimals(cell.joules_per_token.mean, 3) : "-");
      row.push_back(told ? decimals(cell.joules_per_token.sd, 3) : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable runs_table(const Sweep& sweep) {
  TextTable table;
  table.columns = {"contestant", "mode",     "budget",        "subject",       "prompt",   "category",
                   "repeat",     "place",    "prompt_tokens", "reused_tokens", "tokens",   "rounds",
                   "rows",       "widest",   "prefill_ms",    "decode_ms",     "draft_ms", "build_ms",
                   "verify_ms",  "walk_ms",  "commit_ms",     "other_ms",      "reason",   "text_hash",
                   "differs_at", "energy_j", "clock_mhz",     "temperature_c"};
  for (const MeasuredRun& run : sweep.runs) {
    const SweepContestant& contestant = sweep.contestants[run.key.contestant];
    const SweepPrompt& prompt = sweep.prompts[run.key.prompt];
    table.rows.push_back({std::to_string(run.key.contestant),
                          std::string(to_string(contestant.way.mode)),
                          contestant.way.budget > 0 ? std::to_string(contestant.way.budget) : "",
                          std::to_string(contestant.subject),
                          prompt.id,
                          prompt.category,
                          std::to_string(run.key.repeat),
                          std::to_string(run.place),
                          std::to_string(run.prompt_tokens),
                          std::to_string(run.reused_tokens),
                          std::to_string(run.tokens),
                          std::to_string(run.rounds),
                          std::to_string(run.rows),
                          std::to_string(run.widest),
                          whole_number(run.prefill_ms),
                          whole_number(run.decode_ms),
                          whole_number(run.ms.draft),
                          whole_number(run.ms.build),
                          whole_number(run.ms.verify),
                          whole_number(run.ms.walk),
                          whole_number(run.ms.commit),
                          whole_number(run.ms.other),
                          to_string(run.reason),
                          run.text_hash,
                          run.differs_at ? std::to_string(*run.differs_at) : "",
                          optional_number(run.energy_j),
                          optional_number(run.clock_mhz),
                          optional_number(run.temperature_c)});
  }
  return table;
}

Overlay overlay_table(const Sweep& sweep, const Sweep& other) {
  Overlay result{overlay_name(other, sweep), {}};
  result.table.columns = {
      "way",        "tok/s",       "sd",        "S(N)",         "error",          "tau",      "their tok/s", "their sd",
      "their S(N)", "their error", "their tau", "times theirs", "error of times", "same text"};
  for (const OverlayRow& row : overlay(sweep, other).rows) {
    const auto add = [](const SweepCell& cell, std::vector<std::string>& cells) {
      cells.push_back(decimals(cell.tokens_per_second.mean, 2));
      cells.push_back(decimals(cell.tokens_per_second.sd, 2));
      cells.push_back(ratio_value(cell.times_plain));
      cells.push_back(ratio_error(cell.times_plain));
      cells.push_back(cell.rounds > 0 ? decimals(cell.tau, 2) : "-");
    };
    std::vector<std::string> cells = {row.way.name()};
    add(row.ours, cells);
    add(row.theirs, cells);
    cells.push_back(ratio_value(row.times_theirs));
    cells.push_back(ratio_error(row.times_theirs));
    cells.push_back(row.texts > 0 ? std::to_string(row.same_texts) + " of " + std::to_string(row.texts) : "-");
    result.table.rows.push_back(std::move(cells));
  }
  return result;
}

std::string sweep_headline(const Sweep& sweep) {
  std::string words;
  std::set<std::string> told;
  for (const SweepSubject& subject : sweep.subjects) {
    std::string one = subject.model;
    if (!subject.drafter.empty()) one += ", drafter " + subject.drafter;
    if (!subject.kv.empty()) one += ", K/V in " + subject.kv;
    one += (subject.is_server() ? ", at " : ", on ") + subject.device;
    if (!subject.driver.empty()) one += " (" + subject.driver + ")";
    if (!told.insert(one).second) continue;
    words += (words.empty() ? "" : "; ") + one;
  }
  return words + "; canopy " + sweep.version + " at " + sweep.commit + ", " + sweep.created.substr(0, 10);
}

}  // namespace canopy

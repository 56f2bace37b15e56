#include "engine/bench/sweep_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace canopy {
namespace {

/// The sweep with the prompts of these hashes alone.
Sweep with_prompts(const Sweep& sweep, const std::set<std::string>& hashes) {
  Sweep part = sweep;
  part.prompts.clear();
  part.runs.clear();
  std::map<uint32_t, uint32_t> indices;
  for (uint32_t i = 0; i < sweep.prompts.size(); ++i) {
    if (!hashes.contains(sweep.prompts[i].hash)) continue;
    indices[i] = static_cast<uint32_t>(part.prompts.size());
    part.prompts.push_back(sweep.prompts[i]);
    part.prompts.back().category = kAllCategories;  // one set of cells
  }
  for (MeasuredRun run : sweep.runs) {
    const auto index = indices.find(run.key.prompt);
    if (index == indices.end()) continue;
    run.key.prompt = index->second;
    part.runs.push_back(std::move(run));
  }
  return part;
}

std::set<std::string> hashes_of(const Sweep& sweep) {
  std::set<std::string> hashes;
  for (const SweepPrompt& prompt : sweep.prompts) hashes.insert(prompt.hash);
  return hashes;
}

/// By prompt's hash: of a column's text in the first repeat.
std::map<std::string, std::string> texts_of(const Sweep& sweep, uint32_t contestant) {
  std::map<std::string, std::string> texts;
  for (const MeasuredRun& run : sweep.runs)
    if (run.key.contestant == contestant && run.key.repeat == 0)
      texts[sweep.prompts[run.key.prompt].hash] = run.text_hash;
  return texts;
}

Ratio ratio_of_means(const Spread& a, const Spread& b) {
  if (a.mean <= 0 || b.mean <= 0) return {};
  Ratio ratio{a.mean / b.mean, 0, std::min(a.count, b.count)};
  if (ratio.has_error()) ratio.error = ratio.value * std::hypot(a.error() / a.mean, b.error() / b.mean);
  return ratio;
}

std::string sampling_of(const Sweep& sweep) {
  const SamplingSettings& s = sweep.settings.sampling;
  if (s.temperature <= 0) return "the likeliest token";
  std::ostringstream temperature;
  temperature << s.temperature;
  return "temperature " + temperature.str() + ", seed " + std::to_string(s.seed);
}

void note_differences(const Sweep& ours, const Sweep& theirs, std::vector<std::string>& notes) {
  const auto note = [&](const std::string& what, const std::string& here, const std::string& there) {
    if (here != there) notes.push_back("The " + what + " differ: " + here + " here, " + there + " there.");
  };
  note("longest replies", std::to_string(ours.settings.max_tokens) + " tokens",
       std::to_string(theirs.settings.max_tokens) + " tokens");
  note("ways to choose tokens", sampling_of(ours), sampling_of(theirs));
  if (ours.subjects.empty() || theirs.subjects.empty()) return;
  const SweepSubject &a = ours.subjects.front(), &b = theirs.subjects.front();
  note("models", a.model + " " + a.quantization, b.model + " " + b.quantization);
  note("drafters", a.drafter.empty() ? "none" : a.drafter, b.drafter.empty() ? "none" : b.drafter);
  note("types of keys and values", a.kv, b.kv);
  note("contexts", std::to_string(a.context) + " positions", std::to_string(b.context) + " positions");
  const std::string family_a = kernel_family(a.kernels), family_b = kernel_family(b.kernels);
  note("kernels", family_a.empty() ? "not said" : family_a, family_b.empty() ? "not said" : family_b);
  if (family_a == family_b && a.kernels != b.kernels)
    notes.push_back("Of the same kernels, timing chose other variants on the two devices.");
  note("versions of Canopy", ours.version + " at " + ours.commit, theirs.version + " at " + theirs.commit);
}

}  // namespace

OverlayResult overlay(const Sweep& ours, const Sweep& theirs) {
  OverlayResult result;
  std::set<std::string> both;
  const std::set<std::string> own = hashes_of(ours), other = hashes_of(theirs);
  std::ranges::set_intersection(own, other, std::inserter(both, both.end()));
  result.prompts = both.size();
  note_differences(ours, theirs, result.notes);
  if (both.size() < own.size() || both.size() < other.size())
    result.notes.push_back(std::to_string(both.size()) + " prompts are in both; the others are left out.");
  if (both.empty()) return result;
  const Sweep a = with_prompts(ours, both), b = with_prompts(theirs, both);
  // Replies of other lengths, or drawn otherwise, are other texts whatever wrote them.
  const bool same_replies =
      ours.settings.max_tokens == theirs.settings.max_tokens && sampling_of(ours) == sampling_of(theirs);
  if (!same_replies)
    result.notes.push_back("The replies end elsewhere or are drawn otherwise, so their texts are not compared.");
  const std::vector<SweepCell> cells_a = summarize(a, a.baseline), cells_b = summarize(b, b.baseline);
  for (uint32_t i = 0; i < a.contestants.size(); ++i) {
    const WayToDecode way = a.contestants[i].way;
    const auto is_way = [&](const SweepContestant& column) { return column.way == way; };
    if (std::ranges::find_if(a.contestants, is_way) - a.contestants.begin() != static_cast<std::ptrdiff_t>(i)) continue;
    const auto match = std::ranges::find_if(b.contestants, is_way);
    if (match == b.contestants.end()) continue;
    const auto k = static_cast<uint32_t>(match - b.contestants.begin());
    OverlayRow row{way, cells_a[i], cells_b[k], {}, 0, 0};
    row.times_theirs = ratio_of_means(row.ours.tokens_per_second, row.theirs.tokens_per_second);
    const auto texts = same_replies ? texts_of(b, k) : std::map<std::string, std::string>();
    for (const auto& [hash, text] : texts_of(a, i)) {
      const auto found = texts.find(hash);
      if (found == texts.end() || text.empty()) continue;
      ++row.texts;
      row.same_texts += found->second == text ? 1 : 0;
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

std::string overlay_name(const Sweep& other, const Sweep& beside) {
  if (other.subjects.empty()) return "another sweep";
  const SweepSubject& subject = other.subjects.front();
  const bool same_device = !beside.subjects.empty() && beside.subjects.front().device == subject.device;
  const bool same_model = !beside.subjects.empty() && beside.subjects.front().model == subject.model;
  std::string name = subject.device;
  if (!same_model) name += ", " + subject.model;
  if (same_device && same_model) name += ", " + other.created.substr(0, 10);
  return name;
}

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
                   "pass ms",    "same text", "replies",    "tokens"};
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
    if (subject.earlier_replies > 0) {
      one += ", drafts from " + std::to_string(subject.earlier_replies) + " earlier replies, " +
             std::to_string(subject.earlier_tokens) + " tokens";
    }
    if (!told.insert(one).second) continue;
    words += (words.empty() ? "" : "; ") + one;
  }
  return words + "; canopy " + sweep.version + " at " + sweep.commit + ", " + sweep.created.substr(0, 10);
}

}  // namespace canopy

#include "app/cli/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>

#include "app/cli/terminal.h"
#include "app/state/built_commit.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/session/measured_report.h"

namespace canopy::cli {
namespace {

std::vector<uint32_t> encode(const Engine& model, const std::string& text) {
  return model.prompt_ids({{"user", text}}, "");
}

/// The texts of the prompts joined to at least `bytes` bytes, beginning with number `first`; after the last one it
/// starts again with the first.
std::string joined(const std::vector<MeasuredPrompt>& prompts, size_t first, size_t bytes) {
  std::string text;
  for (size_t i = first; text.size() < bytes; ++i) text += prompts[i % prompts.size()].text + "\n\n";
  return text;
}

/// The byte positions after the words of a text, where it may be cut.
std::vector<size_t> word_ends(const std::string& text) {
  std::vector<size_t> ends = {0};
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ' ' && text[i - 1] != ' ') ends.push_back(i);
  }
  return ends;
}

std::vector<uint32_t> prompt_of_length(const Engine& model, const std::vector<MeasuredPrompt>& prompts, size_t first,
                                       uint32_t length) {
  constexpr size_t bytes_a_token = 16;  // more than any token of running text has
  const std::string text = joined(prompts, first, length * bytes_a_token);
  const std::vector<size_t> ends = word_ends(text);
  // Search for the largest number of words that fits: more words give more tokens.
  size_t fits = 0, too_many = ends.size();
  std::vector<uint32_t> best = encode(model, "");
  if (best.size() > length) {
    throw bad_input("A prompt of " + std::to_string(length) + " tokens was asked for; the chat template alone has " +
                    std::to_string(best.size()) + ".");
  }
  while (too_many - fits > 1) {
    const size_t middle = fits + (too_many - fits) / 2;
    std::vector<uint32_t> ids = encode(model, text.substr(0, ends[middle]));
    if (ids.size() > length) {
      too_many = middle;
    } else {
      fits = middle;
      best = std::move(ids);
    }
  }
  return best;
}

}  // namespace

std::vector<std::filesystem::path> prompt_paths(const std::vector<std::string>& named) {
  std::vector<std::filesystem::path> paths(named.begin(), named.end());
  if (paths.empty()) {
    const auto shipped = find_asset("prompts");
    if (!shipped) throw UsageError("Canopy's own prompts are not beside the program; name some with --prompts.");
    paths.push_back(*shipped);
  }
  return paths;
}

std::vector<BenchPrompt> encode_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts) {
  std::vector<BenchPrompt> encoded;
  for (const MeasuredPrompt& prompt : prompts) encoded.push_back({prompt.category, encode(model, prompt.text)});
  return encoded;
}

std::vector<BenchPrompt> long_prompts(const Engine& model, const std::vector<MeasuredPrompt>& prompts,
                                      const std::vector<uint32_t>& lengths, uint32_t count) {
  std::vector<BenchPrompt> result;
  for (const uint32_t length : lengths) {
    for (uint32_t i = 0; i < count; ++i) {
      const size_t first = prompts.size() * i / count;
      result.push_back({std::to_string(length) + " tokens", prompt_of_length(model, prompts, first, length)});
    }
  }
  return result;
}

namespace {

using nlohmann::ordered_json;

std::string budget_cell(const WayToDecode& way) {
  return way.budget > 0 ? std::to_string(way.budget) : "-";
}

ordered_json budget_json(const WayToDecode& way) {
  return way.budget > 0 ? ordered_json(way.budget) : ordered_json(nullptr);
}

/// "adaptive", "adaptive (suffix)"
std::string mode_cell(const WayToDecode& way) {
  return WayToDecode{way.mode, 0, way.sources}.name();
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits);
}

double share(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// The standard deviation of the ratios of single repeats.
double sd_of(const Ratio& ratio) {
  return ratio.error * std::sqrt(static_cast<double>(ratio.pairs));
}

bool has_correlation(const Correlation& expectation) {
  return expectation.squares_x > 0 && expectation.squares_y > 0;
}

/// Says of the figures that given rates decided that they did.
void mark_given(TextTable& table, std::initializer_list<std::string_view> columns) {
  for (std::string& column : table.columns) {
    if (std::ranges::find(columns, column) != columns.end()) column += " (given rates)";
  }
}

double per_round(const RoundStatistics& statistics, double ms) {
  return statistics.rounds() > 0 ? ms / static_cast<double>(statistics.rounds()) : 0;
}

}  // namespace

ordered_json describe_subject(const Engine& model) {
  const ModelReady ready = model.describe();
  return {{"device", ready.device},
          {"driver", ready.driver},
          {"backend", ready.backend},
          {"model", model.file_name},
          {"drafter", model.drafter_name},
          {"version", CANOPY_VERSION},
          {"commit", built_commit()},
          {"kv", ready.kv_type},
          {"kernels", kernel_family_of(model.model->device().info().kernels)}};
}

ordered_json to_json(const std::vector<ModeResult>& modes) {
  ordered_json array = ordered_json::array();
  for (const ModeResult& mode : modes) {
    array.push_back(
        {{"mode", to_string(mode.way.mode)},
         {"budget", budget_json(mode.way)},
         {"sources", list_of(mode.way.sources)},
         {"category", mode.category},
         {"tau", mode.tau},
         {"tokens_per_second", mode.tokens_per_second.mean},
         {"sd", mode.tokens_per_second.sd},
         {"identical_to_ar", mode.given_rates ? ordered_json(nullptr) : ordered_json(mode.identical_to_ar)},
         {"accepted_by", mode.given_rates ? "given rates" : "model"},
         {"times_ar", mode.times_ar.value},
         {"times_ar_sd", sd_of(mode.times_ar)},
         {"times_ar_error", mode.times_ar.error},
         {"host_share", mode.host_share},
         {"replies", mode.replies},
         {"rounds", mode.rounds},
         {"tokens", mode.tokens},
         {"expectation",
          {{"pairs", mode.expectation.pairs},
           {"mean_expected", mode.expectation.mean_x},
           {"mean_emitted", mode.expectation.mean_y},
           {"correlation", has_correlation(mode.expectation) ? ordered_json(mode.expectation.value()) : nullptr}}}});
  }
  return array;
}

ordered_json to_json(const std::vector<ContextResult>& contexts) {
  ordered_json array = ordered_json::array();
  for (const ContextResult& like : contexts) {
    const RoundStatistics& rounds = like.statistics;
    array.push_back(
        {{"mode", to_string(like.way.mode)},
         {"budget", budget_json(like.way)},
         {"sources", list_of(like.way.sources)},
         {"context_from", like.first},
         {"context_below", like.end},
         {"accepted_by", like.given_rates ? "given rates" : "model"},
         {"rounds", rounds.rounds()},
         {"tau", rounds.tau()},
         {"draft_ms", per_round(rounds, rounds.ms().draft)},
         {"verify_ms", per_round(rounds, rounds.ms().verify)},
         {"round_ms", per_round(rounds, rounds.ms().total())},
         {"expected", like.expectation.mean_x},
         {"correlation", has_correlation(like.expectation) ? ordered_json(like.expectation.value()) : nullptr}});
  }
  return array;
}

TextTable table_of(const std::vector<ContextResult>& contexts) {
  TextTable table{
      {"context", "mode", "budget", "passes", "tau", "draft ms", "verify ms", "pass ms", "expected", "correlation"},
      {}};
  for (const ContextResult& like : contexts) {
    const RoundStatistics& rounds = like.statistics;
    const bool drafted = like.expectation.pairs > 0;
    table.rows.push_back(
        {std::to_string(like.first) + " to " + std::to_string(like.end - 1), mode_cell(like.way), budget_cell(like.way),
         std::to_string(rounds.rounds()), fixed(rounds.tau(), 2), fixed(per_round(rounds, rounds.ms().draft), 2),
         fixed(per_round(rounds, rounds.ms().verify), 2), fixed(per_round(rounds, rounds.ms().total()), 2),
         drafted ? fixed(like.expectation.mean_x, 2) : "-",
         has_correlation(like.expectation) ? fixed(like.expectation.value(), 2) : "-"});
  }
  if (std::ranges::any_of(contexts, &ContextResult::given_rates)) mark_given(table, {"tau"});
  return table;
}

ordered_json to_json(const std::vector<ForcedResult>& results) {
  ordered_json array = ordered_json::array();
  for (const ForcedResult& result : results) {
    array.push_back({{"mode", to_string(result.way.mode)},
                     {"budget", budget_json(result.way)},
                     {"category", result.category},
                     {"replies", result.replies},
                     {"rounds", result.ours.rounds},
                     {"tokens", result.ours.tokens},
                     {"tau", result.ours.tau()},
                     {"reference_rounds", result.theirs.rounds},
                     {"reference_tokens", result.theirs.tokens},
                     {"reference_tau", result.theirs.tau()},
                     {"difference", result.difference()},
                     {"same_starts", result.same_starts},
                     {"same_lengths", result.same_lengths}});
  }
  return array;
}

TextTable table_of(const std::vector<ModeResult>& modes) {
  TextTable table{{"category", "mode", "budget", "tau", "tok/s", "sd", "x ar", "sd of x", "host %", "same as ar",
                   "replies", "tokens", "expected", "correlation"},
                  {}};
  for (const ModeResult& mode : modes) {
    const bool drafted = mode.expectation.pairs > 0;
    table.rows.push_back({mode.category, mode_cell(mode.way), budget_cell(mode.way), fixed(mode.tau, 2),
                          fixed(mode.tokens_per_second.mean, 2), fixed(mode.tokens_per_second.sd, 2),
                          fixed(mode.times_ar.value, 3), fixed(sd_of(mode.times_ar), 3), percent(mode.host_share, 3),
                          mode.given_rates       ? "-"
                          : mode.identical_to_ar ? "yes"
                                                 : "NO",
                          std::to_string(mode.replies), std::to_string(mode.tokens),
                          drafted ? fixed(mode.expectation.mean_x, 2) : "-",
                          has_correlation(mode.expectation) ? fixed(mode.expectation.value(), 2) : "-"});
  }
  if (std::ranges::any_of(modes, &ModeResult::given_rates)) mark_given(table, {"tau", "tok/s", "x ar"});
  return table;
}

TextTable table_of(const std::vector<ForcedResult>& results) {
  TextTable table{{"category", "mode", "budget", "replies", "passes", "tau", "their passes", "their tau",
                   "difference %", "same starts", "same lengths %"},
                  {}};
  for (const ForcedResult& result : results) {
    table.rows.push_back(
        {result.category, mode_cell(result.way), budget_cell(result.way), std::to_string(result.replies),
         std::to_string(result.ours.rounds), fixed(result.ours.tau(), 3), std::to_string(result.theirs.rounds),
         fixed(result.theirs.tau(), 3), percent(result.difference(), 2), std::to_string(result.same_starts),
         percent(share(result.same_lengths, result.same_starts), 1)});
  }
  return table;
}

namespace {

/// Of the mode adaptive with all sources, over all prompts.
std::optional<double> adaptive_times_ar(const std::vector<ModeResult>& modes) {
  for (const ModeResult& mode : modes) {
    if (mode.way.mode == DecodeMode::adaptive && mode.category == all_categories && mode.times_ar.known())
      return mode.times_ar.value;
  }
  return std::nullopt;
}

std::optional<double> aim_of(double gb_s, const std::string& kernels) {
  const EmulationAim aim;
  return gb_s == aim.gb_s && kernels == "avx512" ? std::optional(aim.times_ar) : std::nullopt;
}

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

ordered_json emulation_json(double gb_s, const std::string& kernels, const std::vector<ModeResult>& modes) {
  return {{"gb_s_a_thread", gb_s},
          {"adaptive_times_ar", or_null(adaptive_times_ar(modes))},
          {"aim", or_null(aim_of(gb_s, kernels))}};
}

std::string emulation_words(double gb_s, const std::string& kernels, const std::vector<ModeResult>& modes) {
  const EmulationAim aim;
  char text[160];
  std::snprintf(text, sizeof text, "Memory is emulated: %g GB/s for each thread. No speed here is this machine's own.",
                gb_s);
  std::string words = text;
  const std::optional<double> reached = adaptive_times_ar(modes);
  if (!reached) return words;
  words += "\nThere adaptive is " + fixed(*reached, 2) + " times as fast as plain decoding";
  if (aim_of(gb_s, kernels)) return words + "; the aim is " + fixed(aim.times_ar, 1) + ".";
  return words + ". (The aim of " + fixed(aim.times_ar, 1) + " is for AVX-512 at " + fixed(aim.gb_s, 0) + " GB/s.)";
}

std::string json_text(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_report(const std::string& target, const std::string& content) {
  if (target == "-") {
    std::cout << content << std::flush;
  } else if (!target.empty()) {
    std::cout << std::flush;  // should the file be standard output by another name
    write_file_atomically(target, content);
  }
}

std::string headline(const Engine& model) {
  const ModelReady ready = model.describe();
  return model.file_name + ", drafter " + model.drafter_name + ", K/V in " + ready.kv_type + ", on " + ready.device +
         " (" + ready.driver + "), kernels " + kernel_family_of(model.model->device().info().kernels) +
         ", canopy " CANOPY_VERSION " at " + built_commit();
}

}  // namespace canopy::cli

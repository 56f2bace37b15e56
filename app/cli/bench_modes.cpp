#include "app/cli/bench_modes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <numeric>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "app/cli/bench_report.h"
#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"

namespace canopy::cli {
namespace {

/// The measurements of one way in one category and one repeat.
struct Cell {
  RoundStatistics statistics;
  // Expected and emitted tokens of rounds whose draft was not cut by the reply's end.
  std::vector<std::pair<double, double>> promises;
  uint64_t replies = 0;
};

/// Contexts that are told together: below 512, and from each power of two up to the next.
std::pair<uint32_t, uint32_t> contexts_like(uint32_t context) {
  constexpr uint32_t least = 512;
  const uint32_t first = std::bit_floor(context);
  return context < least ? std::pair(0u, least) : std::pair(first, 2 * first);
}

/// In place of a category's name, for all prompts. No file has a category of that name.
constexpr const char* every_category = "";

class ModesBench {
 public:
  ModesBench(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
             const ModesCallbacks& callbacks)
      : model_(model), settings_(settings), callbacks_(callbacks) {
    for (const BenchPrompt& prompt : prompts) {
      if (std::ranges::find(categories_, prompt.category) == categories_.end()) categories_.push_back(prompt.category);
      sweep_.prompts.push_back({{}, prompt.category, {}});
      prompts_.push_back({{}, prompt.ids});
    }
    categories_.push_back(every_category);
    sweep_.subjects.emplace_back();
    for (const WayToDecode& way : settings.ways) sweep_.contestants.push_back({way, 0});
    sweep_.settings.policy = settings.policy;
    sweep_.settings.repeats = settings.repeats;
    sweep_.settings.max_tokens = settings.max_tokens;
  }

  ModesResult run() {
    RunnerCallbacks callbacks;
    callbacks.stop = callbacks_.stop;
    callbacks.begin = [this](const RunKey&, uint64_t done, uint64_t total, double) {
      if (callbacks_.progress) callbacks_.progress(done, total);
    };
    callbacks.made = [this](const RunnerReply& made) { take(made.run.key, made.reply); };
    callbacks.settings = [this](ReplySettings& reply) { reply.accept_rates = settings_.accept_rates; };
    run_comparison(sweep_, {ComparisonWriter{&model_, nullptr, nullptr, {}}}, prompts_, callbacks);
    const uint64_t all = sweep_.prompts.size();
    const auto whole = static_cast<uint32_t>(finished_prompts_ / all);
    // A repeat that was stopped early had other prompts than the whole ones, so it does not count beside them.
    if (finished_prompts_ == 0) throw cancelled("The measurement was stopped before any prompt was through all modes.");
    return summary(std::max(1u, whole), whole > 0 ? all : finished_prompts_);
  }

 private:
  /// Expected and emitted tokens; nothing where none were drafted or the reply's end cut them.
  static std::optional<std::pair<double, double>> promise_of(const RoundRecord& round) {
    if (round.width == 1 || drafted_part(round).cut) return std::nullopt;
    return std::pair(expected_tokens(round), static_cast<double>(round.emitted.size()));
  }

  using Key = std::tuple<std::string, size_t, uint32_t>;  // category, way, repeat

  /// Replies to a prompt count once all ways wrote one; the runner makes them one behind the other.
  void take(const RunKey& key, const Reply& reply) {
    block_.emplace_back(key, reply);
    if (block_.size() < settings_.ways.size()) return;
    for (const auto& [run, written] : block_) {
      for (const std::string& category : {sweep_.prompts[run.prompt].category, std::string(every_category)})
        add_reply({category, run.contestant, run.repeat}, written);
      add_contexts(run.contestant, written);
    }
    block_.clear();
    ++finished_prompts_;
  }

  void add_reply(const Key& key, const Reply& reply) {
    Cell& cell = cells_[key];
    ++cell.replies;
    for (const RoundRecord& round : reply.rounds) {
      cell.statistics.add(round);
      if (const auto promise = promise_of(round)) cell.promises.push_back(*promise);
    }
  }

  void add_contexts(size_t way, const Reply& reply) {
    for (const RoundRecord& round : reply.rounds) {
      const auto [first, end] = contexts_like(round.context);
      ContextResult& like = contexts_[{first, way}];
      like.way = settings_.ways[way];
      like.first = first;
      like.end = end;
      like.given_rates = !settings_.accept_rates.empty();
      like.statistics.add(round);
      if (const auto promise = promise_of(round)) like.expectation.add(promise->first, promise->second);
    }
  }

  bool identical(const std::string& category, size_t way) const {
    return std::ranges::none_of(sweep_.runs, [&](const MeasuredRun& run) {
      const bool counts = category == every_category || sweep_.prompts[run.key.prompt].category == category;
      return counts && run.key.contestant == way && run.differs_at;
    });
  }

  ModesResult summary(uint32_t repeats, uint64_t prompts) {
    ModesResult result{.repeats = repeats, .prompts = prompts, .modes = {}, .contexts = {}};
    for (const auto& [key, like] : contexts_) result.contexts.push_back(like);
    for (const std::string& category : categories_) {
      for (size_t way = 0; way < settings_.ways.size(); ++way) {
        if (!cells_.contains({category, way, 0})) continue;  // stopped before this category
        result.modes.push_back(summary(category, way, repeats));
      }
    }
    return result;
  }

  ModeResult summary(const std::string& category, size_t way, uint32_t repeats) {
    ModeResult result;
    result.way = settings_.ways[way];
    result.category = category == every_category ? all_categories : category;
    std::vector<double> speeds;
    std::vector<std::pair<double, double>> pairs;
    result.identical_to_ar = identical(category, way);
    result.given_rates = !settings_.accept_rates.empty();
    double host_ms = 0, total_ms = 0;
    for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
      const Cell& cell = cells_.at({category, way, repeat});
      const RoundTimes& ms = cell.statistics.ms();
      result.replies += cell.replies;
      result.rounds += cell.statistics.rounds();
      result.tokens += cell.statistics.emitted();
      for (const auto& [expected, emitted] : cell.promises) result.expectation.add(expected, emitted);
      host_ms += ms.build + ms.walk + ms.other;
      total_ms += ms.total();
      speeds.push_back(cell.statistics.tokens_per_second());
      pairs.emplace_back(speeds.back(), cells_.at({category, 0, repeat}).statistics.tokens_per_second());
    }
    if (result.rounds > 0) result.tau = static_cast<double>(result.tokens) / static_cast<double>(result.rounds);
    if (total_ms > 0) result.host_share = host_ms / total_ms;
    result.tokens_per_second = spread_of(speeds);
    result.times_ar = ratio_of_pairs(pairs);
    return result;
  }

  const Engine& model_;
  const ModesSettings& settings_;
  const ModesCallbacks& callbacks_;
  Sweep sweep_;
  std::vector<RunnerPrompt> prompts_;
  std::vector<std::string> categories_;
  std::map<Key, Cell> cells_;
  std::map<std::pair<uint32_t, size_t>, ContextResult> contexts_;  // by the first position and the way
  std::vector<std::pair<RunKey, Reply>> block_;                    // of the prompt under way
  uint64_t finished_prompts_ = 0;                                  // of all repeats
};

}  // namespace

ModesResult measure_modes(Engine& model, const std::vector<BenchPrompt>& prompts, const ModesSettings& settings,
                          const ModesCallbacks& callbacks) {
  return ModesBench(model, prompts, settings, callbacks).run();
}

double expected_tokens(const RoundRecord& record) {
  if (const WidthForecast* chosen = chosen_candidate(record)) return chosen->expected;
  double expected = 1;
  for (size_t i = 1; i < record.nodes.size(); ++i) expected += std::exp(double{record.nodes[i].node.score});
  return expected;
}

namespace {

constexpr uint64_t max_file_bytes = 256 << 20;
constexpr const char* everything = "";  // in place of a category's name

/// The name of a way to decode in the file.
std::string file_name_of(const WayToDecode& way) {
  return way.budget > 0 ? "tree" + std::to_string(way.budget) : std::string(to_string(way.mode));
}

bool names_a_way(const std::string& field) {
  return field == "chain" || (field.starts_with("tree") && field.size() > 4 &&
                              field.find_first_not_of("0123456789", 4) == std::string::npos);
}

std::vector<uint32_t> read_lengths(const JsonFields& reply, const std::string& way) {
  const nlohmann::json& object = reply.at(way.c_str());
  std::vector<uint32_t> lengths = JsonFields(object, reply.what() + ", " + way).ids("acceptance_lengths");
  if (lengths.empty() || std::ranges::find(lengths, 0u) != lengths.end()) {
    throw bad_input(reply.what() + ", " + way +
                    ": acceptance_lengths is empty or holds a 0; a length of 1 or more for every pass is needed.");
  }
  return lengths;
}

ForcedReply read_reply(const nlohmann::json& entry, const std::string& what) {
  const JsonFields fields(entry, what);
  ForcedReply reply;
  reply.category = fields.text_or("category", "replies");
  reply.prompt_ids = fields.ids("prompt_ids");
  reply.output_ids = fields.ids("output_ids");
  if (reply.prompt_ids.empty() || reply.output_ids.empty()) {
    throw bad_input(what + ": prompt_ids or output_ids is empty or missing; token ids are needed in both.");
  }
  for (const auto& [field, value] : entry.items()) {
    if (names_a_way(field)) reply.lengths[field] = read_lengths(fields, field);
  }
  return reply;
}

/// Rounds by their first token: [start] = length.
std::map<uint32_t, uint32_t> rounds_until(const std::vector<uint32_t>& lengths, uint32_t end) {
  std::map<uint32_t, uint32_t> rounds;
  uint32_t start = 1;  // token 0 comes out of the prompt's pass
  for (const uint32_t length : lengths) {
    if (start >= end) break;
    rounds[start] = length;
    start += length;
  }
  return rounds;
}

void add(RoundSum& sum, const std::map<uint32_t, uint32_t>& rounds) {
  for (const auto& [start, length] : rounds) {
    ++sum.rounds;
    sum.tokens += length;
  }
}

/// Only rounds that start before this token count.
uint32_t last_start(size_t reply_tokens, const std::vector<uint32_t>& theirs, uint32_t max_depth) {
  const auto tokens = static_cast<uint32_t>(reply_tokens);
  const uint32_t whole_block = tokens > max_depth ? tokens - max_depth : 0;
  // The file may leave out the last rounds, if the reply was too short to know their lengths.
  return std::min(whole_block, 1 + std::accumulate(theirs.begin(), theirs.end(), 0u));
}

void add_reply(ForcedResult& result, const std::map<uint32_t, uint32_t>& ours,
               const std::map<uint32_t, uint32_t>& theirs) {
  ++result.replies;
  add(result.ours, ours);
  add(result.theirs, theirs);
  for (const auto& [start, length] : ours) {
    const auto same = theirs.find(start);
    if (same == theirs.end()) continue;
    ++result.same_starts;
    if (same->second == length) ++result.same_lengths;
  }
}

const std::vector<uint32_t>& lengths_of(const ForcedReply& reply, const WayToDecode& way) {
  const auto found = reply.lengths.find(file_name_of(way));
  if (found != reply.lengths.end()) return found->second;
  std::string known;
  for (const auto& [name, lengths] : reply.lengths) known += (known.empty() ? "" : ", ") + name;
  throw bad_input("The forced replies have no acceptance lengths of " + file_name_of(way) + "; there are those of " +
                  (known.empty() ? "none" : known) + ".");
}

/// Nothing once stop was requested.
std::optional<std::vector<uint32_t>> forced_lengths(const Engine& model, const ForcedReply& reply,
                                                    const WayToDecode& way, const std::stop_token& stop) {
  SweepSettings shared;
  shared.max_tokens = static_cast<uint32_t>(reply.output_ids.size());
  ReplySettings settings = reply_settings(way, shared);
  settings.forced = reply.output_ids;
  ReplyCallbacks callbacks;
  callbacks.stop = stop;
  const Reply forced = model.reply(reply.prompt_ids, settings, callbacks);
  if (forced.reason == FinishReason::cancelled) return std::nullopt;
  if (forced.ids != reply.output_ids) {
    throw bad_input("A forced reply of " + std::to_string(reply.output_ids.size()) + " tokens ended after " +
                    std::to_string(forced.ids.size()) + ", at a stop of this model or at the end of its context.");
  }
  std::vector<uint32_t> lengths;
  for (const RoundRecord& round : forced.rounds) lengths.push_back(static_cast<uint32_t>(round.emitted.size()));
  return lengths;
}

/// The results of a category, one for each way; made when the category is first met.
ForcedResult* results_of(std::vector<ForcedResult>& results, const std::string& category,
                         const std::vector<WayToDecode>& ways) {
  auto found = std::ranges::find(results, category, &ForcedResult::category);
  if (found == results.end()) {
    const size_t first = results.size();
    for (const WayToDecode& way : ways) {
      ForcedResult result;
      result.way = way;
      result.category = category;
      results.push_back(result);
    }
    return results.data() + first;
  }
  return &*found;
}

}  // namespace

double ForcedResult::difference() const {
  return theirs.tau() > 0 ? ours.tau() / theirs.tau() - 1 : 0;
}

std::vector<ForcedReply> read_forced(const std::filesystem::path& path) {
  const std::string name = shown(path);
  const nlohmann::json json = parse_json(read_text_input(path, max_file_bytes), name);
  if (!json.is_array() || json.empty()) throw bad_input(name + " is not a JSON array of one or more replies.");
  std::vector<ForcedReply> replies;
  for (const nlohmann::json& entry : json) {
    replies.push_back(read_reply(entry, name + ", entry " + std::to_string(replies.size())));
  }
  return replies;
}

std::vector<ForcedResult> compare_forced(Engine& model, const std::vector<ForcedReply>& replies,
                                         const std::vector<WayToDecode>& ways, const ModesCallbacks& callbacks) {
  for (const ForcedReply& reply : replies) {
    // Checks that all lengths are there before the first reply takes its time.
    for (const WayToDecode& way : ways) lengths_of(reply, way);
  }
  const uint32_t max_depth = model.drafter->max_depth();
  std::vector<ForcedResult> results, overall;
  uint64_t done = 0;
  const auto compare_reply = [&](const ForcedReply& reply) {
    std::vector<std::vector<uint32_t>> lengths;
    for (const WayToDecode& way : ways) {
      if (callbacks.progress) callbacks.progress(done++, replies.size() * ways.size());
      auto of_way = forced_lengths(model, reply, way, callbacks.stop);
      if (!of_way) return false;
      lengths.push_back(std::move(*of_way));
    }
    for (size_t way = 0; way < ways.size(); ++way) {
      const std::vector<uint32_t>& theirs = lengths_of(reply, ways[way]);
      const uint32_t end = last_start(reply.output_ids.size(), theirs, max_depth);
      const auto our_rounds = rounds_until(lengths[way], end), their_rounds = rounds_until(theirs, end);
      add_reply(results_of(results, reply.category, ways)[way], our_rounds, their_rounds);
      add_reply(results_of(overall, everything, ways)[way], our_rounds, their_rounds);
    }
    return true;
  };
  static_cast<void>(std::ranges::all_of(replies, compare_reply));  // ends where it was stopped
  if (results.empty()) throw cancelled("The comparison was stopped before any reply was through all modes.");
  for (ForcedResult& result : overall) result.category = all_categories;
  results.insert(results.end(), overall.begin(), overall.end());
  return results;
}

namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr uint32_t long_prompts_a_length = 2;  // prompts for each length, unless --limit is given

DecodeMode mode_named(const std::string& name) {
  if (const auto mode = decode_mode_of(name)) return *mode;
  throw UsageError("--modes names " + quoted_name(name) + "; allowed: ar, chain, tree and adaptive.");
}

/// The ways for the modes of the command line, each once, in the order they were named; mode tree once for each budget.
std::vector<WayToDecode> ways_of(const ModesOptions& options) {
  std::vector<WayToDecode> ways;
  const auto add = [&](const WayToDecode& way) {
    const bool known = std::ranges::any_of(ways, [&](const auto& other) { return other.name() == way.name(); });
    if (!known) ways.push_back(way);
  };
  const std::vector<DraftSources> sets = with_earlier_replies(options.sources, options.sources_from);
  for (const std::string& name : options.modes) {
    const DecodeMode mode = mode_named(name);
    for (const DraftSources sources : sources_of(mode, sets)) {
      if (mode != DecodeMode::tree) add({mode, 0, sources});
      for (const uint32_t budget : options.budgets) {
        if (mode == DecodeMode::tree) add({mode, budget, sources});
      }
    }
  }
  return ways;
}

/// The ways with plain decoding first, as the others are compared with it.
std::vector<WayToDecode> with_ar_first(std::vector<WayToDecode> ways) {
  std::erase_if(ways, [](const WayToDecode& way) { return way.mode == DecodeMode::ar; });
  ways.insert(ways.begin(), WayToDecode{});
  return ways;
}

/// The ways for a comparison with forced replies; without --modes chain and trees.
std::vector<WayToDecode> forced_ways(ModesOptions options) {
  if (options.modes.empty()) options.modes = {"chain", "tree"};
  options.sources = {kFromDflash};  // as the reference that the lengths are of
  for (const std::string& name : options.modes) {
    const DecodeMode mode = mode_named(name);
    if (mode == DecodeMode::chain || mode == DecodeMode::tree) continue;
    throw UsageError("--forced compares chain and tree with the lengths in its file; it has none of " + name + ".");
  }
  return ways_of(options);
}

/// Writes the reports. The tables go to standard output, unless a report does; the CSV file has the first alone.
void report(const ModesOptions& options, const Engine& model, const ordered_json& json,
            const std::vector<TextTable>& tables) {
  write_report(options.json, json_text(json));
  write_report(options.csv, as_csv(tables.front()));
  std::string markdown = headline(model);
  if (!options.accept_rates.empty()) markdown += "; " + accept_rates_words(options.accept_rates);
  if (!options.sources_from.empty()) {
    markdown += "; drafts from " + std::to_string(model.replies->replies()) + " earlier replies, " +
                std::to_string(model.replies->tokens()) + " tokens, in " + shown(options.sources_from);
  }
  std::string text = markdown + "\n";
  for (const TextTable& table : tables) {
    markdown += "\n\n" + as_markdown(table);
    text += "\n" + as_text(table);
  }
  write_report(options.markdown, markdown);
  if (options.json == "-" || options.csv == "-" || options.markdown == "-") return;
  std::cout << text << std::flush;
}

std::vector<BenchPrompt> bench_prompts(const Engine& model, const ModesOptions& options,
                                       const std::vector<MeasuredPrompt>& prompts) {
  std::vector<BenchPrompt> result;
  if (options.prompt_tokens.empty()) {
    result = encode_prompts(model, limit_by_category(prompts, options.limit));
  } else {
    result =
        long_prompts(model, prompts, options.prompt_tokens, options.limit > 0 ? options.limit : long_prompts_a_length);
  }
  const uint32_t context = model.model->limits().context;
  for (const BenchPrompt& prompt : result) {
    const uint64_t needed = prompt.ids.size() + uint64_t{options.max_tokens};
    if (needed <= context) continue;
    throw bad_input("A prompt of " + std::to_string(prompt.ids.size()) + " tokens and a reply of " +
                    std::to_string(options.max_tokens) + " need a context of " + std::to_string(needed) +
                    " positions; this model has " + std::to_string(context) +
                    advice_on_room(context, model.model->config().max_context));
  }
  return result;
}

bool chooses(const std::vector<WayToDecode>& ways) {
  return std::ranges::find(ways, DecodeMode::adaptive, &WayToDecode::mode) != ways.end();
}

OpenedModel open_pair(ModelChoice choice, const std::vector<WayToDecode>& ways) {
  catch_interrupts();
  choice.self_test = false;
  for (const WayToDecode& way : ways) choice.max_width = std::max(choice.max_width, way.budget + 1);
  if (chooses(ways)) choice.calibration_s = kFirstCalibration;
  OpenedModel opened = open_model(choice);
  const auto asks_drafter_alone = [](const WayToDecode& way) {
    return way.sources != 0 && (way.sources & ~kFromModels) == 0;
  };
  if (opened.model->block() > 0 || std::ranges::none_of(ways, asks_drafter_alone)) return opened;
  throw bad_input("Drafts of a drafter are to be measured, and " + opened.model->file_name +
                  " has none here: name one with --drafter.");
}

ModesCallbacks shown_on(BenchProgress& progress) {
  return {.progress = [&progress](uint64_t done, uint64_t total) { progress.show(done, total); },
          .stop = interruption()};
}

int measure(ModelChoice choice, const ModesOptions& options) {
  ModesSettings settings;
  settings.ways = with_ar_first(ways_of(options));
  const auto policy = cost_policy_of(options.policy);
  if (!policy) {
    throw UsageError("--policy names " + quoted_name(options.policy) +
                     "; allowed: measured, static, ema, ema+calib and paper.");
  }
  settings.policy = *policy;
  settings.repeats = options.repeats;
  settings.max_tokens = options.max_tokens;
  settings.accept_rates = options.accept_rates;
  choice.replies = options.sources_from;
  choice.replies_read_only = true;
  const std::vector<MeasuredPrompt> texts = read_all_prompts(prompt_paths(options.prompts));

  const auto asks_earlier = [](const WayToDecode& way) { return (way.sources & kFromEarlier) != 0; };
  if (options.sources_from.empty() && std::ranges::any_of(settings.ways, asks_earlier))
    note("Nothing is found in earlier replies, as none are named: --sources-from does.");

  const OpenedModel opened = open_pair(choice, settings.ways);
  const Engine& model = *opened.model;
  require_earlier_replies(model, options.sources_from);
  BenchProgress progress("replies");
  const ModesResult result =
      measure_modes(*opened.model, bench_prompts(model, options, texts), settings, shown_on(progress));
  progress.clear();
  ordered_json json = describe_subject(model);
  json["policy"] = options.policy;
  json["max_tokens"] = options.max_tokens;
  if (!options.accept_rates.empty()) {
    json["accept_rates"] = options.accept_rates;
    json["note"] = accept_rates_words(options.accept_rates);
  }
  if (!options.sources_from.empty()) {
    json["sources_from"] = {{"folder", shown(options.sources_from)},
                            {"file", shown(model.replies->path().filename())},
                            {"replies", model.replies->replies()},
                            {"tokens", model.replies->tokens()}};
  }
  json["prompts"] = result.prompts;
  json["repeats"] = result.repeats;
  json["modes"] = to_json(result.modes);
  json["contexts"] = to_json(result.contexts);
  const double emulated = choice.settings.memory_gb_s;
  const std::string kernels = json["kernels"];
  if (emulated > 0) json["emulated_memory"] = emulation_json(emulated, kernels, result.modes);
  std::vector<TextTable> tables = {table_of(result.modes)};
  const bool several = !result.contexts.empty() && result.contexts.front().first != result.contexts.back().first;
  if (several) tables.push_back(table_of(result.contexts));
  report(options, model, json, tables);
  if (emulated > 0) note(emulation_words(emulated, kernels, result.modes));
  if (interrupted()) {
    note("Stopped: the figures are of " + std::to_string(result.prompts) + " prompts, each measured " +
         (result.repeats == 1 ? "once." : std::to_string(result.repeats) + " times."));
    return kInterrupted;
  }
  if (!options.accept_rates.empty()) {
    note(
        "What was accepted was decided by --accept: no text is the model's, and speeds are what a drafter of that "
        "quality would bring.");
    return 0;
  }
  if (std::ranges::all_of(result.modes, &ModeResult::identical_to_ar)) return 0;
  note("Some modes wrote other tokens than plain decoding: that is an error of this program or of the driver.");
  return 1;
}

int compare(const ModelChoice& choice, const ModesOptions& options) {
  const std::vector<WayToDecode> ways = forced_ways(options);
  const std::vector<ForcedReply> replies = read_forced(options.forced);
  const OpenedModel opened = open_pair(choice, ways);
  BenchProgress progress("forced replies");
  const std::vector<ForcedResult> results = compare_forced(*opened.model, replies, ways, shown_on(progress));
  progress.clear();
  ordered_json json = describe_subject(*opened.model);
  json["forced"] = to_json(results);
  report(options, *opened.model, json, {table_of(results)});
  if (!interrupted()) return 0;
  note("Stopped: the figures are of " + std::to_string(results.back().replies) + " replies.");
  return kInterrupted;
}

}  // namespace

void add_modes_options(CLI::App& command, ModesOptions& options) {
  const char* group = "Modes";
  command
      .add_option("--modes", options.modes,
                  "Compare these over the same prompts, interleaved: ar, chain, tree, adaptive; ar always runs")
      ->delimiter(',')
      ->group(group);
  command.add_option("--budgets", options.budgets, "Drafted nodes of the trees (default: 4,16,64)")
      ->delimiter(',')
      ->transform(app::numbers<uint32_t>(1, kMostBudget))
      ->group(group);
  add_source_sets(command, options.sources)->group(group);
  command
      .add_option("--prompts", options.prompts,
                  "Files of prompts, a JSON object a line, or folders of such (default: those that come with Canopy)")
      ->delimiter(',')
      ->group(group);
  command.add_option("--limit", options.limit, "Prompts of each category (default: all)")
      ->transform(app::counts())
      ->group(group);
  command
      .add_option("--prompt-tokens", options.prompt_tokens,
                  "Prompts of these lengths instead, made of the prompts' texts put together, 2 of each or --limit")
      ->delimiter(',')
      ->transform(app::counts())
      ->group(group);
  command.add_option("-n,--max-tokens", options.max_tokens, "Longest reply, in tokens")
      ->transform(app::counts())
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--policy", options.policy,
                  "How the mode adaptive predicts costs: measured, static, ema, ema+calib or paper")
      ->capture_default_str()
      ->group(group);
  add_accept_rates(command, options.accept_rates)->group(group);
  add_sources_from(command, options.sources_from)->group(group);
  command
      .add_option("--forced", options.forced,
                  "Compare acceptance lengths of chain and trees with those of another implementation: a JSON array of "
                  "replies with their ids and lengths")
      ->group(group);
  command.add_option("--csv", options.csv, "Write the table as CSV, - to standard output")->group(group);
  command.add_option("--markdown", options.markdown, "Write the table as Markdown, - to standard output")->group(group);
}

bool asks_for_modes(const CLI::App& command, const ModesOptions& options) {
  const auto refuse_any = [&](std::initializer_list<const char*> names, const std::string& why) {
    for (const char* name : names) {
      if (command.get_option(name)->count() > 0) throw UsageError(name + why);
    }
  };
  if (options.modes.empty() && options.forced.empty()) {
    refuse_any({"--budgets", "--sources", "--sources-from", "--accept", "--prompts", "--limit", "--prompt-tokens",
                "--max-tokens", "--policy", "--csv", "--markdown"},
               " belongs to the comparison of modes: name some with --modes.");
    return false;
  }
  refuse_any({"--widths", "--at", "--decode-tokens", "--prefill-tokens"},
             " belongs to the measurement of passes, which --modes and --forced replace.");
  if (!options.forced.empty()) {
    refuse_any({"--sources", "--sources-from", "--accept", "--prompts", "--limit", "--prompt-tokens", "--max-tokens",
                "--policy", "--repeats"},
               " has no meaning with --forced, whose file gives the prompts and replies.");
  }
  return true;
}

void check_bench_targets(const ModelChoice& model, const ModesOptions& options) {
  int on_stdout = 0;
  for (const std::string& target : {options.json, options.csv, options.markdown}) {
    if (target.empty()) continue;
    if (target == "-") {
      ++on_stdout;
      continue;
    }
    std::error_code error;
    const fs::path folder = fs::absolute(target, error).parent_path();
    if (!fs::is_directory(folder, error)) {
      throw UsageError("There is no folder " + shown(folder) + " to write " + shown(fs::path(target).filename()) +
                       " to.");
    }
  }
  if (on_stdout > 1) throw UsageError("Only one of --json, --csv and --markdown can go to standard output.");
  std::vector<NamedFile> inputs = {{"the forced replies", options.forced}};
  if (!options.modes.empty()) {
    for (const fs::path& path : prompt_paths(options.prompts))
      for (NamedFile& file : named_files("the prompts", prompt_files(path))) inputs.push_back(std::move(file));
  }
  for (NamedFile& file : earlier_reply_files(options.sources_from)) inputs.push_back(std::move(file));
  const std::vector<NamedFile> outputs = {
      {"--json", options.json}, {"--csv", options.csv}, {"--markdown", options.markdown}};
  require_outputs_apart(outputs, std::move(inputs), &model);
}

int run_modes(const ModelChoice& model, const ModesOptions& options) {
  return options.forced.empty() ? measure(model, options) : compare(model, options);
}

}  // namespace canopy::cli

#include "app/cli/bench_modes_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "app/base/number_options.h"
#include "app/cli/bench_forced.h"
#include "app/cli/bench_modes.h"
#include "app/cli/bench_progress.h"
#include "app/cli/bench_prompts.h"
#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/paths.h"
#include "engine/base/printable.h"

namespace canopy::cli {
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
  for (const std::string& name : options.modes) {
    const DecodeMode mode = mode_named(name);
    if (mode != DecodeMode::tree) {
      add({mode, 0});
      continue;
    }
    for (const uint32_t budget : options.budgets) add({mode, budget});
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
  std::string markdown = headline(model), text = markdown + "\n";
  for (const TextTable& table : tables) {
    markdown += "\n\n" + as_markdown(table);
    text += "\n" + as_text(table);
  }
  write_report(options.markdown, markdown);
  if (options.json == "-" || options.csv == "-" || options.markdown == "-") return;
  std::cout << text << std::flush;
}

/// What was named, or the prompts that come with Canopy.
std::vector<fs::path> prompt_paths(const ModesOptions& options) {
  std::vector<fs::path> paths(options.prompts.begin(), options.prompts.end());
  if (paths.empty()) {
    const auto shipped = find_asset("prompts");
    if (!shipped) throw UsageError("Canopy's own prompts are not beside the program; name some with --prompts.");
    paths.push_back(*shipped);
  }
  return paths;
}

std::vector<MeasuredPrompt> read_prompt_option(const ModesOptions& options) {
  return read_all_prompts(prompt_paths(options));
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
  if (opened.model->drafter != nullptr) return opened;
  throw bad_input("Modes are compared with a drafter, and " + opened.model->file_name +
                  " has none here: name one with --drafter.");
}

ModesCallbacks shown_on(BenchProgress& progress) {
  return {.progress = [&progress](uint64_t done, uint64_t total) { progress.show(done, total); },
          .stop = interruption()};
}

int measure(const ModelChoice& choice, const ModesOptions& options) {
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
  const std::vector<MeasuredPrompt> texts = read_prompt_option(options);

  const OpenedModel opened = open_pair(choice, settings.ways);
  const Engine& model = *opened.model;
  BenchProgress progress("replies");
  const ModesResult result =
      measure_modes(*opened.model, bench_prompts(model, options, texts), settings, shown_on(progress));
  progress.clear();
  ordered_json json = describe_subject(model);
  json["policy"] = options.policy;
  json["max_tokens"] = options.max_tokens;
  json["prompts"] = result.prompts;
  json["repeats"] = result.repeats;
  json["modes"] = to_json(result.modes);
  json["contexts"] = to_json(result.contexts);
  std::vector<TextTable> tables = {table_of(result.modes)};
  const bool several = !result.contexts.empty() && result.contexts.front().first != result.contexts.back().first;
  if (several) tables.push_back(table_of(result.contexts));
  report(options, model, json, tables);
  if (interrupted()) {
    note("Stopped: the figures are of " + std::to_string(result.prompts) + " prompts, each measured " +
         (result.repeats == 1 ? "once." : std::to_string(result.repeats) + " times."));
    return kInterrupted;
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
    refuse_any(
        {"--budgets", "--prompts", "--limit", "--prompt-tokens", "--max-tokens", "--policy", "--csv", "--markdown"},
        " belongs to the comparison of modes: name some with --modes.");
    return false;
  }
  refuse_any({"--widths", "--at", "--decode-tokens", "--prefill-tokens"},
             " belongs to the measurement of passes, which --modes and --forced replace.");
  if (!options.forced.empty()) {
    refuse_any({"--prompts", "--limit", "--prompt-tokens", "--max-tokens", "--policy", "--repeats"},
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
    for (const fs::path& path : prompt_paths(options))
      for (NamedFile& file : named_files("the prompts", prompt_files(path))) inputs.push_back(std::move(file));
  }
  const std::vector<NamedFile> outputs = {
      {"--json", options.json}, {"--csv", options.csv}, {"--markdown", options.markdown}};
  require_outputs_apart(outputs, std::move(inputs), &model);
}

int run_modes(const ModelChoice& model, const ModesOptions& options) {
  return options.forced.empty() ? measure(model, options) : compare(model, options);
}

}  // namespace canopy::cli

// canopy-cli sweep: prompts x ways to decode x repeats, measured by the protocol of docs/comparing-gpus.md; and
// canopy-cli results: such measurements as a web page or as Markdown.

#include <algorithm>
#include <cfloat>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/export/results_page.h"
#include "app/state/built_commit.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/bench/prompt_file.h"
#include "engine/bench/sweep_file.h"
#include "engine/bench/sweep_journal.h"
#include "engine/bench/sweep_summary.h"
#include "engine/bench/sweep_table.h"
#include "engine/session/comparison.h"
#include "engine/session/devices.h"

namespace canopy::cli {

// canopy-cli sweep: prompts x ways to decode x repeats, measured by the protocol of docs/comparing-gpus.md into a file
// that the window reads too; and files of others beside it.

namespace {

namespace fs = std::filesystem;

/// What a sweep that is gone on with has already.
constexpr const char* kPlanOptions[] = {"--modes",      "--budgets",     "--sources", "--limit",      "--repeats",
                                        "--max-tokens", "--temperature", "--seed",    "--order-seed", "--baseline"};

struct SweepOptions {
  ModelChoice model;
  std::vector<std::string> modes = {"ar", "chain", "tree", "adaptive"};
  std::vector<uint32_t> budgets = {4, 8, 16, 32, 64};
  std::vector<DraftSources> sources;  // a column each; empty: all together
  std::string sources_from;           // folder of earlier replies, which are read alone; empty: none
  std::vector<WayToDecode> ways;      // of a sweep that is gone on with; empty: those of modes and budgets
  std::vector<std::string> devices;   // beside that of the model
  std::vector<std::string> servers;
  std::string server_model;
  std::vector<std::string> prompts;  // files and folders; empty: those that come with Canopy
  uint32_t limit = 1;                // prompts of each category; 0: all
  std::string baseline = "ar";
  SweepSettings settings;
  std::string out;
  bool resume = false;
  bool seed_drawn = false, order_seed_drawn = false;
  std::set<std::string> given;    // options of the plan that were named
  std::vector<std::string> with;  // files of others
  std::string show;               // a file to show instead of measuring
  std::string json, csv, markdown;
};

std::vector<WayToDecode> ways_named(const SweepOptions& options) {
  std::vector<WayToDecode> ways;
  const std::vector<DraftSources> sets = with_earlier_replies(options.sources, options.sources_from);
  const auto add = [&](const WayToDecode& way) {
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  };
  for (const std::string& name : options.modes) {
    const auto mode = decode_mode_of(name);
    if (!mode) throw UsageError("--modes names " + quoted_name(name) + "; allowed: ar, chain, tree and adaptive.");
    for (const DraftSources sources : sources_of(*mode, sets)) {
      if (*mode != DecodeMode::tree) add({*mode, 0, sources});
      for (const uint32_t budget : options.budgets)
        if (*mode == DecodeMode::tree) add({*mode, budget, sources});
    }
  }
  if (ways.empty()) throw UsageError("--modes names nothing to measure.");
  return ways;
}

std::vector<ComparisonColumn> columns_of(const SweepOptions& options) {
  const std::vector<WayToDecode> ways = options.ways.empty() ? ways_named(options) : options.ways;
  std::vector<ComparisonColumn> columns;
  std::vector<std::string> devices = {""};
  devices.insert(devices.end(), options.devices.begin(), options.devices.end());
  for (const std::string& device : devices)
    for (const WayToDecode& way : ways) columns.push_back({way, "", "", device, ""});
  for (const std::string& server : options.servers) {
    (void)parse_endpoint(server);  // before anything is loaded
    const char* const key = std::getenv("CANOPY_ENGINE_KEY");
    columns.push_back({{DecodeMode::ar, 0}, options.server_model, "", "", server, key != nullptr ? key : ""});
  }
  return columns;
}

uint32_t baseline_of(const SweepOptions& options, const std::vector<ComparisonColumn>& columns) {
  for (uint32_t i = 0; i < columns.size(); ++i)
    if (columns[i].server.empty() ? columns[i].way.name() == options.baseline : options.baseline == "server") return i;
  // Without plain decoding the first column is what there is.
  if (options.baseline == "ar") return 0;
  throw UsageError("--baseline names " + quoted_name(options.baseline) +
                   ", which is not measured. Name a way as \"ar\" "
                   "or \"tree 16\", or \"server\".");
}

std::vector<MeasuredPrompt> all_prompts(const SweepOptions& options) {
  return read_all_prompts(prompt_paths(options.prompts));
}

/// What --resume goes on with; nothing where there is no such file yet.
std::optional<Sweep> earlier_sweep(const SweepOptions& options) {
  if (!options.resume || options.out.empty()) return std::nullopt;
  std::error_code ignored;
  std::optional<Sweep> earlier = unfinished_sweep(options.out);
  if (!earlier && fs::exists(options.out, ignored)) earlier = read_sweep(options.out);
  return earlier;
}

/// Of a sweep that is gone on with, its own, whose texts lie beside it or among those that are named.
std::vector<MeasuredPrompt> prompts_named(const SweepOptions& options, const std::optional<Sweep>& earlier) {
  if (!earlier || options.given.contains("--limit")) return limit_by_category(all_prompts(options), options.limit);
  try {
    return prompts_of(*earlier, options.out, all_prompts(options));
  } catch (const Error& e) {
    throw bad_input(std::string(e.what()) + " Name their files with --prompts.");
  }
}

/// Takes what was not named from the sweep that is gone on with.
void take_plan(const Sweep& earlier, SweepOptions& options) {
  const auto is_given = [&](const char* name) { return options.given.contains(name); };
  const SweepSettings named = options.settings;
  options.settings = earlier.settings;
  if (is_given("--repeats")) options.settings.repeats = named.repeats;
  if (is_given("--max-tokens")) options.settings.max_tokens = named.max_tokens;
  if (is_given("--temperature")) options.settings.sampling.temperature = named.sampling.temperature;
  if (is_given("--seed")) options.settings.sampling.seed = named.sampling.seed;
  if (is_given("--order-seed")) options.settings.order_seed = named.order_seed;
  const SweepContestant& baseline = earlier.contestants.at(earlier.baseline);
  if (!is_given("--baseline"))
    options.baseline = earlier.subjects.at(baseline.subject).is_server() ? "server" : baseline.way.name();
  if (is_given("--modes") || is_given("--budgets") || is_given("--sources")) return;
  for (const SweepContestant& contestant : earlier.contestants)
    if (contestant.subject == 0 && !earlier.subjects.at(0).is_server()) options.ways.push_back(contestant.way);
}

Compare command_of(SweepOptions options) {
  const std::optional<Sweep> earlier = earlier_sweep(options);
  if (earlier) take_plan(*earlier, options);
  Compare command;
  command.kind = earlier ? earlier->kind : SweepKind::sweep;
  command.columns = columns_of(options);
  for (const MeasuredPrompt& prompt : prompts_named(options, earlier))
    command.prompts.push_back({prompt.id, prompt.category, {{"user", prompt.text}}});
  command.settings = options.settings;
  command.baseline = baseline_of(options, command.columns);
  validate(command.settings.sampling);
  return command;
}

/// Where the sweep is written: what was asked for, else a new file beside the window's.
fs::path target_file(const SweepOptions& options, const std::string& device) {
  if (!options.out.empty()) return options.out;
  if (options.resume) throw UsageError("--resume needs the file to go on with: name it with --out.");
  const fs::path folder = sweep_folder();
  return new_sweep_file(folder, device);
}

/// Shows where a sweep is, and hears of what holds a run up.
class SweepProgress {
 public:
  RunnerCallbacks callbacks(SweepJournal& journal) {
    RunnerCallbacks callbacks;
    callbacks.stop = interruption();
    callbacks.stage = [this](const std::string& stage) { line_.show({stage}); };
    callbacks.begin = [this](const RunKey&, uint64_t done, uint64_t total, double left) { show(done, total, left); };
    callbacks.made = [&journal](const RunnerReply& made) { journal.add(made.run); };
    callbacks.amended = [&journal](const MeasuredRun& run) { journal.add(run); };
    callbacks.was_disturbed = [] {
      const bool paused = take_pause();
      if (paused) note("The program was stopped meanwhile: that reply is measured again.");
      return paused;
    };
    return callbacks;
  }
  void clear() { line_.clear(); }

 private:
  void show(uint64_t done, uint64_t total, double left) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds between_notes(15);
    line_.show({"replies", done, total, false, left});
    const Clock::time_point now = Clock::now();
    if (is_terminal() || now - noted_ < between_notes) return;
    noted_ = now;
    note("replies: " + progress_figures(done, total, false, left));
  }

  ProgressLine line_;
  std::chrono::steady_clock::time_point noted_;
};

struct MeasuredSweep {
  Sweep sweep;
  fs::path file;
  bool stopped = false;
};

MeasuredSweep measure_sweep(const SweepOptions& options) {
  if (options.seed_drawn) note_seed("--seed", options.settings.sampling.seed);
  if (options.order_seed_drawn) note_seed("--order-seed", options.settings.order_seed);
  const Compare command = command_of(options);
  require_few_runs({static_cast<uint32_t>(command.columns.size()), static_cast<uint32_t>(command.prompts.size()),
                    command.settings.repeats});
  catch_interrupts();
  catch_pauses();
  ModelChoice choice = options.model;
  choice.calibration_s = kFirstCalibration;
  choice.replies = options.sources_from;
  choice.replies_read_only = true;
  const auto asks_earlier = [](const ComparisonColumn& column) { return (column.way.sources & kFromEarlier) != 0; };
  if (options.sources_from.empty() && std::ranges::any_of(command.columns, asks_earlier))
    note("Nothing is found in earlier replies, as none are named: --sources-from does.");
  const bool drafts = std::ranges::any_of(command.columns, [](const ComparisonColumn& column) {
    return column.server.empty() && column.way.mode != DecodeMode::ar;
  });
  if (!drafts && choice.drafter.empty()) choice.drafter = "none";
  for (const ComparisonColumn& column : command.columns)
    choice.max_width = std::max(choice.max_width, column.way.budget + 1);
  OpenedModel opened = open_model(choice);

  const std::shared_ptr<Device> device = std::move(opened.device);
  const std::unique_ptr<Engine> engine = std::move(opened.model);  // goes before its device
  require_earlier_replies(*engine, options.sources_from);
  LoadedSubject loaded{engine.get(), device, {}};
  loaded.opened.path = model_path(choice);
  loaded.opened.device = choice.device;
  loaded.opened.drafter = choice.drafter == "none" ? "" : drafter_path(choice);
  loaded.opened.kv = checked_cache_type(choice.kv);
  loaded.opened.context = choice.context;
  loaded.opened.quantize = quantize_on_load_from(choice.quantize).value_or(QuantizeOnLoad::none);
  MeasuredSweep measured{plan_of(command, built_commit()), {}, false};
  Sweep& sweep = measured.sweep;
  const ComparisonSubjects::OpenDevice open = [&choice](const std::string& selector) {
    return open_device(selector, choice.settings);
  };
  const ComparisonSubjects::NameDevice name = [](const std::string& selector) { return device_uuid(selector); };
  SweepProgress progress;
  const SubjectCallbacks opening{[](const std::string& stage) { note(stage); }, interruption()};
  const ComparisonSubjects subjects(loaded, open, name, kFirstCalibration, command.columns, opening, sweep);
  measured.file = target_file(options, device->info().name);
  take_earlier_runs(measured.file.string(), options.resume, sweep);
  SweepJournal journal(measured.file, sweep, measured_prompts(command.prompts));
  note("Measuring into " + shown(measured.file));
  std::vector<RunnerPrompt> prompts;
  for (const ComparisonPrompt& prompt : command.prompts) prompts.push_back({prompt.turns, {}});
  measured.stopped = !run_comparison(sweep, subjects.writers(), prompts, progress.callbacks(journal));
  progress.clear();
  journal.finish(sweep);
  engine->keep_what_was_learnt();
  return measured;
}

void print_overlays(const Sweep& sweep, const std::vector<Sweep>& others) {
  for (const Sweep& other : others) {
    const Overlay overlay = overlay_table(sweep, other);
    std::cout << "\nBeside " << overlay.name << " (" << sweep_headline(other) << ")\n\n" << as_text(overlay.table);
    for (const std::string& sentence : canopy::overlay(sweep, other).notes) std::cout << sentence << "\n";
  }
}

void print_sweep(const Sweep& sweep, const std::vector<Sweep>& others) {
  std::cout << sweep_headline(sweep) << "\n\n" << as_text(summary_table(sweep, sweep.baseline)) << "\n";
  if (const std::string sentence = verdict_of(sweep).sentence; !sentence.empty()) std::cout << sentence << ".\n";
  for (const std::string& remark : remarks(sweep)) std::cout << remark << "\n";
  print_overlays(sweep, others);
  std::cout << std::flush;
}

void report_sweep(const SweepOptions& options, const Sweep& sweep, const std::vector<Sweep>& others) {
  write_report(options.json, sweep_text(sweep));
  write_report(options.csv, as_csv(runs_table(sweep)));
  write_report(options.markdown, sweep_headline(sweep) + "\n\n" + as_markdown(summary_table(sweep, sweep.baseline)));
  if (options.json != "-" && options.csv != "-" && options.markdown != "-") print_sweep(sweep, others);
}

void check_sweep_targets(const SweepOptions& options) {
  const std::string* targets[] = {&options.json, &options.csv, &options.markdown};
  if (std::ranges::count_if(targets, [](const std::string* target) { return *target == "-"; }) > 1)
    throw UsageError("Only one of --json, --csv and --markdown can go to standard output.");
  for (const std::string* target : {&options.json, &options.csv, &options.markdown, &options.out}) {
    if (target->empty() || *target == "-") continue;
    std::error_code error;
    const fs::path folder = fs::absolute(*target, error).parent_path();
    if (!fs::is_directory(folder, error))
      throw UsageError("There is no folder " + shown(folder) + " to write " + shown(fs::path(*target).filename()) +
                       " to.");
  }
  if (is_written_into(options.out))
    throw UsageError("--out is " + shown(options.out) +
                     ", no ordinary file: the sweep's file is gone on with when it is cut off. --json prints a sweep.");
  std::vector<NamedFile> inputs = named_files("the sweep", {options.with.begin(), options.with.end()});
  inputs.push_back({"the sweep", options.show});
  if (options.show.empty()) {
    for (const fs::path& path : prompt_paths(options.prompts))
      for (NamedFile& file : named_files("the prompts", prompt_files(path))) inputs.push_back(std::move(file));
    for (NamedFile& file : earlier_reply_files(options.sources_from)) inputs.push_back(std::move(file));
  }
  std::vector<NamedFile> outputs = {
      {"--out", options.out}, {"--json", options.json}, {"--csv", options.csv}, {"--markdown", options.markdown}};
  if (!options.out.empty()) {
    outputs.push_back({"The journal of --out", journal_path(options.out)});
    outputs.push_back({"The prompts beside --out", prompts_path(options.out)});
  }
  require_outputs_apart(outputs, std::move(inputs), options.show.empty() ? &options.model : nullptr);
}

int run_sweep(const SweepOptions& options) {
  check_sweep_targets(options);
  std::vector<Sweep> others;
  for (const std::string& path : options.with) others.push_back(read_sweep(path));
  if (!options.show.empty()) {
    report_sweep(options, read_sweep(options.show), others);
    return 0;
  }
  const MeasuredSweep measured = measure_sweep(options);
  report_sweep(options, measured.sweep, others);
  note("The sweep is in " + shown(measured.file) + ".");
  if (measured.stopped) {
    note("Stopped after " + std::to_string(measured.sweep.runs.size()) + " of " +
         std::to_string(measured.sweep.counts().total()) + " replies. canopy-cli sweep --resume --out " +
         shown(measured.file) + " goes on, with the same model and drafter.");
    return kInterrupted;
  }
  return verdict_of(measured.sweep).agreement == Agreement::must_not ? 1 : 0;
}

void add_plan_options(CLI::App& command, SweepOptions& options) {
  const char* group = "What is measured";
  command.add_option("--modes", options.modes, "ar, chain, tree and adaptive")
      ->delimiter(',')
      ->capture_default_str()
      ->group(group);
  command.add_option("--budgets", options.budgets, "Drafted nodes of the trees")
      ->delimiter(',')
      ->transform(app::numbers<uint32_t>(1, kMostBudget))
      ->capture_default_str()
      ->group(group);
  add_source_sets(command, options.sources)->group(group);
  add_sources_from(command, options.sources_from)->group(group);
  command.add_option("--also-device", options.devices, "Further devices, on which all of it is measured in turn")
      ->delimiter(',')
      ->group(group);
  command
      .add_option("--server", options.servers,
                  "OpenAI-compatible servers (vLLM, SGLang, llama.cpp's) as columns of speed and text: "
                  "http://127.0.0.1:8000/v1")
      ->delimiter(',')
      ->group(group);
  command.add_option("--server-model", options.server_model, "The model's name there")->group(group);
  command
      .add_option("--prompts", options.prompts,
                  "Files of prompts, a JSON object a line, or folders of such (default: those that come with Canopy)")
      ->delimiter(',')
      ->group(group);
  command.add_option("--limit", options.limit, "Prompts of each category; 0: all")
      ->transform(app::numbers<uint32_t>(0, UINT32_MAX))
      ->capture_default_str()
      ->group(group);
  SweepSettings& settings = options.settings;
  command.add_option("--repeats", settings.repeats, "Of every prompt in every way; two or more give errors")
      ->transform(app::numbers(1u, kMostSweepRepeats))
      ->capture_default_str()
      ->group(group);
  command.add_option("-n,--max-tokens", settings.max_tokens, "Longest reply, in tokens")
      ->transform(app::counts())
      ->capture_default_str()
      ->group(group);
  command.add_option("-t,--temperature", settings.sampling.temperature, "0 takes the likeliest token")
      ->transform(app::numbers(0.0f, FLT_MAX))
      ->capture_default_str()
      ->group(group);
  command.add_option("--seed", settings.sampling.seed, "Of the tokens that are drawn; -1 draws one, which is told")
      ->transform(app::seeds(UINT64_MAX, options.seed_drawn))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--order-seed", settings.order_seed,
                  "Of the order, which is drawn anew for each prompt; -1 draws one")
      ->transform(app::seeds(UINT64_MAX, options.order_seed_drawn))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--baseline", options.baseline, "The way that the others are compared with: ar, \"tree 16\", server")
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "sweep", "Measure ways to decode over prompts, widths and repeats into a file, and compare it with others'");
  const auto options = std::make_shared<SweepOptions>();
  add_model_options(*command, options->model);
  add_plan_options(*command, *options);
  const char* group = "Files";
  command
      ->add_option(
          "--out", options->out,
          "The sweep's file (default: a new one in the folder of the window's sweeps). Beside it lies a journal "
          "until it is whole: nothing that was measured is lost")
      ->group(group);
  command
      ->add_flag("--resume", options->resume,
                 "Go on with what the file of --out has, by its own ways, prompts and settings")
      ->group(group);
  CLI::Option* show = command->add_option("--show", options->show, "Show this file; nothing is measured")->group(group);
  command->add_option("--with", options->with, "Files of others to compare with, over the prompts that both have")
      ->delimiter(',')
      ->group(group);
  command->add_option("--json", options->json, "Print the sweep as JSON, or write it to a file")
      ->expected(0, 1)
      ->default_str("-")
      ->group(group);
  command->add_option("--csv", options->csv, "Write all runs as CSV, - to standard output")->group(group);
  command->add_option("--markdown", options->markdown, "Write the summary as Markdown, - to standard output")
      ->group(group);
  show->excludes("--out")->excludes("--resume");
  command->callback([&action, options, command] {
    for (const char* name : kPlanOptions)
      if (command->count(name) > 0) options->given.insert(name);
    action = [options] { return run_sweep(*options); };
  });
}

// canopy-cli results: measurements as a web page or as Markdown.

namespace {

struct ResultsOptions {
  std::vector<std::string> files;
  std::string html, markdown;
};

int show_results(const ResultsOptions& options) {
  if (options.html == "-" && options.markdown == "-")
    throw UsageError("Only one of --html and --markdown can go to standard output.");
  const std::vector<NamedFile> outputs = {{"--html", options.html}, {"--markdown", options.markdown}};
  require_outputs_apart(outputs, named_files("the measurement", {options.files.begin(), options.files.end()}));
  std::vector<app::Results> all;
  for (const std::string& file : options.files) all.push_back(app::read_results(file));
  if (!options.html.empty()) {
    write_report(options.html, app::results_page(all));
    if (options.html != "-") note("The page is in " + shown(options.html) + ".");
  }
  if (options.html.empty() || !options.markdown.empty())
    write_report(options.markdown.empty() ? "-" : options.markdown, app::results_markdown(all));
  return 0;
}

}  // namespace

void add_results(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("results", "Make a web page or Markdown of sweeps and comparisons");
  const auto options = std::make_shared<ResultsOptions>();
  command->add_option("files", options->files, "Files of `canopy-cli sweep`; the first is put beside the others")
      ->required();
  command->add_option("--html", options->html,
                      "Write a web page with plots, machines and the raw files; - is standard output");
  command->add_option("--markdown", options->markdown,
                      "Write tables to paste; - is standard output, which is the default");
  command->callback([&action, options] { action = [options] { return show_results(*options); }; });
}

}  // namespace canopy::cli

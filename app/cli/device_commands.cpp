// canopy-cli devices, calibrate, verify and report: which devices this machine has, what passes cost on them, whether
// they are exact, and all of it as one file to send.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include <nlohmann/json.hpp>

#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/built_commit.h"
#include "app/state/number_options.h"
#include "app/state/words.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/bench/sweep.h"
#include "engine/format/model_file.h"
#include "engine/hub/model_stores.h"
#include "engine/session/devices.h"
#include "engine/session/measured_report.h"
#include "engine/session/verification.h"
#include "engine/speculation/calibration.h"
#include "engine/speculation/roofline.h"
#include "engine/whatif/model_shapes.h"

namespace canopy::cli {

// canopy-cli devices: lists the devices of the machine, with the reason for each that cannot be used.

namespace {

using nlohmann::ordered_json;

int run_devices(bool as_json) {
  const MachineDevices machine = find_devices();
  const std::vector<ListedDevice> devices = machine.listed();
  if (devices.empty()) list_devices();  // says why
  if (as_json) {
    std::cout << devices_json(machine).dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (!devices.empty()) std::cout << describe_devices(devices) << "\n";
  for (const MachineDevices::Problem& problem : machine.problems) std::cout << problem.sentence << "\n";
  if (std::ranges::any_of(devices, &ListedDevice::usable)) {
    const ListedDevice& best = devices[choose_device(devices, "", names_of(all_backends()))];
    std::cout << "Used unless --device says otherwise: " << best.number << " (" << best.id() << ")\n";
  }
  return 0;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the devices of all backends, and why one cannot be used");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print a JSON array");
  command->callback([&action, as_json] { action = [as_json] { return run_devices(*as_json); }; });
}

// canopy-cli calibrate: measures what passes cost on this device, and saves the result for mode adaptive.

namespace {

struct CalibrateOptions {
  ModelChoice model;
  double seconds = 90;
  bool as_json = false;
  std::string output;
};

ordered_json to_json(const CostTable& table, const Roofline& fitted, const Device& device) {
  ordered_json verify = ordered_json::array(), draft = ordered_json::array();
  for (const CostPoint& point : table.verify_points()) {
    verify.push_back({{"width", point.rows},
                      {"context", point.context},
                      {"ms", point.ms},
                      {"roofline_ms", 1000 * fitted.seconds(point.rows, point.context)}});
  }
  for (const CostPoint& point : table.draft_points()) {
    draft.push_back({{"backlog", point.rows}, {"context", point.context}, {"ms", point.ms}});
  }
  const RooflineCalibration& c = fitted.calibration();
  return {{"device", device.info().name},
          {"driver", device.info().driver},
          {"backend", device.info().backend},
          {"verify_ms", std::move(verify)},
          {"draft_ms", std::move(draft)},
          {"roofline", {{"alpha_m", c.alpha_m}, {"beta_m", c.beta_m}, {"alpha_c", c.alpha_c}, {"beta_c", c.beta_c}}}};
}

void print_table(const CostTable& table, const Roofline& fitted) {
  std::cout << "width  context  measured ms  roofline ms\n";
  for (const CostPoint& point : table.verify_points()) {
    char line[80];
    std::snprintf(line, sizeof line, "%5u  %7u  %11.2f  %11.2f\n", point.rows, point.context, point.ms,
                  1000 * fitted.seconds(point.rows, point.context));
    std::cout << line;
  }
  std::cout << "\nbacklog  context  draft ms\n";
  for (const CostPoint& point : table.draft_points()) {
    char line[80];
    std::snprintf(line, sizeof line, "%7u  %7u  %8.2f\n", point.rows, point.context, point.ms);
    std::cout << line;
  }
}

int run_calibrate(CalibrateOptions& options) {
  catch_interrupts();
  options.model.self_test = false;
  const std::vector<NamedFile> outputs = {{"--output", options.output}};
  require_outputs_apart(outputs, {}, &options.model);
  const OpenedModel opened = open_model(options.model);
  Engine& model = *opened.model;
  ProgressLine line;
  OpenCallbacks callbacks;
  callbacks.progress = [&](const LoadProgress& progress) { line.show(progress); };
  callbacks.stop = interruption();
  const CostTable table = model.calibrate(options.seconds, callbacks);
  line.clear();
  if (!options.output.empty()) write_calibration(options.output, model.calibration_key(), table);
  if (table.under().under_load())
    note("warning: other programs used " + std::to_string(std::lround(100 * *table.under().others)) +
         " % of the processor meanwhile: measure again on an idle machine.");
  const Roofline fitted = calibrated_roofline(model.speculation->roofline(), table);
  if (options.as_json) {
    std::cout << to_json(table, fitted, *opened.device).dump(2) << "\n";
  } else {
    print_table(table, fitted);
  }
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("calibrate", "Measure what passes cost on this device, for the mode adaptive");
  const auto options = std::make_shared<CalibrateOptions>();
  add_model_options(*command, options->model);
  command->add_option("--seconds", options->seconds, "Time to measure in")
      ->transform(app::numbers(0.1, 3600.0))
      ->capture_default_str();
  command->add_option("-o,--output", options->output,
                      "Write it into this file as well, for canopy-cli trace what-if --costs elsewhere");
  command->add_flag("--json", options->as_json, "Print one JSON object");
  command->callback([&action, options] { action = [options] { return run_calibrate(*options); }; });
}

// canopy-cli verify: checks on this machine that the text of a recording is the one that plain decoding writes.

namespace {

constexpr int kSame = 0, kDiffers = 1, kCannotBeChecked = 2;

struct VerifyOptions {
  ModelChoice model;
  std::string file, mode;
  bool with_mode = false, any_model = false, as_json = false;
  bool kv_chosen = false, quantize_chosen = false;
};

/// The modes to check in: plain decoding, and one more where it was asked for. none: the mode of each reply.
std::optional<std::optional<DecodeMode>> second_mode(const VerifyOptions& options) {
  if (!options.with_mode) return std::nullopt;
  // Without a word behind it the option's value is "true".
  if (options.mode.empty() || options.mode == "true" || options.mode == "recorded") return std::optional<DecodeMode>();
  if (const auto mode = decode_mode_of(options.mode)) return mode;
  throw UsageError("--mode is " + quoted_name(options.mode) + "; allowed: recorded, ar, chain, tree and adaptive.");
}

/// Loads the model as the recording's was, where nothing else was said.
void follow_recording(const TraceReader& trace, VerifyOptions& options) {
  const TraceHeader& header = trace.header();
  if (!options.kv_chosen && (header.kv_type == "f16" || header.kv_type == "f32" || header.kv_type == "q8_0"))
    options.model.kv = header.kv_type;
  if (!options.quantize_chosen && header.target.quantized_to == "Q8_0") options.model.quantize = "q8_0";
  if (!options.quantize_chosen && header.target.quantized_to == "Q4_K") options.model.quantize = "q4_k";
  for (const TraceReply& reply : trace.replies()) {
    options.model.max_width = std::max(options.model.max_width, std::min(reply.begin.budget, kMostBudget) + 1);
    // A reply that filled its context ends where that ended.
    if (options.model.context == 0 && reply.end && reply.end->reason == FinishReason::context_full)
      options.model.context = header.context;
  }
  if (!options.with_mode) options.model.drafter = "none";
}

std::string machine_words(const std::string& device, const std::string& driver, const std::string& kernels) {
  std::string words = printable(device) + " (" + printable(driver) + ")";
  // The family and its version; all choices of timing are in the JSON.
  return kernels.empty() ? words : words + ", " + printable(kernels.substr(0, kernels.find(';')));
}

void print_identity(const TraceReader& trace, const Engine& engine, const RecordedIdentity& identity) {
  const TraceHeader& h = trace.header();
  const ModelReady here = engine.describe();
  const std::optional<int64_t> moment = app::moment_in(h.created);
  std::cout << "recorded  " << printable(moment ? app::local_time_and_zone(*moment) : h.created) << " by Canopy "
            << printable(h.canopy_version) << " on " << machine_words(h.device, h.driver, h.variants) << "\n"
            << "here      " << machine_words(here.device, here.driver, engine.model->device().info().kernels) << "\n";
  const std::string model = printable(h.target.file_name.empty() ? h.target.name : h.target.file_name);
  const bool same = identity.differences.empty() && identity.notes.empty();
  std::cout << "model     " << model << (same ? ", the same here" : "") << "\n";
  for (const auto* list : {&identity.differences, &identity.notes})
    for (const std::string& sentence : *list) note("warning: " + sentence);
}

ordered_json token_json(std::optional<uint32_t> token, std::optional<float> logit, const TraceReader& trace,
                        const Engine& engine) {
  if (!token) return nullptr;
  const trace::Piece* piece = trace.piece(*token);
  const std::optional<trace::Piece> here = engine.texts->find(*token);
  return {{"token", *token},
          {"text", piece  ? ordered_json(std::string(piece->bytes))
                   : here ? ordered_json(std::string(here->bytes))
                          : ordered_json()},
          {"logit", logit ? ordered_json(*logit) : ordered_json()}};
}

ordered_json verdict_json(const ReplyVerdict& verdict, const TraceReader& trace, const Engine& engine) {
  static constexpr const char* kinds[] = {"same", "different", "not_checked"};
  ordered_json json = {{"reply", verdict.reply},
                       {"mode", to_string(verdict.mode)},
                       {"verdict", kinds[static_cast<size_t>(verdict.kind)]},
                       {"tokens", verdict.tokens}};
  if (!verdict.reason.empty()) json["reason"] = verdict.reason;
  if (const auto& d = verdict.difference)
    json["difference"] = {{"token", d->token},
                          {"position", d->position},
                          {"recorded", token_json(d->recorded, d->recorded_logit, trace, engine)},
                          {"here", token_json(d->here, d->here_logit, trace, engine)},
                          {"lead_nats", d->lead ? ordered_json(*d->lead) : ordered_json()},
                          {"near_tie", d->is_near_tie()}};
  return json;
}

void print_json(const TraceReader& trace, const Engine& engine, const RecordedIdentity& identity,
                const std::vector<ReplyVerdict>& verdicts, int code) {
  const ModelReady here = engine.describe();
  ordered_json replies = ordered_json::array();
  for (const ReplyVerdict& verdict : verdicts) replies.push_back(verdict_json(verdict, trace, engine));
  const ordered_json json = {{"same", code == kSame},
                             {"recorded", to_json(trace.header())},
                             {"here",
                              {{"device", here.device},
                               {"driver", here.driver},
                               {"kernels", engine.model->device().info().kernels},
                               {"model", here.file_name},
                               {"drafter", here.drafter},
                               {"kv_type", here.kv_type}}},
                             {"differences", identity.differences},
                             {"notes", identity.notes},
                             {"replies", std::move(replies)}};
  std::cout << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

std::vector<ReplyVerdict> verify_all(const TraceReader& trace, const Engine& engine, const VerifyOptions& options) {
  std::vector<ReplyVerdict> verdicts;
  const auto second = second_mode(options);
  ProgressLine line;
  for (size_t i = 0; i < trace.replies().size(); ++i) {
    std::vector<DecodeMode> modes = {DecodeMode::ar};
    if (second) modes.push_back(second->value_or(trace.replies()[i].begin.mode));
    if (modes.size() == 2 && modes[1] == DecodeMode::ar) modes.pop_back();
    for (const DecodeMode mode : modes) {
      VerifyCallbacks callbacks;
      callbacks.stop = interruption();
      callbacks.progress = [&](size_t done, size_t total) {
        line.show({"Reply " + std::to_string(i) + ", mode " + std::string(to_string(mode)), done, total});
      };
      verdicts.push_back(verify_reply(engine, trace, i, mode, callbacks));
      line.clear();
      if (!options.as_json)
        std::cout << "reply " << i << "   mode " << to_string(mode) << ": "
                  << printable(verdict_words(engine, trace, verdicts.back()), 4096) << "\n"
                  << std::flush;
    }
  }
  return verdicts;
}

int code_of(const std::vector<ReplyVerdict>& verdicts) {
  bool any = false;
  for (const ReplyVerdict& verdict : verdicts) {
    if (verdict.kind == ReplyVerdict::Kind::different) return kDiffers;
    any = any || verdict.kind == ReplyVerdict::Kind::same;
  }
  return any ? kSame : kCannotBeChecked;
}

void print_end(const std::vector<ReplyVerdict>& verdicts, int code) {
  size_t tokens = 0, replies = 0, skipped = 0;
  for (const ReplyVerdict& verdict : verdicts) {
    skipped += verdict.kind == ReplyVerdict::Kind::not_checked;
    if (verdict.kind != ReplyVerdict::Kind::same || verdict.mode != DecodeMode::ar) continue;
    tokens += verdict.tokens, ++replies;
  }
  const std::string left = skipped > 0 ? " " + std::to_string(skipped) + " not checked." : "";
  if (code == kSame)
    std::cout << "The text is the one that plain decoding writes here: " << app::counted(replies, "reply", "replies")
              << ", " << app::counted(tokens, "token", "tokens") << "." << left << "\n";
  else if (code == kDiffers)
    std::cout << "The text is not the one that plain decoding writes here." << left << "\n";
  else
    std::cout << "Nothing in the recording can be checked." << left << "\n";
}

int verify(VerifyOptions& options) {
  const TraceReader trace = TraceReader::open(options.file);
  if (!trace.notice().empty()) note("warning: " + shown(options.file) + ": " + trace.notice());
  if (trace.header().redacted)
    throw bad_input("The recording " + shown(options.file) +
                    " was made without texts and tokens, so nothing in it can be compared.");
  if (trace.replies().empty()) throw bad_input("The recording " + shown(options.file) + " has no reply.");
  second_mode(options);  // a wrong one is told before the model is loaded
  follow_recording(trace, options);
  catch_interrupts();
  const std::string recorded = printable(trace.header().target.file_name);
  const OpenedModel opened =
      with_context(recorded.empty() ? "The recording"
                                    : "The recording was made with " + quoted_name(trace.header().target.file_name),
                   [&] { return open_model(options.model); });
  const Engine& engine = *opened.model;
  const RecordedIdentity identity = compare_identity(engine, trace, options.with_mode);
  if (!identity.differences.empty() && !options.any_model)
    throw bad_input("The recording " + shown(options.file) + " is of another model than " + shown(engine.file_name) +
                    ", and another model writes another text. " + identity.differences.front() +
                    " --any-model compares all the same.");
  if (!options.as_json) print_identity(trace, engine, identity);
  const std::vector<ReplyVerdict> verdicts = verify_all(trace, engine, options);
  const int code = code_of(verdicts);
  if (options.as_json)
    print_json(trace, engine, identity, verdicts, code);
  else
    print_end(verdicts, code);
  return code;
}

/// What keeps a recording from being checked is told apart from a text that differs.
int run_verify(VerifyOptions& options) {
  try {
    return verify(options);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::cancelled && interrupted()) return kInterrupted;
    if (std::cout.bad()) throw;  // standard output is lost, which says nothing of the recording
    std::cerr << "canopy-cli: " << printable(e.what(), 4096, LineBreaks::keep) << "\n";
    return kCannotBeChecked;
  }
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check that a recording, made here or elsewhere, has the text that plain decoding writes here");
  command->footer("Exit status: 0 the same text, 1 it differs, 2 it cannot be checked.");
  const auto options = std::make_shared<VerifyOptions>();
  command->add_option("file", options->file, "A .canopytrace file")->required();
  add_model_options(*command, options->model);
  command
      ->add_option(
          "--mode", options->mode,
          "Check in this mode too: recorded (also without a word: that of each reply), chain, tree or adaptive")
      ->expected(0, 1);
  command->add_flag("--any-model", options->any_model, "Compare although the recording is of another model");
  command->add_flag("--json", options->as_json, "Print one JSON object");
  command->callback([&action, options, command] {
    options->with_mode = command->count("--mode") > 0;
    options->kv_chosen = command->count("--kv") > 0;
    options->quantize_chosen = command->count("--quantize") > 0;
    action = [options] { return run_verify(*options); };
  });
}

// canopy-cli report: what this device is, whether it is exact, and what passes take on it, as one file to send.

namespace {

struct ReportOptions {
  std::string device, model, drafter, out = "-", kv = "f16";
  DeviceSettings settings;
  std::vector<std::string> shapes;
  MeasurementPlan plan;
};

CacheType cache_type(const ReportOptions& options) {
  return checked_cache_type(options.kv);
}

MeasuringCallbacks callbacks(ProgressLine& line) {
  return {[&line](const LoadProgress& step) { line.show(step); }, interruption()};
}

MeasuredReport report_file(const ReportOptions& options) {
  ModelChoice choice;
  choice.model = options.model;
  choice.drafter = options.drafter;
  choice.device = options.device;
  choice.kv = options.kv;
  choice.settings = options.settings;
  choice.max_width = widest_pass(options.plan);
  choice.context = context_for(options.plan, ModelFile::open(options.model).config());
  const OpenedModel opened = open_model(choice);
  MeasuredReport report = describe_device(*opened.device, built_commit());
  ProgressLine line;
  report.models.push_back(measure_engine(*opened.model, options.plan, callbacks(line)));
  return report;
}

/// The file grows by each model, so that what was measured is there should a later one be cut off.
MeasuredReport report_shapes(const ReportOptions& options) {
  for (const std::string& name : options.shapes) (void)predict::model_shape(name);  // before anything takes time
  ProgressLine line;
  line.show({"Opening the device"});
  const std::unique_ptr<Device> device = open_device(options.device, options.settings);
  MeasuredReport report = describe_device(*device, built_commit());
  for (const std::string& name : options.shapes) {
    report.models.push_back(measure_shape(*device, name, cache_type(options), options.plan, callbacks(line)));
    if (const std::string& why = report.models.back().skipped; !why.empty()) note(name + " is left out: " + why);
    report.info = device->info();  // a self-test may have made it fall back to other kernels
    if (options.out != "-") write_report(options.out, report_text(report));
  }
  return report;
}

void print_summary(const MeasuredReport& report) {
  std::cout << report.info.name << " (" << report.info.driver << "), kernels '" << kernel_family_of(report.info.kernels)
            << "'\n";
  for (const MeasuredModel& model : report.models) {
    if (model.self_test) std::cout << "\n" << model.shape << ": " << model.self_test->sentence << "\n";
    if (model.self_test && !model.self_test->fallback.empty()) std::cout << model.self_test->fallback << "\n";
    if (!model.measurement) continue;
    const ModelMeasurement& measured = *model.measurement;
    for (const MeasuredContext& context : measured.contexts) {
      TextTable table{{"width"}, {{"ms, measured"}, {"host gap, ms"}, {"host's own work, ms"}}};
      for (const MeasuredWidth& pass : context.passes) {
        table.columns.push_back(std::to_string(pass.width));
        table.rows[0].push_back(fixed(pass.time.ms(), 3));
        table.rows[1].push_back(fixed(pass.time.host_gap_ms(), 3));
        table.rows[2].push_back(fixed(pass.time.host_ms, 3));
      }
      std::cout << "\nmeasured for " << model.shape << " at context " << context.context << "\n" << as_text(table);
      const double reached = measured.weights_gb_s(context);
      if (reached > 0) {
        std::cout << "weights at width 1: " << fixed(reached, 1) << " of " << fixed(measured.peak.read_gb_s, 1)
                  << " GB/s\n";
      }
    }
    for (const MeasuredRound& round : measured.rounds) {
      std::cout << "pass of " << round.width << " rows that emits " << round.emitted << ": "
                << fixed(round.time.wall_ms, 3) << " ms, of it the host's own work " << fixed(round.time.host_ms, 3)
                << "\n";
    }
    if (!measured.complete) std::cout << "Time ran out: wider passes are missing. --seconds gives more.\n";
  }
}

int run_report(ReportOptions options) {
  catch_interrupts();
  const std::vector<NamedFile> outputs = {{"--out", options.out}};
  if (!options.model.empty()) options.model = path_of_model(options.model);
  ModelChoice choice;
  choice.model = options.model;
  choice.drafter = options.drafter;
  require_outputs_apart(outputs, {}, options.model.empty() ? nullptr : &choice);
  if (options.plan.widths.empty() || options.plan.contexts.empty()) throw UsageError("There is nothing to measure.");
  std::ranges::sort(options.plan.widths);
  options.plan.widths.erase(std::ranges::unique(options.plan.widths).begin(), options.plan.widths.end());
  if (options.model.empty() && options.shapes.empty()) options.shapes = {kReportedShape};
  const MeasuredReport report = options.model.empty() ? report_shapes(options) : report_file(options);
  write_report(options.out, report_text(report));
  if (options.out != "-") {
    print_summary(report);
    std::cout << "\nThe report is written: figures of the device and its times, no paths, names or texts of yours.\n";
  }
  const bool any = std::ranges::any_of(report.models, [](const MeasuredModel& m) { return m.measurement.has_value(); });
  return any ? 0 : 1;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("report", "Measure this device and write what it is and does into one file to send");
  const auto options = std::make_shared<ReportOptions>();
  command->add_option("-d,--device", options->device, device_help());
  CLI::Option* model =
      command->add_option("-m,--model", options->model, "GGUF file, Hugging Face folder or name, as of generate");
  command->add_option("--drafter", options->drafter, "DFlash drafter of that model, or none (default: Canopy's own)")
      ->needs(model);
  command
      ->add_option("--shape", options->shapes,
                   std::string("Models of random weights, made on the device (default: ") + kReportedShape +
                       "): " + predict::allowed_shapes())
      ->delimiter(',')
      ->excludes(model);
  command->add_option("--out", options->out, "File to write; -: standard output")->capture_default_str();
  command->add_option("--kv", options->kv, "Type of the K/V cache")
      ->check(CLI::IsMember({"f16", "f32", "q8_0"}))
      ->capture_default_str();
  add_device_settings(*command, options->settings);
  command->add_option("--widths", options->plan.widths, "Rows of the passes")
      ->delimiter(',')
      ->transform(app::numbers(1u, 4096u))
      ->capture_default_str();
  command->add_option("--contexts", options->plan.contexts, "Positions before a pass")
      ->delimiter(',')
      ->transform(app::numbers(0u, 131072u))
      ->capture_default_str();
  command->add_option("--seconds", options->plan.seconds, "Time to measure each model in")
      ->transform(app::numbers(0.1, 3600.0))
      ->capture_default_str();
  command->add_option("--repeats", options->plan.most_repeats, "At most, of each pass; the median counts")
      ->transform(app::numbers(1u, 1000u))
      ->capture_default_str();
  command
      ->add_option("--calibrate", options->plan.calibration_seconds,
                   "Seconds to calibrate each shape in, as for choosing widths; 0: not")
      ->transform(app::numbers(0.0, 600.0))
      ->capture_default_str();
  command->callback([&action, options] { action = [options] { return run_report(*options); }; });
}

}  // namespace canopy::cli

// canopy-cli report: what this device is, whether it is exact, and what passes take on it, as one file to send.

#include <algorithm>
#include <iostream>
#include <memory>

#include "app/base/number_options.h"
#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "app/commit/built_commit.h"
#include "engine/devices/devices.h"
#include "engine/format/model_file.h"
#include "engine/predict/model_shapes.h"
#include "engine/session/device_measuring.h"

namespace canopy::cli {
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
      std::cout << "round of " << round.width << " rows that emits " << round.emitted << ": "
                << fixed(round.time.wall_ms, 3) << " ms, of it the host's own work " << fixed(round.time.host_ms, 3)
                << "\n";
    }
    if (!measured.complete) std::cout << "Time ran out: wider passes are missing. --seconds gives more.\n";
  }
}

int run_report(ReportOptions options) {
  catch_interrupts();
  const std::vector<NamedFile> outputs = {{"--out", options.out}};
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
  CLI::Option* model = command->add_option("-m,--model", options->model, "GGUF file or Hugging Face folder");
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

// canopy-cli report: what this device is, whether it is exact, and what passes take on it, as one file to send.

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "app/cli/bench_report.h"
#include "app/cli/built_commit.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/calibration/calibration_file.h"
#include "engine/format/model_file.h"
#include "engine/predict/model_shapes.h"
#include "engine/session/device_factory.h"
#include "engine/session/measured_report.h"

namespace canopy::cli {
namespace {

/// Positions behind the longest context that is measured: for the trees, and for what the self-test writes.
constexpr uint32_t kRoom = 256;
/// What is measured where neither a model nor a shape is named.
constexpr const char* kDefaultShape = "smollm2-135m-q4_k";

struct ReportOptions {
  std::string device, model, drafter, out = "-", kv = "f16";
  std::vector<std::string> shapes;
  MeasurementPlan plan;
};

uint32_t widest(const MeasurementPlan& plan) {
  return std::max(2u, *std::ranges::max_element(plan.widths));
}

/// Positions of the cache: enough for the longest context of the plan that the model has.
uint32_t wanted_context(const MeasurementPlan& plan, const ModelConfig& config) {
  return std::min(*std::ranges::max_element(plan.contexts) + kRoom, config.max_context);
}

LoadProgress step(std::string stage, uint64_t done, uint64_t total, bool in_bytes = false) {
  return {std::move(stage), done, total, in_bytes, -1};
}

void measure(Model& model, Sequence& sequence, const MeasurementPlan& plan, ProgressLine& line, MeasuredModel& result) {
  const auto progress = [&](uint32_t done, uint32_t total) { line.show(step("Timing passes", done, total)); };
  result.measurement = measure_model(model, sequence, plan, progress, interruption());
  result.parameters = model.config().parameters;
  result.cache_type = model.limits().cache_type;
  result.kernels = model.device().info().kernels;
}

/// Loads the shape with the context of the plan, or where memory does not hold that, with a short one.
std::unique_ptr<Model> load_shape(Device& device, const ModelFile& file, const ReportOptions& options,
                                  ProgressLine& line) {
  ModelOptions load;
  load.cache_type = options.kv == "f32" ? CacheType::f32 : CacheType::f16;
  load.max_width = widest(options.plan);
  load.context = wanted_context(options.plan, file.config());
  load.callbacks.stop = interruption();
  load.callbacks.progress = [&](uint64_t done, uint64_t total) {
    line.show(step("Making random weights", done, total, true));
  };
  try {
    return Model::load(device, file, load);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory || load.context <= kRoom) throw;
    load.context = kRoom;
    return Model::load(device, file, load);
  }
}

/// A shape that does not fit into the device's memory is skipped, with the reason.
MeasuredModel measure_shape(Device& device, const std::string& name, const ReportOptions& options, ProgressLine& line) {
  MeasuredModel result;
  result.shape = name;
  try {
    const std::unique_ptr<Model> model = [&] {
      const ModelFile file = predict::random_model(predict::model_shape(name));
      result.parameters = file.config().parameters;
      return load_shape(device, file, options, line);
    }();
    SelfTestCallbacks test;
    test.stop = interruption();
    test.progress = [&](uint32_t done, uint32_t total) { line.show(step("Checking exactness", done, total)); };
    result.self_test = self_test_or_fall_back(*model, test);
    Sequence sequence(*model);
    measure(*model, sequence, options.plan, line, result);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory) throw;
    result.skipped = e.what();
    note(name + " is left out: " + e.what());
  }
  return result;
}

MeasuredModel measure_file(Engine& engine, const MeasurementPlan& plan, ProgressLine& line) {
  MeasuredModel result;
  result.random = false;
  result.shape = predict::shape_name(engine.model->config());
  result.self_test = engine.self_test;
  if (engine.drafter != nullptr) {
    result.block = engine.drafter->config().block_size;
    result.calibration = load_calibration(calibration_folder(), engine.calibration_key()).table;
  }
  measure(*engine.model, *engine.sequence, plan, line, result);
  return result;
}

MeasuredReport describe(const Device& device) {
  MeasuredReport report;
  report.version = CANOPY_VERSION;
  report.commit = built_commit();
  report.info = device.info();
  report.device = report_of(report.info);
  report.memory = device.memory();
  report.cores = std::thread::hardware_concurrency();
  return report;
}

MeasuredReport report_file(const ReportOptions& options) {
  ModelChoice choice;
  choice.model = options.model;
  choice.drafter = options.drafter;
  choice.device = options.device;
  choice.kv = options.kv;
  choice.max_width = widest(options.plan);
  choice.context = wanted_context(options.plan, ModelFile::open(options.model).config());
  const OpenedModel opened = open_model(choice);
  MeasuredReport report = describe(*opened.device);
  ProgressLine line;
  report.models.push_back(measure_file(*opened.model, options.plan, line));
  return report;
}

/// The file grows by each model, so that what was measured is there should a later one be cut off.
MeasuredReport report_shapes(const ReportOptions& options) {
  for (const std::string& name : options.shapes) (void)predict::model_shape(name);  // before anything takes time
  ProgressLine line;
  line.show({"Opening the device"});
  const std::unique_ptr<Device> device = open_device(options.device);
  MeasuredReport report = describe(*device);
  for (const std::string& name : options.shapes) {
    report.models.push_back(measure_shape(*device, name, options, line));
    report.info = device->info();  // a self-test may have made it fall back to other kernels
    if (options.out != "-") write_report(options.out, json_text(to_json(report)));
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
      Table table{{"width"}, {{"ms, measured"}, {"host gap, ms"}}};
      for (const MeasuredWidth& pass : context.passes) {
        table.columns.push_back(std::to_string(pass.width));
        table.rows[0].push_back(fixed(pass.time.ms(), 3));
        table.rows[1].push_back(fixed(pass.time.host_gap_ms(), 3));
      }
      std::cout << "\nmeasured for " << model.shape << " at context " << context.context << "\n" << as_text(table);
      const double reached = measured.weights_gb_s(context);
      if (reached > 0) {
        std::cout << "weights at width 1: " << fixed(reached, 1) << " of " << fixed(measured.peak.read_gb_s, 1)
                  << " GB/s\n";
      }
    }
    if (!measured.complete) std::cout << "Time ran out: wider passes are missing. --seconds gives more.\n";
  }
}

int run_report(ReportOptions options) {
  catch_interrupts();
  if (options.plan.widths.empty() || options.plan.contexts.empty()) throw UsageError("There is nothing to measure.");
  std::ranges::sort(options.plan.widths);
  options.plan.widths.erase(std::ranges::unique(options.plan.widths).begin(), options.plan.widths.end());
  if (options.model.empty() && options.shapes.empty()) options.shapes = {kDefaultShape};
  const MeasuredReport report = options.model.empty() ? report_shapes(options) : report_file(options);
  write_report(options.out, json_text(to_json(report)));
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
  command->add_option("-d,--device", options->device, "Index, part of a name, or type (default: the best)");
  CLI::Option* model = command->add_option("-m,--model", options->model, "GGUF file or Hugging Face folder");
  command->add_option("--drafter", options->drafter, "DFlash drafter of that model, or none (default: Canopy's own)")
      ->needs(model);
  command
      ->add_option("--shape", options->shapes,
                   std::string("Models of random weights, made on the device (default: ") + kDefaultShape +
                       "): " + predict::allowed_shapes())
      ->delimiter(',')
      ->excludes(model);
  command->add_option("--out", options->out, "File to write; -: standard output")->capture_default_str();
  command->add_option("--kv", options->kv, "Type of the K/V cache")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  command->add_option("--widths", options->plan.widths, "Rows of the passes")
      ->delimiter(',')
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  command->add_option("--contexts", options->plan.contexts, "Positions before a pass")
      ->delimiter(',')
      ->check(CLI::Range(0u, 131072u))
      ->capture_default_str();
  command->add_option("--seconds", options->plan.seconds, "Time to measure each model in")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_option("--repeats", options->plan.most_repeats, "At most, of each pass; the median counts")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->callback([&action, options] { action = [options] { return run_report(*options); }; });
}

}  // namespace canopy::cli

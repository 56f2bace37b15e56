// canopy-cli calibrate: measures what passes cost on this device, and saves the result for mode adaptive.

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/base/number_options.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/calibration/calibration_file.h"
#include "engine/speculation/roofline_fit.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

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
  if (model.drafter == nullptr) {
    throw bad_input("There is nothing to calibrate without a drafter: name one with --drafter.");
  }
  ProgressLine line;
  OpenCallbacks callbacks;
  callbacks.progress = [&](const LoadProgress& progress) { line.show(progress); };
  callbacks.stop = interruption();
  const CostTable table = model.calibrate(options.seconds, callbacks);
  line.clear();
  if (!options.output.empty()) write_calibration(options.output, model.calibration_key(), table);
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

}  // namespace canopy::cli

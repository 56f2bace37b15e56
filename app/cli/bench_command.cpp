// canopy-cli bench: measures how fast a model runs on a device, also as a share of what the device can do.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/base/number_options.h"
#include "app/cli/bench_load_command.h"
#include "app/cli/bench_measure.h"
#include "app/cli/bench_modes_command.h"
#include "app/cli/bench_report.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/model_options.h"
#include "app/cli/terminal.h"
#include "engine/base/error.h"
#include "engine/session/measured_report.h"
#include "engine/session/reply_writer.h"

namespace canopy::cli {
namespace {

using nlohmann::ordered_json;

struct BenchOptions {
  ModelChoice model;
  BenchSettings settings;
  ModesOptions modes;
  bool load = false;
};

ordered_json by_width(const std::map<uint32_t, double>& values) {
  ordered_json object = ordered_json::object();
  for (const auto& [width, value] : values) object[std::to_string(width)] = value;
  return object;
}

ordered_json to_json(const BenchResult& result, const Engine& model) {
  const DeviceInfo& device = model.model->device().info();
  ordered_json json = {{"device", device.name},
                       {"driver", device.driver},
                       {"backend", device.backend},
                       {"kernels", kernel_family_of(device.kernels)},
                       {"model", model.file_name},
                       {"peak",
                        {{"read_gb_s", result.peak.read_gb_s},
                         {"fma_gflop_s", result.peak.fma_gflop_s},
                         {"plain_fma_gflop_s", result.peak.plain_fma_gflop_s},
                         {"matrix_gflop_s", result.peak.matrix_gflop_s}}},
                       {"decode_tokens_per_second", result.decode_tokens_per_second},
                       {"prefill_tokens_per_second", result.prefill_tokens_per_second},
                       {"pass_ms", by_width(result.pass_ms)},
                       {"best_pass_ms", by_width(result.best_pass_ms)},
                       {"share_of_fma_peak", by_width(result.share_of_fma_peak)},
                       {"share_of_plain_fma", by_width(result.share_of_plain_fma)},
                       {"share_of_matrix_peak", by_width(result.share_of_matrix_peak)},
                       {"share_of_roofline", by_width(result.share_of_roofline)}};
  const WorstStep worst = worst_step(result);
  if (worst.width > 0) json["worst_step"] = {{"width", worst.width}, {"above_neighbours", worst.above}};
  if (result.distinct_experts.empty()) return json;
  json["distinct_experts"] = by_width(result.distinct_experts);
  json["steps"] = by_width(steps_of(result));
  return json;
}

/// Time by the experts that the rows of a pass go through, which decide how many bytes it reads.
void print_experts(const BenchResult& result) {
  if (result.distinct_experts.empty()) return;
  std::cout << "\nexperts that the rows go through, the mean over layers; step: how much longer than the pass before "
               "beyond what\nfurther rows or experts explain, by the best times:\n"
               "width  experts  ms/expert     step\n";
  const std::map<uint32_t, double> steps = steps_of(result);
  double largest = 0;
  for (const auto& [width, experts] : result.distinct_experts) {
    const auto step = steps.find(width);
    char line[128];
    const std::string beyond = step == steps.end() ? "-" : fixed(100 * step->second, 1) + "%";
    std::snprintf(line, sizeof line, "%5u %8.2f %10.3f %8s\n", width, experts, result.best_pass_ms.at(width) / experts,
                  beyond.c_str());
    std::cout << line;
    if (step != steps.end()) largest = std::max(largest, step->second);
  }
  std::cout << "largest step: " << fixed(100 * largest, 1) << "%\n";
}

std::string percent(const std::map<uint32_t, double>& shares, uint32_t width) {
  return fixed(100 * shares.at(width), 1) + "%";
}

TextTable passes_of(const BenchResult& result) {
  TextTable table{{"width", "ms", "ms/row", "best", "of FMA peak", "of plain loop", "of roofline"}, {}};
  const bool has_cores = !result.share_of_matrix_peak.empty();
  if (has_cores) table.columns.push_back("of matrix peak");
  for (const auto& [width, ms] : result.pass_ms) {
    table.rows.push_back({std::to_string(width), fixed(ms, 2), fixed(ms / width, 2),
                          fixed(result.best_pass_ms.at(width), 2), percent(result.share_of_fma_peak, width),
                          percent(result.share_of_plain_fma, width), percent(result.share_of_roofline, width)});
    if (has_cores) table.rows.back().push_back(percent(result.share_of_matrix_peak, width));
  }
  return table;
}

std::string matrix_peak(const DevicePeak& peak) {
  return peak.matrix_gflop_s > 0 ? ", " + fixed(peak.matrix_gflop_s, 1) + " of matrix cores" : "";
}

void print_table(const BenchResult& result, const BenchSettings& settings, const Engine& model) {
  const DeviceInfo& device = model.model->device().info();
  std::cout << "model    " << model.file_name << "\n"
            << "device   " << device.name << " (" << device.driver << "), kernels " << kernel_family_of(device.kernels)
            << (device.rounds_to_8_bits ? " (8-bit activations)" : "") << "\n"
            << "peak     " << fixed(result.peak.read_gb_s, 1) << " GB/s read, " << fixed(result.peak.fma_gflop_s, 1)
            << " GFLOP/s multiply-add (" << fixed(result.peak.plain_fma_gflop_s, 1) << " in a plain loop)"
            << matrix_peak(result.peak) << ", measured in this run\n"
            << "decode   " << fixed(result.decode_tokens_per_second, 1) << " tok/s\n"
            << "prefill  " << fixed(result.prefill_tokens_per_second, 1) << " tok/s (" << settings.prefill_tokens
            << " tokens)\n\n"
            << "passes after " << settings.context << " positions, every row's argmax taken:\n"
            << as_text(passes_of(result));
  const WorstStep worst = worst_step(result);
  if (worst.width > 0) {
    std::cout << "worst step: from " << worst.width << " rows to " << worst.width + 1 << ", "
              << fixed(100 * worst.above, 1) << "% of the pass of " << worst.width
              << " above the mean of the eight steps nearest to it, by the best times\n";
  }
  print_experts(result);
}

void fit_to_model(BenchSettings& settings, const Engine& model) {
  const ModelLimits& limits = model.model->limits();
  const uint32_t longest = std::max({settings.prefill_tokens, settings.context + settings.decode_tokens,
                                     settings.context + 16});  // a binary tree of 128 rows has depth 8
  if (longest > limits.context) {
    throw bad_input("The measurement needs a context of " + std::to_string(longest) + " positions; the model has " +
                    std::to_string(limits.context) + ". Choose a smaller --at, --decode-tokens or --prefill-tokens.");
  }
  for (const uint32_t width : settings.widths) {
    if (width == 0 || width > limits.max_width) {
      throw bad_input("A pass of width " + std::to_string(width) + " was asked for; allowed: 1 to " +
                      std::to_string(limits.max_width) + ".");
    }
  }
  settings.prefill_chunk = prefill_chunk(*model.model);
}

int run(BenchOptions& options) {
  catch_interrupts();
  options.model.self_test = false;
  const OpenedModel opened = open_model(options.model);
  if (options.settings.widths.empty()) options.settings.widths = standard_widths();
  fit_to_model(options.settings, *opened.model);
  const auto step = [](const char* what) { note(what); };
  const BenchResult result = run_bench(*opened.model->model, options.settings, step, interruption());
  if (!options.modes.json.empty()) {
    write_report(options.modes.json, json_text(to_json(result, *opened.model)));
  }
  if (options.modes.json != "-") print_table(result, options.settings, *opened.model);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Measure decoding, prefill and passes against the device's own peak");
  const auto options = std::make_shared<BenchOptions>();
  BenchSettings& settings = options->settings;
  add_model_options(*command, options->model);
  command->add_option("--widths", settings.widths, "Widths of passes, e.g. 1,2,4,8 (default: 1 to 128)")
      ->delimiter(',')
      ->transform(app::numbers(1u, 4096u));
  command->add_option("--at", settings.context, "Positions before each pass")
      ->transform(app::counts())
      ->capture_default_str();
  CLI::Option* repeats = command
                             ->add_option("--repeats", settings.repeats,
                                          "Measurements of each width; their median counts. With --modes: of each "
                                          "prompt and mode (default: 3)")
                             ->transform(app::numbers(1, 1000))
                             ->capture_default_str();
  command->add_option("--decode-tokens", settings.decode_tokens, "Tokens decoded")
      ->transform(app::counts())
      ->capture_default_str();
  command->add_option("--prefill-tokens", settings.prefill_tokens, "Tokens of the prompt")
      ->transform(app::counts())
      ->capture_default_str();
  command->add_option("--json", options->modes.json, "Print one JSON object, or write it to a file")
      ->expected(0, 1)
      ->default_str("-");
  command->add_flag("--load", options->load,
                    "Measure instead how fast the weights are loaded, beside what disk, memory and device reach by "
                    "themselves");
  add_modes_options(*command, options->modes);
  command->callback([&action, options, command, repeats] {
    if (repeats->count() > 0) options->modes.repeats = options->settings.repeats;
    const bool modes = asks_for_modes(*command, options->modes);
    if (modes && options->load) throw UsageError("--load measures something else than --modes and --forced; name one.");
    action = [options, modes] {
      check_bench_targets(options->model, options->modes);
      if (options->load) {
        return run_load_bench(options->model, std::min(options->settings.repeats, 100u), options->modes.json);
      }
      return modes ? run_modes(options->model, options->modes) : run(*options);
    };
  });
}

}  // namespace canopy::cli

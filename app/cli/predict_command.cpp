// canopy-cli predict: what the passes of a model would take on GPUs and processors that need not be here. Everything it
// prints is predicted.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/terminal.h"
#include "app/state/number_options.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/format/json_text.h"
#include "engine/whatif/prediction.h"

namespace canopy::cli {
namespace {

// Measured times of passes, as a file brings them: what `canopy-cli predict --json` prints, with "source": "measured".

/// The passes of a model on a device.
struct MeasuredPasses {
  std::string device, shape;
  uint32_t context = 0;          // positions before each pass
  std::vector<uint32_t> widths;  // ascending
  std::vector<double> ms;        // [widths]
  double bandwidth_share = 0;    // of the peak, at width 1; 0: the file does not say
};

using nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr size_t kMostPasses = 4096;
constexpr double kWidest = 4096, kLongestMs = 1e9;

/// Numbers above 0, up to `most`.
std::vector<double> numbers(const JsonFields& fields, const char* field, double most) {
  std::vector<double> result;
  for (const json& each : fields.list(field)) {
    const double value = each.is_number() ? each.get<double>() : 0;
    if (!(value > 0 && value <= most)) {
      throw bad_input("The field '" + std::string(field) + "' has " + each.dump(-1, ' ', true).substr(0, 60) +
                      "; allowed: numbers above 0, up to " + std::to_string(static_cast<uint64_t>(most)) + ".");
    }
    result.push_back(value);
  }
  if (result.empty() || result.size() > kMostPasses) {
    throw bad_input("The field '" + std::string(field) + "' has " + std::to_string(result.size()) +
                    " numbers; allowed: 1 to " + std::to_string(kMostPasses) + ".");
  }
  return result;
}

MeasuredPasses passes_of(const json& value) {
  const JsonFields fields(value, "an entry of 'devices'");
  if (const std::string source = fields.text("source"); source != "measured") {
    throw bad_input("The field 'source' is " + quoted_name(source) + "; allowed: 'measured'.");
  }
  MeasuredPasses passes;
  passes.device = fields.text("name");
  passes.shape = fields.text("shape");
  passes.context = fields.u32_or("context", 0);
  passes.ms = numbers(fields, "ms", kLongestMs);
  for (const double width : numbers(fields, "widths", kWidest)) {
    if (width != std::floor(width) || (!passes.widths.empty() && width <= passes.widths.back())) {
      throw bad_input("The field 'widths' has " + std::to_string(width) + "; allowed: ascending whole numbers.");
    }
    passes.widths.push_back(static_cast<uint32_t>(width));
  }
  if (passes.widths.size() != passes.ms.size()) {
    throw bad_input("The field 'ms' has " + std::to_string(passes.ms.size()) + " numbers and 'widths' has " +
                    std::to_string(passes.widths.size()) + "; they must be as many.");
  }
  passes.bandwidth_share = fields.number_or("bandwidth_share", 0);
  if (!(passes.bandwidth_share >= 0 && passes.bandwidth_share <= 1)) {
    throw bad_input("The field 'bandwidth_share' is " + std::to_string(passes.bandwidth_share) + "; allowed: 0 to 1.");
  }
  return passes;
}

/// {"devices": [{"name", "shape", "widths", "ms", "source": "measured", "context", "bandwidth_share"}]}; the last two
/// may be missing, other keys are ignored. Throws bad_input that names the file and the key.
std::vector<MeasuredPasses> read_measured(const std::filesystem::path& path) {
  return with_context(shown(path), [&] {
    const json document = parse_json(read_text_input(path, kMostBytes), "The file");
    std::vector<MeasuredPasses> result;
    for (const json& value : JsonFields(document, "the file").list("devices")) result.push_back(passes_of(value));
    return result;
  });
}

using nlohmann::ordered_json;

struct PredictOptions {
  std::string model, device = "all", kernels, assumptions, measured;
  uint32_t context = 0;
  std::vector<uint32_t> widths;
  bool with_ops = false, as_json = false;
};

/// The passes on one device, narrowest first.
struct DevicePrediction {
  const predict::DeviceProfile* device = nullptr;
  predict::Kernels kernels = predict::Kernels::matrix;
  std::vector<predict::PassPrediction> passes;
  double share = 0;  // of the peak bandwidth, at width 1
  double ms_of_one = 0;
};

/// Rules to replace are those of the Vulkan kernels: those of CUDA and of processors go by their instructions.
predict::Kernels kernels_of(const PredictOptions& options, const predict::DeviceProfile& device) {
  if (!options.kernels.empty()) return predict::kernels_named(options.kernels);
  return options.assumptions.empty() ? predict::default_kernels(device) : predict::vulkan_kernels(device);
}

DevicePrediction predict_device(predict::RecordedModel& model, const predict::DeviceProfile& device,
                                const PredictOptions& options) {
  DevicePrediction result;
  result.device = &device;
  result.kernels = kernels_of(options, device);
  predict::KernelRules rules = predict::rules_of(result.kernels);
  predict::assume(rules, options.assumptions);
  if (device.is_processor() && !options.assumptions.empty()) {
    throw bad_input("The " + std::string(device.name) +
                    " is a processor, whose kernels have no rules to replace: --assume is for GPUs.");
  }
  const bool integers = result.kernels == predict::Kernels::matrix_i8;
  const bool on_matrix_cores = !device.is_processor() && (integers || result.kernels == predict::Kernels::matrix);
  if (on_matrix_cores && (integers ? device.integer_tops : device.matrix_tflop_s) <= 0) {
    throw bad_input("The " + std::string(device.name) + " has no matrix cores" + (integers ? " for integers" : "") +
                    "; allowed kernels: fma, llama.cpp.");
  }
  const predict::PassPrediction one = predict::predict_pass(model, device, rules, 1, options.context);
  result.share = predict::bandwidth_share(one, device);
  result.ms_of_one = one.ms;
  for (const uint32_t width : options.widths) {
    if (result.kernels == predict::Kernels::llama_cpp && width > 1) continue;
    result.passes.push_back(width == 1 ? one : predict::predict_pass(model, device, rules, width, options.context));
  }
  return result;
}

ordered_json ops_to_json(const DevicePrediction& prediction) {
  ordered_json passes = ordered_json::array();
  for (const predict::PassPrediction& pass : prediction.passes) {
    ordered_json ops = ordered_json::array();
    for (const predict::OpPrediction& op : pass.ops) {
      ops.push_back({{"op", op.name},
                     {"shapes", op.shapes},
                     {"times", op.count},
                     {"kernel", op.kernel},
                     {"registers", op.registers},
                     {"shared_bytes", op.shared_bytes},
                     {"workgroups", op.workgroups},
                     {"us", op.each.total},
                     {"limit", predict::to_string(op.each.limit)}});
    }
    passes.push_back({{"width", pass.width}, {"ms", pass.ms}, {"host_ms", pass.host_ms}, {"ops", ops}});
  }
  return passes;
}

ordered_json to_json(const DevicePrediction& prediction, const std::string& shape, const PredictOptions& options) {
  ordered_json widths = ordered_json::array(), ms = ordered_json::array();
  for (const predict::PassPrediction& pass : prediction.passes) {
    widths.push_back(pass.width);
    ms.push_back(pass.ms);
  }
  ordered_json all = {{"name", prediction.device->name},
                      {"gpu", prediction.device->gpu},
                      {"shape", shape},
                      {"context", options.context},
                      {"kernels", predict::to_string(prediction.kernels)},
                      {"source", "predicted"},
                      {"widths", widths},
                      {"ms", ms},
                      {"bandwidth_share", prediction.share},
                      {"peak_gb_s", prediction.device->memory_gb_s}};
  if (options.with_ops) all["passes"] = ops_to_json(prediction);
  return all;
}

ordered_json to_json(const MeasuredPasses& passes) {
  return {{"name", passes.device},
          {"shape", passes.shape},
          {"context", passes.context},
          {"source", "measured"},
          {"widths", passes.widths},
          {"ms", passes.ms},
          {"bandwidth_share", passes.bandwidth_share}};
}

void print(const MeasuredPasses& passes) {
  TextTable table{{"width"}, {{"ms, measured"}, {"T(N)/T(1), measured"}}};
  for (size_t i = 0; i < passes.widths.size(); ++i) {
    table.columns.push_back(std::to_string(passes.widths[i]));
    table.rows[0].push_back(fixed(passes.ms[i], 2));
    table.rows[1].push_back(passes.widths[0] == 1 ? fixed(passes.ms[i] / passes.ms[0], 2) : "-");
  }
  std::cout << passes.device << ": measured for " << passes.shape << " at context " << passes.context << "\n"
            << as_text(table);
}

void print_passes(const DevicePrediction& prediction) {
  TextTable table{{"width"}, {{"ms, predicted"}, {"T(N)/T(1), predicted"}, {"times one at a time, predicted"}}};
  for (const predict::PassPrediction& pass : prediction.passes) {
    table.columns.push_back(std::to_string(pass.width));
    const double ratio = pass.ms / prediction.ms_of_one;
    table.rows[0].push_back(fixed(pass.ms, 2));
    table.rows[1].push_back(fixed(ratio, 2));
    table.rows[2].push_back(fixed(pass.width / ratio, 1));
  }
  std::cout << as_text(table);
}

void print_ops(const DevicePrediction& prediction) {
  for (const predict::PassPrediction& pass : prediction.passes) {
    TextTable table{{"op", "shapes", "kernel", "times", "workgroups", "memory", "cache", "arithmetic", "dispatches",
                     "one, µs", "all, ms", "limited by"},
                    {}};
    for (const predict::OpPrediction& op : pass.ops) {
      table.rows.push_back({op.name, op.shapes, op.kernel.empty() ? "-" : op.kernel, std::to_string(op.count),
                            fixed(op.workgroups, 0), fixed(op.each.memory, 1), fixed(op.each.cache, 1),
                            fixed(op.each.arithmetic, 1), fixed(op.each.steps, 1), fixed(op.each.total, 1),
                            fixed(op.count * op.each.total / 1e3, 3), predict::to_string(op.each.limit)});
    }
    std::cout << "\nA pass of " << pass.width << " rows, predicted: " << fixed(pass.ms, 3) << " ms, of which the host "
              << fixed(pass.host_ms, 3) << "\n"
              << as_text(table);
  }
}

void print(const DevicePrediction& prediction, const std::string& shape, const PredictOptions& options) {
  const predict::DeviceProfile& device = *prediction.device;
  std::cout << device.name << " (" << device.gpu << "): predicted for " << shape << " at context " << options.context
            << ", kernels '" << predict::to_string(prediction.kernels) << "'\n";
  print_passes(prediction);
  std::cout << "predicted at width 1: " << fixed(1e3 / prediction.ms_of_one, 1) << " tokens/s, "
            << fixed(100 * prediction.share, 0) << "% of " << fixed(device.memory_gb_s, 0) << " GB/s\n";
  if (options.with_ops) print_ops(prediction);
}

/// Of all devices those that the named kernels are for.
std::span<const predict::DeviceProfile> devices_of(const PredictOptions& options) {
  if (options.device != "all" || (options.kernels.empty() && options.assumptions.empty()))
    return predict::chosen_profiles(options.device);
  const bool processors = !options.kernels.empty() && is_of_processors(predict::kernels_named(options.kernels));
  return processors ? predict::processor_profiles() : predict::gpu_profiles();
}

int run_predict(PredictOptions options) {
  const std::span<const predict::DeviceProfile> devices = devices_of(options);
  if (options.widths.empty()) {
    const std::span<const uint32_t> usual = predict::usual_widths();
    options.widths.assign(usual.begin(), usual.end());
  }
  std::vector<MeasuredPasses> measured;
  if (!options.measured.empty()) measured = read_measured(options.measured);
  const predict::NamedModelPasses opened = predict::open_for_prediction(options.model);
  const uint32_t most = opened.model->config().max_context;
  if (options.context > most) {
    throw bad_input("The context is " + std::to_string(options.context) + " positions; allowed: 0 to " +
                    std::to_string(most) + ", what the model was made for.");
  }
  ordered_json list = ordered_json::array();
  for (const predict::DeviceProfile& device : devices) {
    const predict::Kernels kernels = kernels_of(options, device);
    if (devices.size() > 1 && is_of_processors(kernels) && !has(device.processor, kernels)) continue;
    const DevicePrediction prediction = predict_device(*opened.model, device, options);
    if (options.as_json) {
      list.push_back(to_json(prediction, opened.name, options));
    } else {
      if (&device != devices.data()) std::cout << "\n";
      print(prediction, opened.name, options);
    }
  }
  for (const MeasuredPasses& passes : measured) {
    if (options.as_json) {
      list.push_back(to_json(passes));
    } else {
      std::cout << "\n";
      print(passes);
    }
  }
  if (options.as_json) {
    const ordered_json all = {{"devices", list}};
    std::cout << all.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  }
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "predict", "Predict the time of a model's passes on GPUs and processors that need not be here");
  const auto options = std::make_shared<PredictOptions>();
  command
      ->add_option("-m,--model", options->model,
                   "GGUF file or Hugging Face folder, or a shape: " + predict::allowed_shapes())
      ->required();
  std::string names;
  for (const predict::DeviceProfile& each : predict::device_profiles()) names += std::string(each.name) + ", ";
  command->add_option("-d,--device", options->device, names + "gpus, processors or all")->capture_default_str();
  command->add_option("--context", options->context, "Positions before the pass")
      ->transform(app::numbers<uint32_t>(0, UINT32_MAX))
      ->capture_default_str();
  command->add_option("--widths", options->widths, "Rows of the passes (default: 1 to 128)")
      ->delimiter(',')
      ->transform(app::numbers(1u, predict::RecordedModel::kMaxWidth));
  command->add_option(
      "--kernels", options->kernels,
      "fma and matrix: by multiply-adds and on matrix cores; matrix_i8: the same with activations of 8 "
      "bits; cuda: the CUDA backend's, on NVIDIA's GPUs; llama.cpp: at width 1, for comparison; avx2, vnni, avx512, "
      "neon: of processors (default: what Canopy uses there: cuda on NVIDIA's GPUs; elsewhere and with --assume matrix "
      "where there are matrix cores, else fma; on a processor those of its widest registers)");
  command->add_option("--assume", options->assumptions,
                      "Rules of the kernels to replace, not of CUDA's or a processor's: tile_rows=128,...");
  command->add_option("--measured", options->measured, "JSON file of measured passes to print beside them");
  command->add_flag("--ops", options->with_ops, "Print the time of each op, too");
  command->add_flag("--json", options->as_json, "Print a JSON object");
  command->callback([&action, options] { action = [options] { return run_predict(*options); }; });
}

}  // namespace canopy::cli

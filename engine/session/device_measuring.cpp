#include "engine/session/device_measuring.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/calibration/calibration_file.h"
#include "engine/devices/devices.h"
#include "engine/predict/model_shapes.h"
#include "engine/session/model_timer.h"

namespace canopy {
namespace {

/// Positions behind the longest context that is measured: for the trees, and for what the self-test writes.
constexpr uint32_t kRoomBehind = 256;

void tell(const MeasuringCallbacks& callbacks, const char* stage, uint64_t done, uint64_t total,
          bool in_bytes = false) {
  if (callbacks.progress) callbacks.progress({stage, done, total, in_bytes, -1});
}

void measure_into(Model& model, Sequence& sequence, const MeasurementPlan& plan, const MeasuringCallbacks& callbacks,
                  MeasuredModel& result) {
  const auto progress = [&](uint32_t done, uint32_t total) { tell(callbacks, "Timing passes", done, total); };
  result.measurement = measure_model(model, sequence, plan, progress, callbacks.stop);
  result.parameters = model.config().parameters;
  result.cache_type = model.limits().cache_type;
  result.kernels = model.device().info().kernels;
}

LoadCallbacks loading(const MeasuringCallbacks& callbacks) {
  LoadCallbacks load;
  load.stop = callbacks.stop;
  load.progress = [&callbacks](uint64_t done, uint64_t total) {
    tell(callbacks, "Making random weights", done, total, true);
  };
  return load;
}

std::unique_ptr<Model> load_random(Device& device, const ModelFile& file, const DrafterConfig& drafter, CacheType cache,
                                   const MeasurementPlan& plan, const MeasuringCallbacks& callbacks) {
  ModelOptions load;
  load.cache_type = cache;
  load.aux_layers = drafter.aux_layers;
  load.max_width = widest_pass(plan);
  load.callbacks = loading(callbacks);
  // The longest context of the plan that memory holds.
  std::vector<uint32_t> contexts = plan.contexts;
  std::ranges::sort(contexts, std::greater());
  for (const uint32_t context : contexts) {
    load.context = std::min(context + kRoomBehind, file.config().max_context);
    try {
      return Model::load(device, file, load);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory || context == contexts.back()) throw;
    }
  }
  throw bad_input("A plan without contexts.");
}

/// Null where the device's memory does not hold it beside its target, which can be measured all the same.
std::unique_ptr<Drafter> load_random_drafter(const DrafterFile& file, Model& target, CacheType cache,
                                             const MeasuringCallbacks& callbacks) {
  try {
    return Drafter::load(file, target, {cache, loading(callbacks), nullptr});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory) throw;
    log_info("The drafter is left out: " + std::string(e.what()));
    return nullptr;
  }
}

CostTable calibrate_pair(Model& model, Sequence& sequence, double seconds, const MeasuringCallbacks& callbacks) {
  ModelTimer timer(model, sequence, callbacks.stop);
  return calibrate(timer, calibration_plan(model, *sequence.drafter(), seconds),
                   [&](const CalibrationProgress& now) { tell(callbacks, "Calibrating", now.done, now.total); });
}

}  // namespace

MeasuredReport describe_device(const Device& device, const std::string& commit) {
  MeasuredReport report;
  report.version = CANOPY_VERSION;
  report.commit = commit;
  report.info = device.info();
  report.device = device_json(report.info);
  report.memory = device.memory();
  report.cores = std::thread::hardware_concurrency();
  return report;
}

uint32_t widest_pass(const MeasurementPlan& plan) {
  return std::max(2u, *std::ranges::max_element(plan.widths));
}

uint32_t context_for(const MeasurementPlan& plan, const ModelConfig& config) {
  return std::min(*std::ranges::max_element(plan.contexts) + kRoomBehind, config.max_context);
}

MeasuredModel measure_engine(Engine& engine, const MeasurementPlan& plan, const MeasuringCallbacks& callbacks) {
  MeasuredModel result;
  result.random = false;
  result.shape = predict::shape_name(engine.model->config());
  result.self_test = engine.self_test;
  if (engine.drafter != nullptr) {
    result.block = engine.drafter->config().block_size;
    result.calibration = load_calibration(calibration_folder(), engine.calibration_key()).table;
  }
  measure_into(*engine.model, engine.resident->current(), plan, callbacks, result);
  return result;
}

MeasuredModel measure_shape(Device& device, const std::string& name, CacheType cache, const MeasurementPlan& plan,
                            const MeasuringCallbacks& callbacks) {
  MeasuredModel result;
  result.shape = name;
  try {
    const predict::NamedShape shape = predict::model_shape(name);
    const ModelFile file = predict::random_model(shape);
    const DrafterFile drafter_file = predict::random_drafter(shape);
    result.parameters = file.config().parameters;
    const std::unique_ptr<Model> model = load_random(device, file, drafter_file.config(), cache, plan, callbacks);
    const std::unique_ptr<Drafter> drafter = load_random_drafter(drafter_file, *model, cache, callbacks);
    SelfTestCallbacks test;
    test.stop = callbacks.stop;
    test.progress = [&](uint32_t done, uint32_t total) { tell(callbacks, "Checking exactness", done, total); };
    result.self_test = self_test_or_fall_back(*model, test);
    Sequence sequence(*model, drafter.get());
    if (drafter != nullptr) result.block = drafter->config().block_size;
    measure_into(*model, sequence, plan, callbacks, result);
    if (drafter != nullptr && plan.calibration_seconds > 0) {
      result.calibration = calibrate_pair(*model, sequence, plan.calibration_seconds, callbacks);
    }
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory) throw;
    result.skipped = e.what();
  }
  return result;
}

std::string report_text(const MeasuredReport& report) {
  return to_json(report).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace canopy

#include "engine/session/measured_report.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "engine/base/error.h"
#include "engine/model/drafter.h"
#include "engine/session/devices.h"
#include "engine/speculation/calibration.h"
#include "engine/whatif/model_shapes.h"

namespace canopy {
namespace {

using nlohmann::ordered_json;

ordered_json reported_device(const MeasuredReport& report) {
  const DeviceInfo& info = report.info;
  ordered_json json = report.device;
  if (json.is_null()) json = {{"name", info.name}, {"type", info.type}, {"driver", info.driver}};
  json["backend"] = info.backend;
  json["is_software"] = info.type == "software";
  json["kernel_family"] = kernel_family_of(info.kernels);
  json["adds_in_halves"] = info.adds_in_halves;
  json["draws_tokens"] = info.draws_tokens;
  json["widest_tile"] = info.widest_tile;
  json["width_buckets"] = info.width_buckets;
  json["memory_available"] = report.memory.available;
  return json;
}

ordered_json peak_json(const DevicePeak& peak) {
  return {{"read_gb_s", peak.read_gb_s},
          {"fma_gflop_s", peak.fma_gflop_s},
          {"plain_fma_gflop_s", peak.plain_fma_gflop_s},
          {"matrix_gflop_s", peak.matrix_gflop_s}};
}

ordered_json self_test_json(const SelfTestReport& test) {
  return {{"ran", test.ran},           {"passed", test.passed},     {"draws_alike", test.draws_alike},
          {"sentence", test.sentence}, {"fallback", test.fallback}, {"ms", test.ms}};
}

ordered_json calibration_json(const CostTable& table) {
  ordered_json verify = ordered_json::array(), draft = ordered_json::array();
  for (const CostPoint& point : table.verify_points()) {
    verify.push_back({{"width", point.rows}, {"context", point.context}, {"ms", point.ms}});
  }
  for (const CostPoint& point : table.draft_points()) {
    draft.push_back({{"backlog", point.rows}, {"context", point.context}, {"ms", point.ms}});
  }
  return {{"verify_ms", verify}, {"draft_ms", draft}};
}

ordered_json drafts_json(const std::vector<MeasuredDraft>& drafts) {
  ordered_json list = ordered_json::array();
  for (const MeasuredDraft& draft : drafts) {
    list.push_back({{"context", draft.context},
                    {"backlog", draft.backlog},
                    {"ms", draft.time.ms()},
                    {"wall_ms", draft.time.wall_ms},
                    {"host_ms", draft.time.host_ms},
                    {"repeats", draft.time.repeats}});
  }
  return list;
}

ordered_json rounds_json(const ModelMeasurement& measured) {
  ordered_json list = ordered_json::array();
  for (const MeasuredRound& round : measured.rounds) {
    ordered_json entry = {{"context", round.context}, {"width", round.width},          {"emitted", round.emitted},
                          {"ms", round.time.ms()},    {"wall_ms", round.time.wall_ms}, {"host_ms", round.time.host_ms}};
    if (round.time.device_ms > 0) entry["host_gap_ms"] = round.time.host_gap_ms();
    entry["repeats"] = round.time.repeats;
    entry["speedup"] = measured.speedup(round);
    list.push_back(std::move(entry));
  }
  return list;
}

ordered_json model_json(const MeasuredModel& model) {
  ordered_json json = {{"shape", model.shape},
                       {"weights", model.random ? "random" : "file"},
                       {"parameters", model.parameters},
                       {"kv", to_string(model.cache_type)}};
  if (!model.skipped.empty()) json["skipped"] = model.skipped;
  if (model.self_test) json["self_test"] = self_test_json(*model.self_test);
  if (model.measurement) {
    json["peak"] = peak_json(model.measurement->peak);
    json["complete"] = model.measurement->complete;
    json["seconds"] = model.measurement->seconds;
    json["pass_bytes"] = model.measurement->pass_bytes;
    json["kernels"] = model.kernels;
  }
  if (model.block != 0 && model.measurement) {
    json["drafter"] = {{"block", model.block},
                       {"passes", drafts_json(model.measurement->drafts)},
                       {"rounds", rounds_json(*model.measurement)}};
  }
  if (model.calibration) json["calibration"] = calibration_json(*model.calibration);
  return json;
}

/// An entry that `canopy-cli predict --measured` reads.
ordered_json passes_json(const MeasuredReport& report, const MeasuredModel& model, const MeasuredContext& context) {
  const double peak = model.measurement->peak.read_gb_s, reached = model.measurement->weights_gb_s(context);
  const bool has_clock = context.passes[0].time.device_ms > 0;
  ordered_json widths = ordered_json::array(), ms = ordered_json::array(), wall = ordered_json::array();
  ordered_json host = ordered_json::array(), gaps = ordered_json::array(), repeats = ordered_json::array();
  for (const MeasuredWidth& pass : context.passes) {
    widths.push_back(pass.width);
    ms.push_back(pass.time.ms());
    wall.push_back(pass.time.wall_ms);
    host.push_back(pass.time.host_ms);
    gaps.push_back(pass.time.host_gap_ms());
    repeats.push_back(pass.time.repeats);
  }
  ordered_json json = {{"name", report.info.name},
                       {"backend", report.info.backend},
                       {"shape", model.shape},
                       {"context", context.context},
                       {"kernels", kernel_family_of(model.kernels)},
                       {"source", "measured"},
                       {"clock", has_clock ? "device" : "host"},
                       {"widths", widths},
                       {"ms", ms},
                       {"wall_ms", wall},
                       {"host_ms", host}};
  if (has_clock) json["host_gap_ms"] = gaps;
  json["repeats"] = repeats;
  json["weights_gb_s"] = reached;
  json["peak_gb_s"] = peak;
  // Weights that a cache holds are read faster than memory can be.
  json["bandwidth_share"] = peak > 0 ? std::min(1.0, reached / peak) : 0.0;
  return json;
}

}  // namespace

std::string kernel_family_of(const std::string& kernels) {
  const std::string version = kernels.substr(0, kernels.find(';'));
  return version.substr(version.rfind(' ') + 1);
}

ordered_json to_json(const MeasuredReport& report) {
  ordered_json models = ordered_json::array(), passes = ordered_json::array();
  for (const MeasuredModel& model : report.models) {
    models.push_back(model_json(model));
    if (!model.measurement) continue;
    for (const MeasuredContext& context : model.measurement->contexts) {
      passes.push_back(passes_json(report, model, context));
    }
  }
  return {{"version", kMeasuredReportVersion},
          {"source", "measured"},
          {"canopy", {{"version", report.version}, {"commit", report.commit}}},
          {"host", {{"cores", report.cores}}},
          {"device", reported_device(report)},
          {"models", models},
          {"devices", passes}};
}

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
  return calibrate(timer, calibration_plan(model, sequence.drafter(), nullptr, seconds),
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
    result.block = engine.drafter->max_depth() + 1;
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

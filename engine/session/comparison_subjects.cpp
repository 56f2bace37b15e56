#include "engine/session/comparison_subjects.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "engine/base/error.h"
#include "engine/format/model_paths.h"

namespace canopy {
namespace {

uint32_t widest_pass(const std::vector<ComparisonColumn>& columns) {
  uint32_t widest = 1;
  for (const ComparisonColumn& column : columns) widest = std::max(widest, column.way.budget + 1);
  return widest;
}

/// A device that is lost here is not that of the model that is loaded.
std::unique_ptr<Engine> open_beside(Device& device, const OpenRequest& request, const OpenCallbacks& callbacks) {
  try {
    return Engine::open(device, request, callbacks);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::device_lost) throw;
    throw Error(ErrorKind::unavailable, e.what());
  }
}

/// Drafted nodes of the widest tree that a pass of this engine holds.
uint32_t most_nodes(const Engine& engine) {
  const ModelLimits& limits = engine.model->limits();
  return std::min(limits.tree_slots, limits.max_width - 1);
}

/// A wider tree would be cut to what fits without a word.
void require_room_for(const WayToDecode& way, const Engine& engine) {
  const uint32_t most = most_nodes(engine);
  if (way.budget <= most) return;
  throw bad_input("The column '" + way.name() + "' needs a tree of " + std::to_string(way.budget) + " nodes; " +
                  engine.file_name + " is open for 1 to " + std::to_string(most) + " here.");
}

}  // namespace

SweepSubject describe_subject(const Engine& engine, const DeviceSensors* sensors) {
  const ModelReady ready = engine.describe();
  SweepSubject subject;
  subject.model = ready.file_name;
  subject.quantization = ready.quantization;
  if (!ready.quantized_to.empty()) subject.quantization += " as " + ready.quantized_to;
  subject.parameters = ready.parameters;
  subject.drafter = ready.drafter;
  subject.block = ready.block;
  subject.kv = ready.kv_type;
  subject.context = ready.context;
  subject.device = ready.device;
  subject.device_type = ready.device_type;
  subject.driver = ready.driver;
  subject.kernels = engine.model->device().info().kernels;
  subject.is_software = ready.is_software;
  subject.self_test = ready.self_test_note;
  if (sensors != nullptr) subject.energy = sensors->name();
  return subject;
}

ComparisonSubjects::ComparisonSubjects(const LoadedSubject& loaded, const OpenDevice& open_device,
                                       const NameDevice& device_uuid, double calibration_s,
                                       const std::vector<ComparisonColumn>& columns, const SubjectCallbacks& callbacks,
                                       Sweep& sweep)
    : loaded_(loaded),
      open_device_(open_device),
      device_uuid_(device_uuid),
      calibration_s_(calibration_s),
      widest_(widest_pass(columns)) {
  for (const ComparisonColumn& column : columns) {
    if (callbacks.stop.stop_requested()) throw cancelled("The comparison was cancelled.");
    const uint32_t subject = subject_for(column, callbacks, sweep);
    sweep.contestants.push_back({column.way, subject});
    const ComparisonWriter& writer = writers_[subject];
    const bool drafts = column.way.mode != DecodeMode::ar && writer.engine != nullptr;
    if (drafts && writer.engine->drafter == nullptr)
      throw bad_input("The column '" + column.way.name() + "' needs a drafter, and " + writer.engine->file_name +
                      " has none here: name one, or compare plain decoding alone.");
    if (drafts) require_room_for(column.way, *writer.engine);
  }
}

uint32_t ComparisonSubjects::subject_for(const ComparisonColumn& column, const SubjectCallbacks& callbacks,
                                         Sweep& sweep) {
  Wanted wanted{column.model, column.drafter, column.device, column.server};
  if (column.server.empty() && wanted.model.empty()) wanted.model = loaded_.opened.path;
  const auto known = std::ranges::find(wanted_, wanted);
  if (known != wanted_.end()) return static_cast<uint32_t>(known - wanted_.begin());
  ComparisonWriter writer;
  SweepSubject subject = with_context(column.way.name(), [&] {
    return column.server.empty() ? open_engine(wanted, callbacks, writer) : open_server(column, writer);
  });
  wanted_.push_back(std::move(wanted));
  writers_.push_back(std::move(writer));
  sweep.subjects.push_back(std::move(subject));
  return static_cast<uint32_t>(writers_.size() - 1);
}

SweepSubject ComparisonSubjects::open_server(const ComparisonColumn& column, ComparisonWriter& writer) {
  Opened& opened = opened_.emplace_back();
  opened.server = std::make_unique<EndpointClient>(parse_endpoint(column.server));
  writer.server = opened.server.get();
  writer.server_model = column.model;
  SweepSubject subject;
  subject.target = target_of(column.server + "\n" + column.model);
  subject.model = column.model.empty() ? "the server's model" : column.model;
  subject.device = opened.server->address().shown();
  subject.device_type = "server";
  return subject;
}

SweepSubject ComparisonSubjects::open_engine(const Wanted& wanted, const SubjectCallbacks& callbacks,
                                             ComparisonWriter& writer) {
  const bool is_loaded = wanted.model == loaded_.opened.path && wanted.drafter.empty() && wanted.device.empty();
  // Beside one that was opened for narrower trees it is opened once more.
  if (is_loaded && (loaded_.engine == nullptr || most_nodes(*loaded_.engine) + 1 >= widest_)) {
    if (loaded_.engine == nullptr) throw Error(ErrorKind::unavailable, "No model is loaded: open a model first.");
    writer.engine = loaded_.engine;
    writer.sensors = sensors_of(*loaded_.device);
  } else {
    if (callbacks.stage) callbacks.stage("Opening " + model_path_name(wanted.model));
    Opened opened;
    opened.selector = wanted.device;
    opened.device = device_for(wanted.device);
    OpenRequest request;
    request.path = wanted.model;
    request.cache_type = loaded_.opened.kv;
    request.context = loaded_.opened.context;
    request.quantize = loaded_.opened.quantize;
    request.calibration_s = calibration_s_;
    request.max_width = std::max(request.max_width, widest_);
    const bool same_model = wanted.model == loaded_.opened.path;
    choose_drafter(wanted.drafter.empty() && same_model ? loaded_.opened.drafter : wanted.drafter, request);
    OpenCallbacks opening;
    opening.stop = callbacks.stop;
    opened.engine = opened.device == loaded_.device ? Engine::open(*opened.device, request, opening)
                                                    : open_beside(*opened.device, request, opening);
    writer.engine = opened.engine.get();
    writer.sensors = sensors_of(*opened.device);
    opened_.push_back(std::move(opened));
  }
  SweepSubject subject = describe_subject(*writer.engine, writer.sensors);
  subject.target = target_of(wanted.model);
  return subject;
}

/// One that is open already, wherever a selector names it: two of one would not know of each other's memory.
std::shared_ptr<Device> ComparisonSubjects::device_for(const std::string& selector) {
  if (selector.empty() && loaded_.device != nullptr) return loaded_.device;
  const auto is = [&](const std::string& other_selector, const Device& device) {
    return device_uuid_ ? device_uuid_(selector) == device.info().uuid : selector == other_selector;
  };
  if (loaded_.device != nullptr && is(loaded_.opened.device, *loaded_.device)) return loaded_.device;
  for (const Opened& opened : opened_)
    if (opened.device != nullptr && is(opened.selector, *opened.device)) return opened.device;
  return open_device_(selector);
}

DeviceSensors* ComparisonSubjects::sensors_of(const Device& device) {
  for (const auto& [known, sensors] : sensors_)
    if (known == &device) return sensors.get();
  sensors_.emplace_back(&device, open_device_sensors(device.info().pci_address));
  return sensors_.back().second.get();
}

uint32_t ComparisonSubjects::target_of(const std::string& model) {
  const auto known = std::ranges::find(models_, model);
  const auto index = static_cast<uint32_t>(known - models_.begin());
  if (known == models_.end()) models_.push_back(model);
  return index;
}

}  // namespace canopy

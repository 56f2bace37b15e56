#include "engine/session/devices.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "cuda_backend/cuda_device.h"
#include "engine/base/error.h"
#include "engine/cpu/cpu_device.h"
#include "engine/vulkan/vulkan_device.h"

namespace canopy {
namespace {

using nlohmann::ordered_json;

const Backend& backend_named(const std::vector<Backend>& backends, const std::string& name) {
  return *std::ranges::find(backends, name, &Backend::name);
}

std::string all_problems(const MachineDevices& machine) {
  std::string text;
  for (const MachineDevices::Problem& problem : machine.problems) text += (text.empty() ? "" : " ") + problem.sentence;
  return text;
}

/// Throws what the backends said where there is no device at all.
size_t choose(const MachineDevices& machine, const std::string& selector, const std::vector<Backend>& backends) {
  if (machine.devices.empty() && !machine.problems.empty()) throw Error(ErrorKind::unavailable, all_problems(machine));
  for (const MachineDevices::Problem& problem : machine.problems) {
    if (names_backend(selector, {&problem.backend, 1})) throw Error(ErrorKind::unavailable, problem.sentence);
  }
  return choose_device(machine.listed(), selector, names_of(backends));
}

std::unique_ptr<Device> open(const FoundDevice& device, const DeviceSettings& settings,
                             const std::vector<Backend>& backends) {
  const Backend& backend = backend_named(backends, device.backend);
  const std::string& kernels = settings.kernels;
  if (kernels != "auto" && std::ranges::find(backend.kernels, kernels) == backend.kernels.end()) {
    throw Error(ErrorKind::unavailable, "The " + backend.title + " backend has no kernels " + kernels + ".");
  }
  if (settings.memory_gb_s > 0 && device.type != "cpu") {
    throw bad_input("Memory is emulated on the processor alone, and " + device.name + " is " + device.type +
                    ": choose the device cpu.");
  }
  return backend.open(device.ordinal, settings);
}

/// Whether the same GPU may be opened by another backend: also one that is lost while it is opened, since nothing is on
/// it yet.
bool may_open_elsewhere(const Error& error) {
  return error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::device_lost;
}

/// The same GPU in another backend, or else, where no device was asked for, the best one of the others; nothing where
/// there is none, or where `failed` is of the first backend, which no other stands behind.
std::optional<size_t> instead_of(const MachineDevices& machine, const FoundDevice& failed, bool any,
                                 const std::vector<Backend>& backends) {
  if (failed.backend == backends.front().name) return std::nullopt;
  const std::vector<ListedDevice> devices = machine.listed();
  const std::string same = other_backend_of(devices, failed);
  std::vector<ListedDevice> others = devices;
  for (ListedDevice& device : others) {
    if (device.backend == failed.backend) device.usable = false;
  }
  try {
    if (!same.empty()) return choose_device(devices, same, names_of(backends));
    if (any) return choose_device(others, "", names_of(backends));
  } catch (const Error&) {
  }
  return std::nullopt;
}

DeviceChoice choice_of(const FoundDevice& device, const Backend& backend) {
  DeviceChoice choice;
  choice.selector = device.id();
  choice.name = device.name;
  choice.type = device.type;
  choice.usable = device.usable;
  choice.reason = device.reason;
  choice.memory_bytes = device.memory_bytes;
  choice.driver = device.driver;
  choice.words = device.words;
  choice.details = device.details;
  choice.backend = backend.name;
  choice.backend_title = backend.title;
  return choice;
}

}  // namespace

std::vector<Backend> all_backends() {
  return {vulkan_backend(), cuda_backend(), cpu_backend()};
}

std::vector<std::string> names_of(const std::vector<Backend>& backends) {
  std::vector<std::string> names;
  for (const Backend& backend : backends) names.push_back(backend.name);
  return names;
}

std::string device_help() {
  const auto listed = [](const auto& words) {
    std::string text;
    for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
    return text;
  };
  return "Index, a backend (" + listed(names_of(all_backends())) +
         "), a device of it (vulkan:0), part of a name, or a type (" + listed(kDeviceTypes) + "); default: the best";
}

uint32_t most_threads() {
  return std::max(1u, std::thread::hardware_concurrency());
}

std::vector<std::string> kernel_names(const std::vector<Backend>& backends) {
  std::vector<std::string> names = {"auto"};
  for (const Backend& backend : backends) {
    for (const std::string& name : backend.kernels) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::vector<ListedDevice> MachineDevices::listed() const {
  return {devices.begin(), devices.end()};
}

MachineDevices find_devices(const std::vector<Backend>& backends) {
  MachineDevices machine;
  for (const Backend& backend : backends) {
    FoundDevices found = backend.find();
    if (!found.problem.empty()) machine.problems.push_back({backend.name, found.lacking, found.problem});
    for (FoundDevice& device : found.devices) {
      device.number = static_cast<uint32_t>(machine.devices.size());
      machine.devices.push_back(std::move(device));
    }
  }
  return machine;
}

std::unique_ptr<Device> open_device(const std::string& selector, const DeviceSettings& settings,
                                    const std::vector<Backend>& backends) {
  const MachineDevices machine = find_devices(backends);
  const FoundDevice& chosen = machine.devices[choose(machine, selector, backends)];
  std::unique_ptr<Device> device;
  try {
    device = open(chosen, settings, backends);
  } catch (const Error& e) {
    if (!may_open_elsewhere(e) || names_backend(selector, names_of(backends))) throw;
    const std::optional<size_t> other = instead_of(machine, chosen, selector.empty(), backends);
    if (!other) throw;
    const FoundDevice& instead = machine.devices[*other];
    log_warning(std::string(e.what()) + " The " + backend_named(backends, instead.backend).title + " device " +
                instead.name + " is used instead.");
    device = open(instead, settings, backends);
  }
  const std::string note = rounding_note(device->info());
  if (!note.empty()) log_info(note);
  return device;
}

std::string rounding_note(const DeviceInfo& info) {
  if (!info.rounds_to_8_bits) return "";
  return "Products round activations to 8 bits (kernels matrix_i8): texts are others than with the default kernels.";
}

std::string device_uuid(const std::string& selector) {
  const std::vector<Backend> backends = all_backends();
  const MachineDevices machine = find_devices(backends);
  return machine.devices[choose(machine, selector, backends)].uuid;
}

std::vector<DeviceChoice> list_devices(const std::vector<Backend>& backends) {
  const MachineDevices machine = find_devices(backends);
  const std::vector<ListedDevice> listed = machine.listed();
  std::vector<DeviceChoice> choices;
  if (machine.devices.empty()) choose(machine, "", backends);  // says why
  for (const FoundDevice& device : machine.devices) {
    choices.push_back(choice_of(device, backend_named(backends, device.backend)));
    choices.back().same_gpu = other_backend_of(listed, device);
  }
  if (std::ranges::any_of(listed, &ListedDevice::usable)) choices[choose(machine, "", backends)].preferred = true;
  for (const MachineDevices::Problem& problem : machine.problems) {
    if (problem.lacking.empty()) continue;
    choices.push_back({problem.backend, problem.lacking, "none", false, problem.sentence});
    choices.back().backend = problem.backend;
    choices.back().backend_title = backend_named(backends, problem.backend).title;
  }
  return choices;
}

ordered_json devices_json(const MachineDevices& machine) {
  const std::vector<ListedDevice> listed = machine.listed();
  ordered_json list = ordered_json::array();
  for (const FoundDevice& device : machine.devices) {
    ordered_json json = {{"index", device.number}, {"id", device.id()}, {"backend", device.backend}};
    json.update(device.facts);
    if (const std::string same = other_backend_of(listed, device); !same.empty()) json["same_gpu"] = same;
    list.push_back(std::move(json));
  }
  for (const MachineDevices::Problem& problem : machine.problems) {
    if (problem.lacking.empty()) continue;
    list.push_back({{"index", nullptr},
                    {"id", problem.backend},
                    {"backend", problem.backend},
                    {"name", problem.lacking},
                    {"usable", false},
                    {"reason", problem.sentence}});
  }
  return list;
}

ordered_json device_json(const DeviceInfo& info) {
  const MachineDevices machine = find_devices();
  const ordered_json all = devices_json(machine);
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    const FoundDevice& device = machine.devices[i];
    if (device.backend == info.backend && device.uuid == info.uuid && !info.uuid.empty()) return all[i];
  }
  return nullptr;
}

}  // namespace canopy

#include "engine/devices/devices.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/figures.h"
#include "engine/base/log.h"
#include "engine/base/paths.h"
#include "engine/cuda_backend/cuda_device.h"
#include "engine/cuda_backend/device_facts_json.h"
#include "engine/vulkan/device_report_json.h"
#include "engine/vulkan/device_selection.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/vulkan_device.h"

namespace canopy {
namespace {

using nlohmann::ordered_json;

constexpr const char* kUnlistedGpus = "NVIDIA GPUs with CUDA";

/// Empty where there is none: compiled pipelines are then made anew each time, which only takes longer.
std::filesystem::path writable_cache_folder() {
  try {
    return cache_dir();
  } catch (const Error& e) {
    log_warning(e.what());
    return {};
  }
}

void find_vulkan(const DeviceSource& source, MachineDevices& found) {
  try {
    found.vulkan = source.list_vulkan ? source.list_vulkan() : vk::Instance().list_devices();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::unavailable) throw;
    found.vulkan_problem = e.what();
  }
}

const cuda::EmbeddedKernels& kernels_of(const DeviceSource& source) {
  return source.kernels != nullptr ? *source.kernels : cuda::embedded_kernels();
}

void find_cuda(const DeviceSource& source, MachineDevices& found) {
  const cuda::FoundDriver driver = source.find_cuda();
  found.cuda_driver = driver.api;
  if (!driver.api) {
    if (driver.present) found.cuda_problem = driver.reason;
    return;
  }
  try {
    found.cuda = cuda::list_devices(*driver.api, kernels_of(source));
  } catch (const Error& e) {
    found.cuda_problem = e.what();
  }
}

std::unique_ptr<Device> open_vulkan(uint32_t index, KernelChoice kernels) {
  VulkanDeviceOptions options;
  options.selector = std::to_string(index);
  options.cache_folder = writable_cache_folder();
  if (kernels == KernelChoice::matrix) options.family = vk::KernelFamily::matrix;
  if (kernels == KernelChoice::matrix_i8) options.family = vk::KernelFamily::matrix_i8;
  return open_vulkan_device(options);
}

std::unique_ptr<Device> open_cuda(const MachineDevices& machine, const ListedDevice& chosen, KernelChoice kernels,
                                  const DeviceSource& source) {
  if (kernels == KernelChoice::matrix_i8) {
    throw Error(ErrorKind::unavailable, "The CUDA backend has no kernels " + std::string(to_string(kernels)) + ".");
  }
  std::unique_ptr<Device> device =
      open_cuda_device({*machine.cuda_driver, machine.cuda.at(chosen.ordinal), kernels_of(source).fatbins});
  if (kernels == KernelChoice::matrix) {
    while (device->fall_back()) {
    }
  }
  return device;
}

/// The device that a GPU has in Vulkan, or else, where no GPU was asked for, the best one; nothing where there is none.
std::optional<size_t> instead_of_cuda(const std::vector<ListedDevice>& devices, const ListedDevice& cuda,
                                      bool any_gpu) {
  const std::string same = other_backend_of(devices, cuda);
  for (const std::string& selector : {same, std::string(any_gpu ? "vulkan" : "")}) {
    try {
      if (!selector.empty()) return choose_device(devices, selector);
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

/// Whether the same GPU may be opened by Vulkan: also one that is lost while it is opened, since nothing is on it yet.
bool may_open_elsewhere(const Error& error) {
  return error.kind() == ErrorKind::unavailable || error.kind() == ErrorKind::device_lost;
}

/// Throws what Vulkan said where there is no device at all.
size_t choose(const MachineDevices& machine, const std::vector<ListedDevice>& devices, const std::string& selector) {
  if (devices.empty() && !machine.problems().empty()) throw Error(ErrorKind::unavailable, machine.problems());
  return choose_device(devices, selector);
}

std::string uuid_of(const MachineDevices& machine, const ListedDevice& device) {
  return device.backend == "vulkan" ? machine.vulkan.at(device.ordinal).uuid
                                    : cuda::device_identity(machine.cuda.at(device.ordinal));
}

DeviceChoice choice_of(const ListedDevice& device) {
  DeviceChoice choice;
  choice.selector = device.id();
  choice.name = device.name;
  choice.type = device.type;
  choice.usable = device.usable;
  choice.reason = device.reason;
  choice.backend = device.backend;
  return choice;
}

}  // namespace

std::vector<ListedDevice> MachineDevices::listed() const {
  std::vector<ListedDevice> devices = vk::listed(vulkan);
  for (uint32_t i = 0; i < devices.size(); ++i) devices[i].number = i;
  for (const cuda::DeviceFacts& facts : cuda) {
    ListedDevice device;
    device.number = static_cast<uint32_t>(devices.size());
    device.backend = "cuda";
    device.ordinal = static_cast<uint32_t>(facts.ordinal);
    device.name = facts.name;
    device.type = cuda::device_type(facts);
    device.about = facts.driver + ", compute capability " + cuda::capability_words(facts.capability) + ", " +
                   byte_figures(facts.memory_bytes);
    device.gpu = facts.uuid;
    device.usable = facts.usable();
    device.reason = facts.reason;
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string MachineDevices::problems() const {
  return vulkan_problem + (vulkan_problem.empty() || cuda_problem.empty() ? "" : " ") + cuda_problem;
}

MachineDevices find_devices(const DeviceSource& source) {
  MachineDevices found;
  find_vulkan(source, found);
  find_cuda(source, found);
  return found;
}

std::unique_ptr<Device> open_device(const std::string& selector, KernelChoice kernels, const DeviceSource& source) {
  const MachineDevices machine = find_devices(source);
  const std::vector<ListedDevice> devices = machine.listed();
  const ListedDevice& chosen = devices[choose(machine, devices, selector)];
  std::unique_ptr<Device> device;
  try {
    device =
        chosen.backend == "vulkan" ? open_vulkan(chosen.ordinal, kernels) : open_cuda(machine, chosen, kernels, source);
  } catch (const Error& e) {
    if (!may_open_elsewhere(e) || chosen.backend == "vulkan" || names_backend(selector)) throw;
    const std::optional<size_t> other = instead_of_cuda(devices, chosen, selector.empty());
    if (!other) throw;
    log_warning(std::string(e.what()) + " The Vulkan device " + devices[*other].name + " is used instead.");
    device = open_vulkan(devices[*other].ordinal, kernels);
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
  const MachineDevices machine = find_devices();
  const std::vector<ListedDevice> devices = machine.listed();
  return uuid_of(machine, devices[choose(machine, devices, selector)]);
}

std::vector<DeviceChoice> list_devices(const DeviceSource& source) {
  const MachineDevices machine = find_devices(source);
  const std::vector<ListedDevice> devices = machine.listed();
  std::vector<DeviceChoice> choices;
  for (const ListedDevice& device : devices) {
    DeviceChoice& choice = choices.emplace_back(choice_of(device));
    if (device.backend == "vulkan") {
      const vk::DeviceReport& report = machine.vulkan.at(device.ordinal);
      choice.memory_bytes = report.memory_bytes;
      choice.driver = device.about;
      choice.api_version = report.api_version;
    } else {
      const cuda::DeviceFacts& facts = machine.cuda.at(device.ordinal);
      choice.memory_bytes = facts.memory_bytes;
      choice.driver = facts.driver;
      choice.capability = cuda::capability_words(facts.capability);
    }
    choice.same_gpu = other_backend_of(devices, device);
  }
  if (std::ranges::any_of(devices, &ListedDevice::usable)) choices[choose_device(devices, "")].preferred = true;
  if (!machine.cuda_problem.empty()) {
    choices.push_back({"cuda", kUnlistedGpus, "none", false, machine.cuda_problem});
    choices.back().backend = "cuda";
  }
  if (choices.empty()) choose(machine, devices, "");  // says why
  return choices;
}

ordered_json devices_json(const MachineDevices& machine) {
  const std::vector<ListedDevice> devices = machine.listed();
  ordered_json list = ordered_json::array();
  for (const ListedDevice& device : devices) {
    ordered_json json = {{"index", device.number}, {"id", device.id()}, {"backend", device.backend}};
    json.update(device.backend == "vulkan" ? vk::to_json(machine.vulkan.at(device.ordinal))
                                           : cuda::to_json(machine.cuda.at(device.ordinal)));
    if (const std::string same = other_backend_of(devices, device); !same.empty()) json["same_gpu"] = same;
    list.push_back(std::move(json));
  }
  if (!machine.cuda_problem.empty()) {
    list.push_back({{"index", nullptr},
                    {"id", "cuda"},
                    {"backend", "cuda"},
                    {"name", kUnlistedGpus},
                    {"usable", false},
                    {"reason", machine.cuda_problem}});
  }
  return list;
}

ordered_json device_json(const DeviceInfo& info) {
  const MachineDevices machine = find_devices();
  const std::vector<ListedDevice> devices = machine.listed();
  const ordered_json all = devices_json(machine);
  for (size_t i = 0; i < devices.size(); ++i) {
    const bool is_it = devices[i].backend == info.backend && uuid_of(machine, devices[i]) == info.uuid;
    if (is_it && !info.uuid.empty()) return all[i];
  }
  return nullptr;
}

}  // namespace canopy

#include "engine/session/device_factory.h"

#include <filesystem>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/paths.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/vulkan_device.h"

namespace canopy {
namespace {

/// Empty where there is none: compiled pipelines are then made anew each time, which only takes longer.
std::filesystem::path writable_cache_folder() {
  try {
    return cache_dir();
  } catch (const Error& e) {
    log_warning(e.what());
    return {};
  }
}

}  // namespace

std::unique_ptr<Device> open_device(const std::string& selector, KernelChoice kernels) {
  VulkanDeviceOptions options;
  options.selector = selector;
  options.cache_folder = writable_cache_folder();
  if (kernels == KernelChoice::matrix_i8) options.family = vk::KernelFamily::matrix_i8;
  std::unique_ptr<Device> device = open_vulkan_device(options);
  const std::string note = rounding_note(device->info());
  if (!note.empty()) log_info(note);
  return device;
}

std::string rounding_note(const DeviceInfo& info) {
  if (!info.rounds_to_8_bits) return "";
  return "Products round activations to 8 bits (kernels matrix_i8): texts are others than with the default kernels.";
}

std::string device_uuid(const std::string& selector) {
  return vulkan_device_uuid(selector);
}

std::vector<DeviceChoice> list_devices() {
  std::vector<DeviceChoice> choices;
  for (const vk::DeviceReport& report : vk::Instance().list_devices()) {
    choices.push_back({std::to_string(report.index), report.name, std::string(vk::to_string(report.type)),
                       report.usable, report.reason, report.memory_bytes,
                       report.driver_name + " " + report.driver_version, report.api_version});
  }
  return choices;
}

}  // namespace canopy

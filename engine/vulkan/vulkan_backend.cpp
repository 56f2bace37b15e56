// Vulkan as one of the backends: what its devices are, before one is opened.

#include "engine/vulkan/vulkan_device.h"

#include <filesystem>
#include <string>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/paths.h"
#include "engine/vulkan/device_report_json.h"
#include "engine/vulkan/device_selection.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/weight_repack.h"

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

/// "Vulkan 1.3, radv Mesa 25.2": of the API what matters, of the driver what stands before its details.
std::string short_words(const vk::DeviceReport& report, const std::string& driver) {
  const size_t minor = report.api_version.find('.');
  const size_t patch = minor == std::string::npos ? minor : report.api_version.find('.', minor + 1);
  const std::string api = report.api_version.empty() ? "" : "Vulkan " + report.api_version.substr(0, patch) + ", ";
  return api + driver.substr(0, driver.find(" ("));
}

FoundDevice found(const vk::DeviceReport& report, ListedDevice listed) {
  FoundDevice device;
  static_cast<ListedDevice&>(device) = std::move(listed);
  device.uuid = report.uuid;
  device.driver = device.about;
  device.memory_bytes = report.memory_bytes;
  device.words = short_words(report, device.about);
  device.details = device.about + (report.api_version.empty() ? "" : ", Vulkan " + report.api_version);
  device.facts = vk::to_json(report);
  return device;
}

std::unique_ptr<Device> open(uint32_t ordinal, const DeviceSettings& settings) {
  VulkanDeviceOptions options;
  options.selector = std::to_string(ordinal);
  options.cache_folder = writable_cache_folder();
  if (settings.kernels == "matrix") options.family = vk::KernelFamily::matrix;
  if (settings.kernels == "matrix_i8") options.family = vk::KernelFamily::matrix_i8;
  return open_vulkan_device(options);
}

void pack(std::span<const WeightPart> parts, WeightLayout layout, std::span<uint32_t> scratch) {
  for (const auto& shard : vk::shard_rows(parts[0].type, joined_extent(parts, layout), scratch.size_bytes() / 2)) {
    vk::repack(parts, layout, shard, scratch.first(shard.unit_bytes / 4),
               scratch.subspan(shard.unit_bytes / 4, shard.scale_bytes / 4));
  }
}

}  // namespace

Backend vulkan_backend(std::function<std::vector<vk::DeviceReport>()> list) {
  if (!list) list = [] { return vk::Instance().list_devices(); };
  const auto find = [list = std::move(list)] {
    FoundDevices all;
    try {
      const std::vector<vk::DeviceReport> reports = list();
      std::vector<ListedDevice> listed = vk::listed(reports);
      for (size_t i = 0; i < reports.size(); ++i) all.devices.push_back(found(reports[i], std::move(listed[i])));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::unavailable) throw;
      all.problem = e.what();
      all.lacking = "GPUs with Vulkan";
    }
    return all;
  };
  return {"vulkan", "Vulkan", {"matrix", "matrix_i8"}, find, open, pack};
}

}  // namespace canopy

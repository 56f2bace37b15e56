#include "engine/vulkan/device_selection.h"

#include <string>

#include "engine/compute/types.h"

namespace canopy::vk {

std::vector<ListedDevice> listed(std::span<const DeviceReport> reports) {
  std::vector<ListedDevice> devices;
  for (const DeviceReport& report : reports) {
    devices.push_back({report.index, "vulkan", report.index, report.name, std::string(to_string(report.type)),
                       report.driver_name + " " + report.driver_version, std::string(gpu_of(report.uuid)),
                       report.usable, report.reason});
  }
  return devices;
}

size_t select_device(std::span<const DeviceReport> reports, std::string_view selector) {
  static const std::vector<std::string> backends = {"vulkan"};
  return choose_device(listed(reports), selector, backends);
}

}  // namespace canopy::vk

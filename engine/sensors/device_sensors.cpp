#include "engine/sensors/device_sensors.h"

#include <fstream>

#include "engine/sensors/hwmon.h"
#include "engine/sensors/nvml.h"

namespace canopy {
namespace {

constexpr const char* kNvidia = "0x10de";

std::string vendor_of(const std::filesystem::path& pci_folder) {
  std::string vendor;
  std::ifstream(pci_folder / "vendor") >> vendor;
  return vendor;
}

}  // namespace

std::unique_ptr<DeviceSensors> open_device_sensors(const std::string& pci_address, const SensorSources& sources) {
  // The address becomes part of a path.
  if (pci_address.empty() || pci_address.find_first_not_of("0123456789abcdef:.") != std::string::npos) return nullptr;
  const std::filesystem::path folder = sources.sysfs / "bus/pci/devices" / pci_address;
  const std::string vendor = vendor_of(folder);
  // Other makers' machines are not made to load NVIDIA's library.
  if (vendor.empty() || vendor == kNvidia) {
    if (auto sensors = open_nvml(sources.nvml, pci_address)) return sensors;
  }
  return open_hwmon(folder);
}

}  // namespace canopy

#pragma once
// Sensors that Linux shows as files: the hwmon folders of amdgpu, i915, xe and others
// (Documentation/hwmon/sysfs-interface of the kernel).

#include <filesystem>
#include <memory>

#include "engine/sensors/device_sensors.h"

namespace canopy {

/// The sensors below the folder of a PCI device; null where it tells neither energy nor power.
std::unique_ptr<DeviceSensors> open_hwmon(const std::filesystem::path& pci_folder);

}  // namespace canopy

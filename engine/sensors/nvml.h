#pragma once
// NVIDIA's management library, which comes with the driver: opened at run time, so that neither headers nor the library
// are needed to build or to start.

#include <memory>
#include <string>

#include "engine/sensors/device_sensors.h"

namespace canopy {

/// The sensors of the device at that PCI address; null without the library, or where it does not know the device.
std::unique_ptr<DeviceSensors> open_nvml(const std::string& library, const std::string& pci_address);

}  // namespace canopy

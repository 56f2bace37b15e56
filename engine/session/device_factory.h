#pragma once
// Devices by name: the one file of the session that knows which backends there are.

#include <memory>
#include <string>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/client/kernel_choice.h"
#include "engine/compute/device.h"

namespace canopy {

/// Opens the device that a selector names: an index, a part of a name, or a type ("discrete", "integrated", "virtual",
/// "cpu"); empty chooses the best. Throws unavailable, saying what there is or what to install, or what the device
/// lacks for these kernels.
std::unique_ptr<Device> open_device(const std::string& selector, KernelChoice kernels = KernelChoice::automatic);

/// What a user must know of a device that rounds activations to 8 bits, as a sentence; empty for others.
std::string rounding_note(const DeviceInfo& info);

/// DeviceInfo::uuid of the device that a selector names, without opening it. Throws as open_device.
std::string device_uuid(const std::string& selector);

/// All devices of this machine, the unusable ones with the reason. Throws unavailable without a driver.
std::vector<DeviceChoice> list_devices();

}  // namespace canopy

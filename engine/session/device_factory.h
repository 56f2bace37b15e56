#pragma once
// Devices by name: the one file of the session that knows which backends there are.

#include <memory>
#include <string>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/compute/device.h"

namespace canopy {

/// Opens the device that a selector names: an index, a part of a name, or a type ("discrete", "integrated", "virtual",
/// "cpu"); empty chooses the best. Throws unavailable, saying what there is or what to install.
std::unique_ptr<Device> open_device(const std::string& selector);

/// DeviceInfo::uuid of the device that a selector names, without opening it. Throws as open_device.
std::string device_uuid(const std::string& selector);

/// All devices of this machine, the unusable ones with the reason. Throws unavailable without a driver.
std::vector<DeviceChoice> list_devices();

}  // namespace canopy

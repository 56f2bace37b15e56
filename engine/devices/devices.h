#pragma once
// The devices of this machine by name, whatever backend they are of.

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/client/engine_client.h"
#include "engine/client/kernel_choice.h"
#include "engine/compute/device.h"
#include "engine/compute/device_choice.h"
#include "engine/cuda_backend/device_facts.h"
#include "engine/cuda_backend/driver_library.h"
#include "engine/vulkan/device_report.h"

namespace canopy {

/// Where devices are looked for: this machine's drivers, unless a test makes up others.
struct DeviceSource {
  std::function<cuda::FoundDriver()> find_cuda = [] { return cuda::find_driver(); };
  std::function<std::vector<vk::DeviceReport>()> list_vulkan;  // empty: by Vulkan's loader
  const cuda::EmbeddedKernels* kernels = nullptr;              // null: those of this program
};

/// What was found. Devices are numbered in this order: those of Vulkan, in its loader's order, then those of CUDA.
struct MachineDevices {
  std::vector<vk::DeviceReport> vulkan;
  std::vector<cuda::DeviceFacts> cuda;
  std::optional<cuda::DriverApi> cuda_driver;
  std::string vulkan_problem;  // why a backend has no devices, as a sentence; empty where it has or simply is not here
  std::string cuda_problem;

  std::vector<ListedDevice> listed() const;
  /// What both say, in one text.
  std::string problems() const;
};
/// Never throws for want of a driver.
MachineDevices find_devices(const DeviceSource& source = {});

/// Opens the device that a selector names (choose_device). A GPU that its CUDA driver does not open after all, or for
/// which CUDA has no such kernels, is opened by Vulkan, unless the selector names CUDA; a message says so. Throws
/// unavailable, saying what there is or what to install, or what the device lacks for these kernels.
std::unique_ptr<Device> open_device(const std::string& selector, KernelChoice kernels = KernelChoice::automatic,
                                    const DeviceSource& source = {});

/// What a user must know of a device that rounds activations to 8 bits, as a sentence; empty for others.
std::string rounding_note(const DeviceInfo& info);

/// DeviceInfo::uuid of the device that a selector names, without opening it. Throws as open_device.
std::string device_uuid(const std::string& selector);

/// All devices of this machine for a front end, the unusable ones with the reason. Throws unavailable where there is
/// none.
std::vector<DeviceChoice> list_devices(const DeviceSource& source = {});

/// The same with everything that is known of each, as `canopy-cli devices --json` prints it. A driver of NVIDIA's that
/// lists no GPUs is an entry of its own with the reason, without an index.
nlohmann::ordered_json devices_json(const MachineDevices& machine);

/// The entry of devices_json() of an opened device; null for one that is not listed.
nlohmann::ordered_json device_json(const DeviceInfo& info);

}  // namespace canopy

#pragma once
// The backends of this build, and the devices of this machine by name, whatever backend they are of.

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/compute/backend.h"
#include "engine/session/engine_client.h"

namespace canopy {

/// In the order in which their devices are numbered. A later one is preferred for a GPU that several list.
std::vector<Backend> all_backends();

/// Their names, as choose_device() takes them.
std::vector<std::string> names_of(const std::vector<Backend>& backends);

/// Of the option --device: what a selector may be.
std::string device_help();

/// Of the option --kernels.
inline constexpr const char* kKernelsHelp =
    "Kernels of the products: auto takes the device's own, matrix those for matrix cores, which on Hopper are slower "
    "than its own, matrix_i8 those for matrix cores in 8-bit integers, where the device has them: activations are "
    "rounded to 8 bits, so that texts are others than by default. On the processor: an instruction set, all of which "
    "write "
    "the same texts";
/// Of the option --threads.
inline constexpr const char* kThreadsHelp =
    "Threads of a device on the processor, at most as many as it has (default: its physical cores)";
/// The most that option takes.
uint32_t most_threads();
/// What it may say: "auto" and what any backend names.
std::vector<std::string> kernel_names(const std::vector<Backend>& backends = all_backends());

/// What was found, numbered backend by backend, and what backends without devices say, as sentences.
struct MachineDevices {
  struct Problem {
    std::string backend;  // its name
    std::string lacking;  // see FoundDevices
    std::string sentence;
  };
  std::vector<FoundDevice> devices;
  std::vector<Problem> problems;

  std::vector<ListedDevice> listed() const;
};
/// Never throws for want of a driver.
MachineDevices find_devices(const std::vector<Backend>& backends = all_backends());

/// Opens the device that a selector names (choose_device), with kernels of kernel_names(). A GPU that a preferred
/// backend does not open after all is opened by another that lists it, unless the selector names the backend; a message
/// says so. Throws unavailable, saying what there is or what to install, or what the device lacks for these kernels.
std::unique_ptr<Device> open_device(const std::string& selector, const DeviceSettings& settings = {},
                                    const std::vector<Backend>& backends = all_backends());

/// What a user must know of a device that rounds activations to 8 bits, as a sentence; empty for others.
std::string rounding_note(const DeviceInfo& info);

/// DeviceInfo::uuid of the device that a selector names, without opening it. Throws as open_device.
std::string device_uuid(const std::string& selector);

/// All devices of this machine for a front end, the unusable ones with the reason. Throws unavailable where there is
/// none.
std::vector<DeviceChoice> list_devices(const std::vector<Backend>& backends = all_backends());

/// The same with everything that is known of each, as `canopy-cli devices --json` prints it. What is here and cannot be
/// used because its backend has no devices is an entry of its own with the reason, without an index.
nlohmann::ordered_json devices_json(const MachineDevices& machine);

/// The entry of devices_json() of an opened device; null for one that is not listed.
nlohmann::ordered_json device_json(const DeviceInfo& info);

}  // namespace canopy

#pragma once
// What a backend is to the rest of the program: how its devices are found, opened and described. engine/devices has the
// list of them; only that and CMake name one.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/device.h"
#include "engine/compute/device_choice.h"
#include "engine/compute/weight_parts.h"

namespace canopy {

/// A device before it is opened, with what front ends tell of it.
struct FoundDevice : ListedDevice {
  std::string uuid;              // DeviceInfo::uuid and
  std::string driver;            // DeviceInfo::driver of the opened device
  uint64_t memory_bytes = 0;     // its own heaps together
  std::string words;             // driver and version for a line of a list: "Vulkan 1.3, radv Mesa 25.2"
  std::string details;           // the same with nothing left out, a property on each line
  nlohmann::ordered_json facts;  // all that is known, for `devices --json` and reports
};

struct FoundDevices {
  std::vector<FoundDevice> devices;  // by ordinal; their numbers are given by the list of all backends
  std::string problem;               // why there are none, as a sentence; empty where there are or none could be
  std::string lacking;               // what then cannot be used although it is here: "NVIDIA GPUs with CUDA"
};

/// What a person may ask of the device that is opened.
struct DeviceSettings {
  std::string kernels = "auto";  // one of Backend::kernels
  uint32_t threads = 0;          // of a device on the processor; 0: its own choice
};

struct Backend {
  std::string name;                  // as selectors, files and DeviceInfo have it: "cuda"
  std::string title;                 // "CUDA"
  std::vector<std::string> kernels;  // that --kernels may name beside `auto`

  /// Never throws for want of a driver.
  std::function<FoundDevices()> find;
  /// Throws unavailable where the device cannot be opened or has no such kernels.
  std::function<std::unique_ptr<Device>(uint32_t ordinal, const DeviceSettings& settings)> open;
  /// Lays a weight out as an upload would, in scratch memory, for benches.
  std::function<void(std::span<const WeightPart> parts, WeightLayout layout, std::span<uint32_t> scratch)> pack;
};

}  // namespace canopy

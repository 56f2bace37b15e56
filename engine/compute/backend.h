#pragma once
// What a backend is to the rest of the program: how its devices are found, chosen, opened, described and measured.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/compute/device.h"
#include "engine/compute/weights.h"

namespace canopy {

// Choosing one device of those that a machine has, whatever backend they are of. Pure functions.

struct ListedDevice {
  uint32_t number = 0;   // as users name it
  std::string backend;   // Backend::name
  uint32_t ordinal = 0;  // of the backend's own devices
  std::string name;
  std::string type;   // "discrete", "integrated", "virtual", "cpu", "software" or "other"
  std::string about;  // driver and versions, for messages
  std::string gpu;    // gpu_of() its uuid; empty where it is not known
  bool usable = false;
  std::string reason;  // why not, as a sentence

  /// "cuda:0": selects it.
  std::string id() const { return backend + ":" + std::to_string(ordinal); }
};

/// The types of devices that selectors name, the best first.
inline constexpr std::array<std::string_view, 5> kDeviceTypes = {"discrete", "integrated", "virtual", "cpu",
                                                                 "software"};

/// Position of the device that `selector` names: a number of the list, an id ("cuda:0"), a backend ("cuda"), a type or
/// a part of a name ("4090"), ignoring case. Empty: the best one, i.e. of the first type in kDeviceTypes; of these, one
/// of the backend that is later in `backends` (the names of all there are), then the lowest number. A word that fits
/// several devices takes the best of those that can be used. Throws unavailable, listing what exists, if nothing fits
/// or what fits cannot be used.
size_t choose_device(std::span<const ListedDevice> devices, std::string_view selector,
                     std::span<const std::string> backends);

/// Whether a selector names one of the backends, or a device by its id.
bool names_backend(std::string_view selector, std::span<const std::string> backends);

/// The id of a GPU in another backend; empty where there is none.
std::string other_backend_of(std::span<const ListedDevice> devices, const ListedDevice& device);

/// "0: NAME (discrete, ABOUT) [vulkan:0]\n1: … — not usable: REASON"
std::string describe_devices(std::span<const ListedDevice> devices);

// The list of backends is in engine/session/devices.cpp; only that and CMake name one.

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
  /// For measurements: that each thread of the processor brings from memory that is emulated; 0: the machine's own.
  double memory_gb_s = 0;
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

// How long a piece of work takes at best, for measurements of what a device reaches.

/// A run that is measured should take about so long.
inline constexpr double kWantedRunSeconds = 0.03;

/// Seconds of the work done once: the least of several runs of so many repetitions that a run is long enough to tell,
/// at most `most_times`. `run` does the work that often and returns the seconds that took.
double best_seconds(const std::function<double(uint32_t times)>& run, uint32_t most_times);

}  // namespace canopy

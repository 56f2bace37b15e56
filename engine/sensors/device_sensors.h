#pragma once
// What a driver tells of its device while that works: energy, clock, temperature. Readings need no rights and take far
// less time than a round.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace canopy {

/// What is not told stays empty.
struct SensorReading {
  std::optional<double> energy_j;  // since some moment in the past; never falls
  std::optional<double> power_w;   // now, or over the last moment
  std::optional<double> clock_mhz;
  std::optional<double> temperature_c;
};

class DeviceSensors {
 public:
  virtual ~DeviceSensors() = default;
  /// "NVML", "hwmon amdgpu"
  virtual const std::string& name() const = 0;
  virtual SensorReading read() = 0;
};

/// Where the drivers' readings are looked for.
struct SensorSources {
  std::filesystem::path sysfs = "/sys";
  std::string nvml = "libnvidia-ml.so.1";  // opened at run time
};

/// The sensors of the device at that PCI address ("0000:03:00.0"); null where it has none, or no address (a software
/// device). Never throws because of what it finds there.
std::unique_ptr<DeviceSensors> open_device_sensors(const std::string& pci_address, const SensorSources& sources = {});

}  // namespace canopy

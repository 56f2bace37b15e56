#pragma once
// What a driver tells of its device while that works (energy, clock, temperature; by NVML or hwmon), and the energy
// that the device takes while something runs. Readings need no rights and take far less time than a round.

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

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

// The energy that a device takes while something runs.

/// Adds up power over time, as straight lines between the moments at which it was read. Pure.
class PowerSum {
 public:
  /// Seconds of a monotonic clock.
  void add(double seconds, double watts);
  /// Joules between the first reading and the last; nothing for fewer than two.
  std::optional<double> joules() const;

 private:
  uint64_t readings_ = 0;
  double last_seconds_ = 0, last_watts_ = 0, joules_ = 0;
};

/// From a counter where the driver has one; else from its power, which a thread reads twenty times a second meanwhile.
/// A counter that moves in steps of some 50 ms makes short measurements coarse.
class EnergyMeter {
 public:
  /// Null sensors: nothing is measured. They must outlive this, and nobody else may read them between begin() and
  /// end().
  explicit EnergyMeter(DeviceSensors* sensors) : sensors_(sensors) {}
  ~EnergyMeter() { stop_thread(); }
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  void begin();
  /// Joules since begin(), and what the sensors say now. energy_j is empty where nothing tells it, or where a counter
  /// went back.
  SensorReading end();

 private:
  void sample();
  void stop_thread();

  DeviceSensors* sensors_;
  std::optional<double> counter_;  // at begin()
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  PowerSum sum_;           // of the thread, while it runs
  std::thread thread_;
};

}  // namespace canopy

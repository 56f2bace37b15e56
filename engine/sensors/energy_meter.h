#pragma once
// The energy that a device takes while something runs.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/sensors/device_sensors.h"

namespace canopy {

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

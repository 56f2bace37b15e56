// Sensors: files as amdgpu, i915 and xe have them, a library with NVML's names, and the energy made of their readings.

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "engine/bench/device_sensors.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

class Sysfs : public testing::Test {
 protected:
  Sysfs() { sources_ = {folder_.path(), "/absent/libnvidia-ml.so.1"}; }

  void file(const std::string& name, const std::string& content) const {
    const fs::path path = pci_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content << "\n";
  }
  std::unique_ptr<DeviceSensors> open() const { return open_device_sensors("0000:03:00.0", sources_); }

  test::TempFolder folder_;
  const fs::path pci_ = folder_.path() / "bus/pci/devices/0000:03:00.0";
  SensorSources sources_;
};

TEST_F(Sysfs, ReadsAmdgpu) {
  file("vendor", "0x1002");
  file("hwmon/hwmon3/name", "amdgpu");
  file("hwmon/hwmon3/power1_average", "213000000");
  file("hwmon/hwmon3/freq1_input", "2482000000");
  file("hwmon/hwmon3/temp1_input", "61000");
  const auto sensors = open();
  ASSERT_NE(sensors, nullptr);
  EXPECT_EQ(sensors->name(), "hwmon amdgpu");
  const SensorReading reading = sensors->read();
  EXPECT_FALSE(reading.energy_j);
  EXPECT_DOUBLE_EQ(*reading.power_w, 213);
  EXPECT_DOUBLE_EQ(*reading.clock_mhz, 2482);
  EXPECT_DOUBLE_EQ(*reading.temperature_c, 61);
}

TEST_F(Sysfs, TakesThePowerOfNowWhereThereIsNoAverage) {
  file("hwmon/hwmon3/name", "amdgpu");
  file("hwmon/hwmon3/power1_input", "35500000");
  EXPECT_DOUBLE_EQ(*open()->read().power_w, 35.5);
}

TEST_F(Sysfs, ReadsI915) {
  file("vendor", "0x8086");
  file("hwmon/hwmon2/name", "i915");
  file("hwmon/hwmon2/energy1_input", "7000250000");
  file("drm/card0/gt_act_freq_mhz", "1150");
  file("drm/renderD128/uevent", "x");
  const auto sensors = open();
  ASSERT_NE(sensors, nullptr);
  EXPECT_EQ(sensors->name(), "hwmon i915");
  EXPECT_DOUBLE_EQ(*sensors->read().energy_j, 7000.25);
  EXPECT_DOUBLE_EQ(*sensors->read().clock_mhz, 1150);
  EXPECT_FALSE(sensors->read().power_w);
}

TEST_F(Sysfs, ReadsXe) {
  file("hwmon/hwmon7/name", "xe");
  file("hwmon/hwmon7/energy2_input", "5000000");
  file("hwmon/hwmon7/temp2_input", "44000");
  file("tile0/gt0/freq0/act_freq", "2400");
  const SensorReading reading = open()->read();
  EXPECT_DOUBLE_EQ(*reading.energy_j, 5);
  EXPECT_DOUBLE_EQ(*reading.clock_mhz, 2400);
  EXPECT_DOUBLE_EQ(*reading.temperature_c, 44);
}

TEST_F(Sysfs, SkipsAFolderThatTellsNoEnergy) {
  file("hwmon/hwmon1/name", "nvme");
  file("hwmon/hwmon1/temp1_input", "30000");
  EXPECT_EQ(open(), nullptr);
  file("hwmon/hwmon4/name", "amdgpu");
  file("hwmon/hwmon4/power1_average", "1000000");
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(open()->name(), "hwmon amdgpu");
}

TEST_F(Sysfs, WhatIsNoNumberIsNotTold) {
  for (const char* text : {"", "N/A", "12x", "99999999999999999999999", "1.5"}) {
    file("hwmon/hwmon4/power1_average", text);
    EXPECT_EQ(open(), nullptr) << text;
  }
  file("hwmon/hwmon4/power1_average", "1000000");
  const auto sensors = open();
  fs::remove_all(pci_);
  EXPECT_FALSE(sensors->read().power_w) << "the device has gone";
}

TEST_F(Sysfs, ADeviceWithoutAnAddressHasNoSensors) {
  EXPECT_EQ(open_device_sensors("", sources_), nullptr);
  EXPECT_EQ(open_device_sensors("../../../etc", sources_), nullptr);
  EXPECT_EQ(open_device_sensors("0000:03:00.0", sources_), nullptr) << "there is no such device";
}

class Nvml : public Sysfs {
 protected:
  Nvml() { sources_.nvml = FAKE_NVML; }
};

TEST_F(Nvml, TellsEnergyClockAndTemperature) {
  const auto sensors = open_device_sensors("0000:41:00.0", sources_);
  ASSERT_NE(sensors, nullptr);
  EXPECT_EQ(sensors->name(), "NVML");
  const SensorReading first = sensors->read(), second = sensors->read();
  EXPECT_DOUBLE_EQ(*second.energy_j - *first.energy_j, 2.5);
  EXPECT_DOUBLE_EQ(*first.power_w, 80);
  EXPECT_DOUBLE_EQ(*first.clock_mhz, 1980);
  EXPECT_DOUBLE_EQ(*first.temperature_c, 61);
}

TEST_F(Nvml, AnOlderGpuTellsItsPower) {
  const auto sensors = open_device_sensors("0000:42:00.0", sources_);
  ASSERT_NE(sensors, nullptr);
  EXPECT_FALSE(sensors->read().energy_j);
  EXPECT_DOUBLE_EQ(*sensors->read().power_w, 80);
}

TEST_F(Nvml, AGpuThatTellsNothingOrIsUnknownHasNoSensors) {
  EXPECT_EQ(open_device_sensors("0000:43:00.0", sources_), nullptr);
  EXPECT_EQ(open_device_sensors("0000:44:00.0", sources_), nullptr);
}

TEST_F(Nvml, IsNotLoadedForOtherMakersDevices) {
  const fs::path amd = folder_.path() / "bus/pci/devices/0000:41:00.0";
  fs::create_directories(amd);
  std::ofstream(amd / "vendor") << "0x1002\n";
  EXPECT_EQ(open_device_sensors("0000:41:00.0", sources_), nullptr);
}

TEST_F(Nvml, ALibraryOfAnotherKindIsPassedOver) {
  sources_.nvml = "libm.so.6";
  EXPECT_EQ(open_device_sensors("0000:41:00.0", sources_), nullptr);
}

/// Sensors that a test fills.
class FakeSensors final : public DeviceSensors {
 public:
  const std::string& name() const override { return name_; }
  SensorReading read() override {
    ++reads;
    if (readings.size() > 1) {
      const SensorReading first = readings.front();
      readings.pop_front();
      return first;
    }
    return readings.front();
  }
  std::deque<SensorReading> readings;
  std::atomic<int> reads = 0;  // a meter's thread reads, too

 private:
  std::string name_ = "fake";
};

SensorReading counter(double joules) {
  SensorReading reading;
  reading.energy_j = joules;
  return reading;
}

TEST(EnergyMeter, TakesTheDifferenceOfACounter) {
  FakeSensors sensors;
  sensors.readings = {counter(100), counter(112.5)};
  EnergyMeter meter(&sensors);
  meter.begin();
  EXPECT_DOUBLE_EQ(*meter.end().energy_j, 12.5);
}

TEST(EnergyMeter, ACounterThatWentBackTellsNothing) {
  FakeSensors sensors;
  sensors.readings = {counter(100), counter(3)};
  EnergyMeter meter(&sensors);
  meter.begin();
  EXPECT_FALSE(meter.end().energy_j);
}

TEST(EnergyMeter, AddsUpPowerThatAThreadReads) {
  FakeSensors sensors;
  SensorReading power;
  power.power_w = 40;
  sensors.readings = {power};
  EnergyMeter meter(&sensors);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto start = now();
  meter.begin();
  const auto begun = now();
  while (sensors.reads < 4) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto ending = now();
  const SensorReading end = meter.end();
  const auto ended = now();
  ASSERT_TRUE(end.energy_j);
  EXPECT_GE(*end.energy_j, 40 * std::chrono::duration<double>(ending - begun).count());
  EXPECT_LE(*end.energy_j, 40 * std::chrono::duration<double>(ended - start).count());
  EXPECT_DOUBLE_EQ(*end.power_w, 40);
}

TEST(EnergyMeter, WithoutSensorsThereIsNothing) {
  EnergyMeter meter(nullptr);
  meter.begin();
  EXPECT_FALSE(meter.end().energy_j);
}

TEST(EnergyMeter, MayBeLeftRunning) {
  FakeSensors sensors;
  SensorReading power;
  power.power_w = 40;
  sensors.readings = {power};
  EnergyMeter meter(&sensors);
  meter.begin();
  meter.begin();
}

TEST(PowerSum, IsTheAreaUnderTheReadings) {
  PowerSum sum;
  EXPECT_FALSE(sum.joules());
  sum.add(10, 100);
  EXPECT_FALSE(sum.joules());
  sum.add(12, 200);
  sum.add(13, 0);
  EXPECT_DOUBLE_EQ(*sum.joules(), 300 + 100);
}

}  // namespace
}  // namespace canopy

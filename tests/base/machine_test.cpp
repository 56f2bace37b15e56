#include "engine/base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

#if defined(__linux__)

/// A machine as /proc and /sys tell it, with 64 GiB of which 40 are free.
class Machine : public testing::Test {
 protected:
  void SetUp() override {
    write("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  1 kB\nMemAvailable:   41943040 kB\n");
  }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root() const { return folder_.path().string(); }

 private:
  TempFolder folder_;
};

constexpr uint64_t GiB = uint64_t{1} << 30;

TEST_F(Machine, HasTheMemoryOfTheSystem) {
  EXPECT_EQ(system_memory(root()).total, 64 * GiB);
  EXPECT_EQ(system_memory(root()).available, 40 * GiB);
  EXPECT_EQ(system_memory(root() + "/nowhere").available, kUnknownMemory);
}

TEST_F(Machine, HasNoMoreMemoryThanItsContainerAndTheFoldersAboveIt) {
  write("/proc/self/cgroup", "0::/service/one\n");
  write("/sys/fs/cgroup/service/one/memory.max", "max\n");
  EXPECT_EQ(system_memory(root()).total, 64 * GiB);
  write("/sys/fs/cgroup/service/memory.max", std::to_string(8 * GiB) + "\n");
  write("/sys/fs/cgroup/service/memory.current", std::to_string(3 * GiB) + "\n");
  EXPECT_EQ(system_memory(root()).total, 8 * GiB);
  EXPECT_EQ(system_memory(root()).available, 5 * GiB);
  write("/sys/fs/cgroup/service/memory.current", std::to_string(9 * GiB) + "\n");
  EXPECT_EQ(system_memory(root()).available, 0u);
}

TEST_F(Machine, TellsWhatOthersUseOfTheProcessor) {
  EXPECT_FALSE(processor_time(root()));
  write("/proc/stat", "cpu  1000 0 500 8000 100 20 30 50 900 0\ncpu0 1 2 3 4\n");
  const std::optional<ProcessorTime> before = processor_time(root());
  ASSERT_TRUE(before);
  EXPECT_NEAR(before->busy / before->all, 1600.0 / 9700, 1e-9) << "what guests took is counted once";
  EXPECT_GE(before->own, 0);
  const ProcessorTime begin{10, 100, 2};
  EXPECT_NEAR(*share_of_others(begin, {14, 110, 5}), 0.1, 1e-9) << "4 s of 10, of which 3 are our own";
  EXPECT_EQ(*share_of_others(begin, {14, 110, 9}), 0) << "clocks differ a little";
  EXPECT_FALSE(share_of_others(begin, begin));
}

TEST_F(Machine, RunsOnItsBatteryWhereTheSystemSaysSo) {
  EXPECT_FALSE(on_battery(root()));
  write("/sys/class/power_supply/hid-mouse/type", "Battery\n");
  write("/sys/class/power_supply/hid-mouse/scope", "Device\n");
  write("/sys/class/power_supply/hid-mouse/status", "Discharging\n");
  EXPECT_FALSE(on_battery(root()));
  write("/sys/class/power_supply/BAT0/type", "Battery\n");
  write("/sys/class/power_supply/BAT0/status", "Charging\n");
  EXPECT_FALSE(on_battery(root()));
  write("/sys/class/power_supply/BAT0/status", "Discharging\n");
  EXPECT_TRUE(on_battery(root()));
}

TEST_F(Machine, ComputesWithNoMoreThreadsThanItsContainerHasTimeFor) {
  const uint32_t cores = usable_cores(root());
  EXPECT_GE(cores, 1u);
  write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root()), cores);
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(usable_cores(root()), 1u);
  write("/sys/fs/cgroup/cpu.max", std::to_string(cores * 100000 + 500000) + " 100000\n");
  EXPECT_EQ(usable_cores(root()), cores);
}

TEST_F(Machine, CountsSiblingsOnce) {
  for (int cpu = 0; cpu < 1024; ++cpu) {
    write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", "0-1023\n");
  }
  EXPECT_EQ(usable_cores(root()), 1u);
}

#endif

}  // namespace
}  // namespace canopy::test

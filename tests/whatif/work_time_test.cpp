// Work on made-up devices that have one limit each.

#include "engine/whatif/kernel_work.h"

#include <gtest/gtest.h>

namespace canopy::predict {
namespace {

/// Everything is free but what a test makes dear.
DeviceProfile free_device() {
  DeviceProfile device;
  device.memory_gb_s = 1e12;
  device.latency_us = device.cache_latency_us = 1e-9;
  device.cache_tb_s = 1e12;
  device.cache_mb = 1e6;
  device.units = 10;
  device.lanes_a_clock = 100;
  device.resident_lanes = 2000;
  device.full_registers = 32;  // so 1000 invocations of 64
  device.clock_ghz = 1e9;
  device.matrix_tflop_s = 1e12;
  return device;
}

Work some_work() {
  Work work;
  work.memory_bytes = 1e9;
  work.cache_bytes = 1e9;
  work.lane_ops = 1e9;
  work.matrix_flops = 1e9;
  work.workgroups = 100;
  work.invocations = 100;
  work.bytes_in_flight = 3200;
  return work;
}

TEST(WorkTime, BytesOverBandwidthWhereNothingElseLimits) {
  DeviceProfile device = free_device();
  device.memory_gb_s = 1000;
  device.memory_share = 0.5;
  const WorkTime time = time_of(some_work(), device);
  EXPECT_NEAR(time.total, 2000, 1e-3);  // 10^9 bytes at 500 GB/s
  EXPECT_EQ(time.limit, Limit::memory);
}

TEST(WorkTime, FewWorkgroupsReadWhatTheyHaveInFlightOnceInEachLatency) {
  DeviceProfile device = free_device();
  device.latency_us = device.cache_latency_us = 1;
  Work work = some_work();
  work.steps = 0;
  work.workgroups = 1;
  work.memory_bytes = 3200 * 50;  // 50 times what 100 invocations of 32 bytes have in flight
  WorkTime time = time_of(work, device);
  EXPECT_NEAR(time.memory, 50, 1e-9);
  EXPECT_EQ(time.limit, Limit::in_flight);
  work.workgroups = 100;  // 10 units hold 10 each
  EXPECT_NEAR(time_of(work, device).memory, 0.5, 1e-9);
  work.workgroups = 200;  // no more than 100 are there at a time
  EXPECT_NEAR(time_of(work, device).memory, 0.5, 1e-9);
  work.workgroups_reading_memory = 50;  // the others read the same
  EXPECT_NEAR(time_of(work, device).memory, 1, 1e-9);
  work.bytes_in_flight *= 2;
  EXPECT_NEAR(time_of(work, device).memory, 0.5, 1e-9);
  work.longest_memory_bytes = 6400 * 7;
  time = time_of(work, device);
  EXPECT_NEAR(time.memory, 7, 1e-9);
}

TEST(WorkTime, ArithmeticOverTheRateOfTheUnitsThatHaveSome) {
  DeviceProfile device = free_device();
  device.clock_ghz = 1;  // 10 units of 100 lanes: 10^12 instructions × lanes a second
  Work work = some_work();
  work.steps = 0;
  work.invocations = 200;
  const double all_units = 1000 / 0.8;  // 10^9 of them, at four fifths of the ideal throughput
  EXPECT_NEAR(time_of(work, device).arithmetic, all_units, 1e-3);
  EXPECT_EQ(time_of(work, device).limit, Limit::arithmetic);
  work.workgroups = 5;  // half of the units
  EXPECT_NEAR(time_of(work, device).arithmetic, 2 * all_units, 1e-3);
  work.workgroups = 11;  // one unit has two
  EXPECT_NEAR(time_of(work, device).arithmetic, all_units * 20 / 11, 1e-3);
  work.workgroups = 10;
  work.invocations = 50;  // waves of one workgroup fill a quarter of the issue slots
  EXPECT_NEAR(time_of(work, device).arithmetic, 4 * all_units, 1e-3);
}

TEST(WorkTime, MatrixCoresWorkBesideTheLanesOrInTheirTime) {
  DeviceProfile device = free_device();
  device.clock_ghz = 1;
  device.matrix_tflop_s = 2;
  Work work = some_work();
  work.invocations = 200;
  EXPECT_NEAR(time_of(work, device).arithmetic, (1000 + 500) / 0.8, 1e-3);
  device.matrix_overlaps = true;
  EXPECT_NEAR(time_of(work, device).arithmetic, 1000 / 0.8, 1e-3);
}

TEST(WorkTime, LimitsThatAreEquallyLongTakeLittleMoreThanOne) {
  DeviceProfile device = free_device();
  device.memory_gb_s = 1000;
  const double memory = time_of(some_work(), device).total;
  device.cache_tb_s = 1;
  const WorkTime both = time_of(some_work(), device);
  EXPECT_NEAR(both.cache, both.memory, 1e-3);
  EXPECT_GT(both.total, 1.1 * memory);
  EXPECT_LT(both.total, 1.25 * memory);
}

TEST(WorkTime, StepsAddTheirCostAndTwoLatencies) {
  DeviceProfile device = free_device();
  device.step_us = 3;
  device.latency_us = 0.5;
  device.cache_latency_us = 0.25;
  Work work;
  work.steps = 2;
  WorkTime time = time_of(work, device);
  EXPECT_DOUBLE_EQ(time.total, 2 * (3 + 2 * 0.5));
  EXPECT_EQ(time.limit, Limit::steps);
  work.tail_latencies = 2;
  time = time_of(work, device);
  EXPECT_DOUBLE_EQ(time.total, 2 * (3 + 2 * 0.5) + 2 * 0.25);
  work.cache_latencies = 3;
  work.early_us = 0.75;
  time = time_of(work, device);
  EXPECT_DOUBLE_EQ(time.total, 2 * (3 - 0.75 + 2 * 0.5) + 5 * 0.25);
}

TEST(WorkTime, EachLimitHasAName) {
  for (const Limit limit : {Limit::memory, Limit::in_flight, Limit::cache, Limit::arithmetic, Limit::steps}) {
    EXPECT_STRNE(to_string(limit), "");
  }
}

}  // namespace
}  // namespace canopy::predict

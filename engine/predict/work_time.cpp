#include "engine/predict/work_time.h"

#include <algorithm>
#include <cmath>

namespace canopy::predict {
namespace {

// Of the compiler's ideal throughput: barriers, and waves that wait at the same time.
constexpr double kArithmeticShare = 0.8;
// Of a unit's issue slots that one wave fills of its own lanes' share, as its instructions depend on each other.
constexpr double kLoneWaveShare = 0.5;
// How reading, the cache and arithmetic overlap: the norm of their times. 1 would be one after the other, infinity the
// longest alone; at 4, two equal times take 1.19 of one.
constexpr double kOverlap = 4;

double norm_of(double a, double b, double c) {
  const double most = std::max({a, b, c});
  if (most <= 0) return 0;
  const auto power = [most](double x) { return std::pow(x / most, kOverlap); };
  return most * std::pow(power(a) + power(b) + power(c), 1 / kOverlap);
}

/// Workgroups that a unit holds at a time; a fraction where neighbouring units share their memory.
double resident_workgroups(const Work& work, const DeviceProfile& device) {
  const double lanes = device.resident_lanes * std::min(1.0, device.full_registers / work.registers);
  double most = lanes / work.invocations;
  if (work.shared_bytes > 0) most = std::min(most, device.shared_kb * 1024 / work.shared_bytes);
  return std::max(1.0, most);
}

struct MemoryTime {
  double us = 0;
  bool in_flight = false;  // the workgroups' requests decide, not the bandwidth
};

/// By Little's law a workgroup reads what it has in flight once in each latency; all together no more than the memory
/// gives.
MemoryTime memory_time(const Work& work, const DeviceProfile& device) {
  if (work.memory_bytes <= 0) return {};
  const double readers = work.workgroups_reading_memory > 0 ? work.workgroups_reading_memory : work.workgroups;
  const double longest = work.longest_memory_bytes > 0 ? work.longest_memory_bytes : work.memory_bytes / readers;
  const double bytes_a_us = work.bytes_in_flight / device.latency_us;  // of a workgroup
  const double rounds = std::max(1.0, readers / (device.units * resident_workgroups(work, device)));
  const double by_requests = rounds * longest / bytes_a_us;
  const double by_bandwidth = work.memory_bytes / (device.memory_gb_s * 1e3 * device.memory_share);
  return {std::max(by_requests, by_bandwidth), by_requests > by_bandwidth};
}

/// The unit that has most workgroups decides; with few waves at a time it does not fill its issue slots.
double arithmetic_time(const Work& work, const DeviceProfile& device) {
  const double lanes = work.lane_ops / (device.lane_tops() * 1e6);
  const double matrix = work.matrix_flops > 0 ? work.matrix_flops / (device.matrix_tflop_s * 1e6) : 0;
  const double evenly = device.matrix_overlaps ? std::max(lanes, matrix) : lanes + matrix;
  const double rounds = std::ceil(work.workgroups / device.units);
  const double at_a_time = std::min(rounds, resident_workgroups(work, device));
  const double filled = std::min(1.0, at_a_time * work.invocations * kLoneWaveShare / device.lanes_a_clock);
  return evenly * (rounds * device.units / work.workgroups) / (filled * kArithmeticShare);
}

Limit limit_of(const WorkTime& time, bool in_flight) {
  const double most = std::max({time.memory, time.cache, time.arithmetic, time.steps});
  if (time.memory == most) return in_flight ? Limit::in_flight : Limit::memory;
  if (time.cache == most) return Limit::cache;
  return time.arithmetic == most ? Limit::arithmetic : Limit::steps;
}

}  // namespace

const char* to_string(Limit limit) {
  switch (limit) {
    case Limit::memory: return "memory";
    case Limit::in_flight: return "bytes in flight";
    case Limit::cache: return "cache";
    case Limit::arithmetic: return "arithmetic";
    case Limit::steps: return "dispatches";
  }
  return "";
}

WorkTime time_of(const Work& work, const DeviceProfile& device) {
  const MemoryTime memory = memory_time(work, device);
  WorkTime time;
  time.memory = memory.us;
  time.cache = work.cache_bytes / (device.cache_tb_s * 1e6);
  time.arithmetic = arithmetic_time(work, device);
  time.steps = work.steps * (device.step_us - work.early_us + work.first_latencies * device.latency_us) +
               (work.cache_latencies + work.tail_latencies) * device.cache_latency_us;
  time.total = norm_of(time.memory, time.cache, time.arithmetic) + time.steps;
  time.limit = limit_of(time, memory.in_flight);
  return time;
}

}  // namespace canopy::predict

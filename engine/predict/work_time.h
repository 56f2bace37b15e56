#pragma once
// The time that work takes on a device: bytes at the rate that the workgroups can keep in flight, arithmetic at the
// rate of the units that have some, and the cost of its dispatches.

#include <cstdint>
#include <string>

#include "engine/predict/device_profile.h"

namespace canopy::predict {

/// What an op does on a device, all its workgroups together. They are alike, except where longest_memory_bytes is set.
struct Work {
  std::string kernel;       // its name, where there is one to tell
  double memory_bytes = 0;  // read from memory
  double cache_bytes = 0;   // moved between the units and the shared cache, beside those
  double lane_ops = 0;      // instructions × lanes, multiply-adds of f32 among them
  double matrix_flops = 0;

  double workgroups = 1;
  double invocations = 128;              // of a workgroup
  double bytes_in_flight = 4096;         // that a workgroup has asked for at a time, on average
  double registers = 64;                 // of an invocation
  double shared_bytes = 0;               // of a workgroup
  double longest_memory_bytes = 0;       // of the workgroup that reads most; 0: all read the same
  double workgroups_reading_memory = 0;  // the others read what these brought to the cache; 0: all
  double cache_latencies = 0;            // dependent accesses to the shared cache before those of memory
  double tail_latencies = 0;             // the same behind the last workgroup's work
  double steps = 1;                      // dispatches that wait for the one before
  double early_us = 0;                   // of each of them, that it begins before the one in front has ended
  // Of memory, from a step's start to its first result: its descriptors or activations, then its weights.
  double first_latencies = 2;
};

/// Of the accesses of a tail, those until a workgroup knows that it is the last: what it wrote has to be where others
/// find it before it is counted.
inline constexpr double kCountLatencies = 2;

enum class Limit { memory, in_flight, cache, arithmetic, steps };
const char* to_string(Limit limit);

/// Microseconds.
struct WorkTime {
  double memory = 0, cache = 0, arithmetic = 0;  // each as if it were alone
  double steps = 0;                              // dispatches, barriers and dependent latencies
  double total = 0;
  Limit limit = Limit::steps;  // the longest of them
};

WorkTime time_of(const Work& work, const DeviceProfile& device);

}  // namespace canopy::predict

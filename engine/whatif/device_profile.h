#pragma once
// GPUs and processors that times can be predicted for, as data.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace canopy::predict {

/// Instructions on registers of one width that a core starts in a clock; 0: it has none.
struct VectorUnits {
  double multiplies = 0;  // multiply-adds of floats and of pairs of 16-bit numbers, conversions
  double all = 0;         // these, additions, shifts and logic together
};

/// Cores of one kind.
struct ProcessorCores {
  uint32_t count = 0;
  double clock_ghz = 0;  // with all cores at work on vector instructions
  VectorUnits of_128, of_256, of_512;
};

/// What a processor has in place of the figures of a GPU.
struct ProcessorFigures {
  ProcessorCores fast, slow;  // slow: none where all are alike
  double core_gb_s = 0;       // that one core alone brings from memory
  bool avx_vnni = false;

  constexpr uint32_t cores() const { return fast.count + slow.count; }
};

/// Rates are of the whole device, in 10^9 bytes or 10^12 operations a second. A processor has `processor`, its memory
/// and step_us, the time in which its threads wait for each other, and nothing else.
struct DeviceProfile {
  std::string_view name;  // "rx7900xtx"
  std::string_view gpu;   // "Radeon RX 7900 XTX, 24 GB GDDR6"; also of a processor what it is called

  double memory_gb_s = 0;          // peak bandwidth, by the data sheet
  double memory_share = 1;         // of the peak that long reads reach
  double latency_us = 0;           // from a load to its data, in memory, under load
  double cache_latency_us = 0;     // the same in the cache that all units share, where little else is under way
  double cache_tb_s = 0;           // bandwidth of the cache that all units share
  double cache_mb = 0;             // size of the last-level cache
  double local_kb = 0;             // L1 of a unit
  double shared_kb = 0;            // shared memory of a unit
  double workgroup_shared_kb = 0;  // of a workgroup, as drivers allow it

  uint32_t units = 0;            // SMs, CUs, Xe cores
  uint32_t lanes_a_clock = 0;    // instructions × lanes that a unit starts in a clock
  uint32_t resident_lanes = 0;   // invocations that a unit holds at a time
  double full_registers = 0;     // of an invocation, with which a unit still holds all of these
  double clock_ghz = 0;          // boost
  double matrix_tflop_s = 0;     // f16 operands, f32 sums; 0: no matrix cores
  double warpgroup_tflop_s = 0;  // the same of instructions for four warps, which CUDA alone has; 0: none
  double integer_tops = 0;       // 8-bit operands, sums of 32 bits; 0: not by matrix cores
  uint32_t integer_depth = 16;   // columns of a weight in one such matrix
  bool matrix_overlaps = false;  // matrix cores work beside the lanes; else each takes the other's time

  int cuda_capability = 0;    // compute capability of NVIDIA's GPUs: 89 is 8.9; 0: another maker's
  double cuda_shared_kb = 0;  // shared memory of a block, as CUDA allows it

  double step_us = 0;        // a dispatch with a barrier before it, without the latency of its first loads
  double submission_us = 0;  // of work, until the device begins
  double round_trip_us = 0;  // end of the work until the host goes on
  double bus_gb_s = 0;       // between host and device

  ProcessorFigures processor = {};

  constexpr bool is_processor() const { return processor.fast.count > 0; }
  /// Instructions × lanes, 10^12 a second.
  double lane_tops() const { return units * 1e-3 * lanes_a_clock * clock_ghz; }
  double workgroup_shared_bytes() const { return workgroup_shared_kb * 1024; }
};

/// GPUs by ascending bandwidth within a vendor, NVIDIA, AMD, Intel, Apple; then processors likewise.
std::span<const DeviceProfile> device_profiles();
std::span<const DeviceProfile> gpu_profiles();
std::span<const DeviceProfile> processor_profiles();

/// Throws bad_input that lists the names for one that is not among them.
const DeviceProfile& device_profile(std::string_view name);

/// Those that a user names: one, "all", "gpus" or "processors".
std::span<const DeviceProfile> chosen_profiles(std::string_view name);

/// A device that a user describes, by the figures that decide most.
struct OwnDevice {
  std::string name;
  double gb_s = 0;         // of its memory, by the data sheet
  double tflops = 0;       // f32, a multiply-add counted as two
  double dispatch_us = 0;  // a dispatch that waits for the one before

  bool operator==(const OwnDevice&) const = default;
};

inline constexpr size_t kLongestOwnName = 40;  // bytes

/// Why nothing can be predicted for it, as a sentence; empty where something can.
std::string problem_of(const OwnDevice& device);

/// Its profile, with the middling figures of a GPU where it says nothing: plain multiply-adds, as it names no matrix
/// cores. `device` must outlive it, as its name is the profile's.
DeviceProfile profile_of(const OwnDevice& device);

}  // namespace canopy::predict

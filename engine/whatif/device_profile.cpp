#include "engine/whatif/device_profile.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace canopy::predict {
namespace {

// Where the figures are from. Estimates are the same for all devices of a class, and none was fitted to the speed of a
// model on that device (docs/predict.md says how far off the predictions are).
//
// memory_gb_s, units, resident_lanes, full_registers, clock_ghz, cache_mb, local_kb, shared_kb, workgroup_shared_kb:
// data sheets and architecture papers. memory_share: estimate by kind of memory. HBM 0.90: copies of 3.0 of 3.35
// and 4.3 of 4.8 TB/s were seen. GDDR 0.92.
//   LPDDR5X 0.83: about 212 of 256 GB/s are reported for Strix Halo.
// latency_us: estimate, pointer chases under load: GDDR6X 0.55, GDDR6 behind an Infinity Cache 0.6, HBM 0.7,
//   LPDDR5X 0.7, Battlemage 0.8.
// cache_latency_us: RDNA 3: 0.2 us, a vector load from the Infinity Cache where few requests are under way (Chips and
//   Cheese, "Latency Testing is Hard", June 2023: 199 ns, 150 at a higher clock; L2 answers sooner); taken for the
//   other RDNA devices, too. Ada: 0.14 us, 339 cycles, the slowest of an L40's units from L2 (arXiv 2606.22588; 279 on
//   average); Ampere as many at its clock. Hopper: estimate of 500 cycles, as its L2 has two halves. Battlemage:
//   estimate, half of its latency.
// cache_tb_s: estimate from published microbenchmarks of the shared cache, +-30%.
// matrix_tflop_s: f16 with f32 sums, dense, by the data sheet. Hopper: 620 of 989, as cooperative matrices are
//   compiled to the older instructions (mma.sync), which reach some five eighths of the peak (estimate). 9070 XT: twice
//   RDNA3 a CU. warpgroup_tflop_s: wgmma, by the data sheet.
// integer_tops: 8-bit integers, dense, by the data sheet: twice the rate of f16 operands (GeForce: four times that with
//   f32 sums), on RDNA 3 the same; Hopper as above. integer_depth: of the matrices that drivers name.
// matrix_overlaps: RDNA runs matrix instructions on the lanes' own units.
// step_us: what a dispatch that waits for the one before costs beside its latencies. AMD: 0.82 to 0.88 us each of 941
//   small dependent dispatches in a command buffer, measured with RADV on a W7900 (gfx1100; ROCm/rocm-systems issue
//   10834); taken for the other RDNA devices, too. Their one load and store is in it, so this is no underestimate.
//   NVIDIA: 1.3 us for a kernel in a CUDA graph on an H100 (Hazy Research, "Look Ma, No Bubbles", 2025); of Vulkan's
//   barriers there is no figure. Intel: an estimate, from replays of SmolLM2 that take 2.6 times as long on a B570 as
//   on an RTX 5070.
// submission_us, round_trip_us: estimate, Linux; shared memory saves a part of the round trip. bus_gb_s: PCIe 5 x16 for
//   Hopper, 4 x16, x8 on the B580; of shared memory, what copies reach.
constexpr DeviceProfile kProfiles[] = {
    {.name = "rtx3090",
     .gpu = "GeForce RTX 3090, 24 GB GDDR6X",
     .memory_gb_s = 936,
     .memory_share = 0.92,
     .latency_us = 0.55,
     .cache_latency_us = 0.2,
     .cache_tb_s = 2.3,
     .cache_mb = 6,
     .local_kb = 128,
     .shared_kb = 100,
     .workgroup_shared_kb = 48,
     .units = 82,
     .lanes_a_clock = 128,
     .resident_lanes = 1536,
     .full_registers = 42,
     .clock_ghz = 1.70,
     .matrix_tflop_s = 71,
     .integer_tops = 284,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 86,
     .cuda_shared_kb = 99,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 24},
    {.name = "rtx4090",
     .gpu = "GeForce RTX 4090, 24 GB GDDR6X",
     .memory_gb_s = 1008,
     .memory_share = 0.92,
     .latency_us = 0.55,
     .cache_latency_us = 0.14,
     .cache_tb_s = 5.0,
     .cache_mb = 72,
     .local_kb = 128,
     .shared_kb = 100,
     .workgroup_shared_kb = 48,
     .units = 128,
     .lanes_a_clock = 128,
     .resident_lanes = 1536,
     .full_registers = 42,
     .clock_ghz = 2.52,
     .matrix_tflop_s = 165.2,
     .integer_tops = 660.6,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 89,
     .cuda_shared_kb = 99,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 24},
    {.name = "h100",
     .gpu = "H100 SXM, 80 GB HBM3",
     .memory_gb_s = 3350,
     .memory_share = 0.90,
     .latency_us = 0.7,
     .cache_latency_us = 0.28,
     .cache_tb_s = 5.5,
     .cache_mb = 50,
     .local_kb = 256,
     .shared_kb = 228,
     .workgroup_shared_kb = 48,
     .units = 132,
     .lanes_a_clock = 128,
     .resident_lanes = 2048,
     .full_registers = 32,
     .clock_ghz = 1.755,
     .matrix_tflop_s = 620,
     .warpgroup_tflop_s = 989,
     .integer_tops = 1240,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 90,
     .cuda_shared_kb = 227,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 50},
    {.name = "h200",
     .gpu = "H200 SXM, 141 GB HBM3e",
     .memory_gb_s = 4800,
     .memory_share = 0.90,
     .latency_us = 0.7,
     .cache_latency_us = 0.28,
     .cache_tb_s = 5.5,
     .cache_mb = 50,
     .local_kb = 256,
     .shared_kb = 228,
     .workgroup_shared_kb = 48,
     .units = 132,
     .lanes_a_clock = 128,
     .resident_lanes = 2048,
     .full_registers = 32,
     .clock_ghz = 1.755,
     .matrix_tflop_s = 620,
     .warpgroup_tflop_s = 989,
     .integer_tops = 1240,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 90,
     .cuda_shared_kb = 227,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 50},
    {.name = "strix-halo",
     .gpu = "Radeon 8060S (Strix Halo), LPDDR5X shared with the processor",
     .memory_gb_s = 256,
     .memory_share = 0.83,
     .latency_us = 0.7,
     .cache_latency_us = 0.2,
     .cache_tb_s = 1.2,
     .cache_mb = 32,
     .local_kb = 32,
     .shared_kb = 64,
     .workgroup_shared_kb = 64,
     .units = 40,
     .lanes_a_clock = 64,
     .resident_lanes = 1024,
     .full_registers = 96,
     .clock_ghz = 2.9,
     .matrix_tflop_s = 59.4,
     .integer_tops = 59.4,
     .integer_depth = 16,
     .step_us = 0.9,
     .submission_us = 15,
     .round_trip_us = 10,
     .bus_gb_s = 80},
    {.name = "rx9070xt",
     .gpu = "Radeon RX 9070 XT, 16 GB GDDR6",
     .memory_gb_s = 645,
     .memory_share = 0.92,
     .latency_us = 0.6,
     .cache_latency_us = 0.2,
     .cache_tb_s = 3.0,
     .cache_mb = 64,
     .local_kb = 32,
     .shared_kb = 64,
     .workgroup_shared_kb = 64,
     .units = 64,
     .lanes_a_clock = 64,
     .resident_lanes = 1024,
     .full_registers = 96,
     .clock_ghz = 2.97,
     .matrix_tflop_s = 194.6,
     .integer_tops = 389,
     .integer_depth = 16,
     .step_us = 0.9,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 48},
    {.name = "rx7900xtx",
     .gpu = "Radeon RX 7900 XTX, 24 GB GDDR6",
     .memory_gb_s = 960,
     .memory_share = 0.92,
     .latency_us = 0.6,
     .cache_latency_us = 0.2,
     .cache_tb_s = 3.5,
     .cache_mb = 96,
     .local_kb = 32,
     .shared_kb = 64,
     .workgroup_shared_kb = 64,
     .units = 96,
     .lanes_a_clock = 64,
     .resident_lanes = 1024,
     .full_registers = 96,
     .clock_ghz = 2.5,
     .matrix_tflop_s = 122.8,
     .integer_tops = 122.8,
     .integer_depth = 16,
     .step_us = 0.9,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 24},
    {.name = "b580",
     .gpu = "Arc B580, 12 GB GDDR6",
     .memory_gb_s = 456,
     .memory_share = 0.92,
     .latency_us = 0.8,
     .cache_latency_us = 0.4,
     .cache_tb_s = 1.4,
     .cache_mb = 18,
     .local_kb = 256,
     .shared_kb = 128,
     .workgroup_shared_kb = 64,
     .units = 20,
     .lanes_a_clock = 128,
     .resident_lanes = 1024,
     .full_registers = 128,
     .clock_ghz = 2.67,
     .matrix_tflop_s = 109,
     .integer_tops = 218,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .step_us = 8,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 12},
};

}  // namespace

std::span<const DeviceProfile> device_profiles() {
  return kProfiles;
}

const DeviceProfile& device_profile(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &DeviceProfile::name);
  if (found != std::end(kProfiles)) return *found;
  std::string names;
  for (const DeviceProfile& each : kProfiles) names += std::string(each.name) + ", ";
  throw bad_input("There is no profile of a device named '" + printable(name) + "'; allowed: " + names + "all.");
}

std::span<const DeviceProfile> chosen_profiles(std::string_view name) {
  if (name == "all") return kProfiles;
  return {&device_profile(name), 1};
}

}  // namespace canopy::predict

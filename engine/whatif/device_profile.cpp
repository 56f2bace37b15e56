#include "engine/whatif/device_profile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

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
//   LPDDR5X 0.7, Battlemage 0.8. GDDR6 of GeForce and GDDR7 as GDDR6X, Alchemist as Battlemage.
// cache_latency_us: RDNA 3: 0.2 us, a vector load from the Infinity Cache where few requests are under way (Chips and
//   Cheese, "Latency Testing is Hard", June 2023: 199 ns, 150 at a higher clock; L2 answers sooner); taken for the
//   other RDNA devices, too. Ada: 0.14 us, 339 cycles, the slowest of an L40's units from L2 (arXiv 2606.22588; 279 on
//   average), and so for Blackwell; Ampere as many at its clock. Hopper: estimate of 500 cycles, as its L2 has two
//   halves. Battlemage, Alchemist: estimate, half of their latency. Apple: estimate.
// cache_tb_s: estimate from published microbenchmarks of the shared cache, +-30%; of the other GeForces by their
//   memory channels and clock from the RTX 4090's and the RTX 3090's, of the A770 and the M4 Max a guess.
// matrix_tflop_s: f16 with f32 sums, dense, by the data sheet. Hopper: 620 of 989, as cooperative matrices are
//   compiled to the older instructions (mma.sync), which reach some five eighths of the peak (estimate). 9070 XT: twice
//   RDNA3 a CU. RTX 5090, 4060, 3060: by multiprocessors and clock from their kin above; A770: as of
//   the B580, 1,024 multiply-adds of halves a clock of a core. M4 Max: its matrices of SIMD groups run on the lanes,
//   at the f32 rate; Vulkan does not have them there. warpgroup_tflop_s: wgmma, by the data sheet.
// integer_tops: 8-bit integers, dense, by the data sheet: twice the rate of f16 operands (GeForce: four times that with
//   f32 sums), on RDNA 3 the same; Hopper as above. integer_depth: of the matrices that drivers name.
// matrix_overlaps: RDNA runs matrix instructions on the lanes' own units.
// step_us: what a dispatch that waits for the one before costs beside its latencies. AMD: 0.82 to 0.88 us each of 941
//   small dependent dispatches in a command buffer, measured with RADV on a W7900 (gfx1100; ROCm/rocm-systems issue
//   10834); taken for the other RDNA devices, too. Their one load and store is in it, so this is no underestimate.
//   NVIDIA: 1.3 us for a kernel in a CUDA graph on an H100 (Hazy Research, "Look Ma, No Bubbles", 2025); of Vulkan's
//   barriers there is no figure. Apple: an estimate. Intel: an estimate, from replays of SmolLM2 that take 2.6 times as
//   long on a B570 as on an RTX 5070.
// submission_us, round_trip_us: estimate, Linux; shared memory saves a part of the round trip. bus_gb_s: PCIe 5 x16 for
//   Hopper and the RTX 5090, 4 x16, x8 on the B580 and the RTX 4060; of shared memory, what copies reach.
// RTX 5090, 4060, 3060, A770, M4 Max: bandwidth and f32 rate (units and clock make it) are those that data sheets give;
// caches are what is commonly said of them and were not looked up again, the rest is the estimate of their class. Of
// these a run of a model is known of the RTX 5090 alone.
//
// Processors. memory_gb_s: channels and speed of the memory by the data sheet; of the fastest that it names, where it
// names several. memory_share: estimate. Desktops of Ryzen 0.8, as reads of two dies go through one fabric clock;
// Intel's
//   0.85; EPYC 0.8 (STREAM of two 9654 is given as some 780 of 922 GB/s); the laptop 0.65 and Apple 0.6, whose memory
//   is wider than what its cores ask for (243 of 400 GB/s were seen from all cores of an M1 Max).
// core_gb_s: estimate, +-30%. EPYC's dies share a link that brings 8 cores some 55 GB/s, one alone more than its share.
// count: cores, not threads, as the device takes; low-power cores of the 155H count among the slow ones.
// clock_ghz: estimate below the boost, with all cores at work on vector instructions; of the 9654 the all-core boost.
// of_256, of_512, of_128: what the makers' optimization guides and measured tables of instructions say of vpmaddwd,
//   vpdpwssd, vfmadd, additions and logic. Zen 4 takes two turns for 512 bits, Zen 5 of desktops one. Cores from Golden
//   Cove on multiply on two of three units of 256 bits; the efficient ones have as many of 128, which is half of it
//   for 256. Apple's fast cores have four units of 128 bits that do everything, the others three (estimate).
// step_us: of threads that all add to one counter in turn: cores times what a line takes from one to another, 40 to 60
//   ns within a package, 80 across the dies of an EPYC. Two threads took 0.2 us on a Xeon.
// Nothing of these was measured with Canopy.
constexpr DeviceProfile kProfiles[] = {
    {.name = "rtx4060",
     .gpu = "GeForce RTX 4060, 8 GB GDDR6",
     .memory_gb_s = 272,
     .memory_share = 0.92,
     .latency_us = 0.55,
     .cache_latency_us = 0.14,
     .cache_tb_s = 1.6,
     .cache_mb = 24,
     .local_kb = 128,
     .shared_kb = 100,
     .workgroup_shared_kb = 48,
     .units = 24,
     .lanes_a_clock = 128,
     .resident_lanes = 1536,
     .full_registers = 42,
     .clock_ghz = 2.46,
     .matrix_tflop_s = 30.2,
     .integer_tops = 121,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 89,
     .cuda_shared_kb = 99,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 12},
    {.name = "rtx3060",
     .gpu = "GeForce RTX 3060, 12 GB GDDR6",
     .memory_gb_s = 360,
     .memory_share = 0.92,
     .latency_us = 0.55,
     .cache_latency_us = 0.2,
     .cache_tb_s = 1.2,
     .cache_mb = 3,
     .local_kb = 128,
     .shared_kb = 100,
     .workgroup_shared_kb = 48,
     .units = 28,
     .lanes_a_clock = 128,
     .resident_lanes = 1536,
     .full_registers = 42,
     .clock_ghz = 1.777,
     .matrix_tflop_s = 25.5,
     .integer_tops = 102,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 86,
     .cuda_shared_kb = 99,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 24},
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
    {.name = "rtx5090",
     .gpu = "GeForce RTX 5090, 32 GB GDDR7",
     .memory_gb_s = 1792,
     .memory_share = 0.92,
     .latency_us = 0.55,
     .cache_latency_us = 0.14,
     .cache_tb_s = 6.4,
     .cache_mb = 96,
     .local_kb = 128,
     .shared_kb = 100,
     .workgroup_shared_kb = 48,
     .units = 170,
     .lanes_a_clock = 128,
     .resident_lanes = 1536,
     .full_registers = 42,
     .clock_ghz = 2.407,
     .matrix_tflop_s = 209.5,
     .integer_tops = 838,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .cuda_capability = 120,
     .cuda_shared_kb = 99,
     .step_us = 1.3,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 50},
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
    {.name = "a770",
     .gpu = "Arc A770, 16 GB GDDR6",
     .memory_gb_s = 560,
     .memory_share = 0.92,
     .latency_us = 0.8,
     .cache_latency_us = 0.4,
     .cache_tb_s = 1.6,
     .cache_mb = 16,
     .local_kb = 192,
     .shared_kb = 128,
     .workgroup_shared_kb = 64,
     .units = 32,
     .lanes_a_clock = 128,
     .resident_lanes = 1024,
     .full_registers = 128,
     .clock_ghz = 2.4,
     .matrix_tflop_s = 157,
     .integer_tops = 314,
     .integer_depth = 32,
     .matrix_overlaps = true,
     .step_us = 8,
     .submission_us = 15,
     .round_trip_us = 20,
     .bus_gb_s = 24},
    {.name = "m4max",
     .gpu = "Apple M4 Max, 40 cores, LPDDR5X shared with the processor",
     .memory_gb_s = 546,
     .memory_share = 0.83,
     .latency_us = 0.7,
     .cache_latency_us = 0.3,
     .cache_tb_s = 1.2,
     .cache_mb = 48,
     .local_kb = 32,
     .shared_kb = 60,
     .workgroup_shared_kb = 32,
     .units = 40,
     .lanes_a_clock = 128,
     .resident_lanes = 3072,
     .full_registers = 17,
     .clock_ghz = 1.79,
     .matrix_tflop_s = 18.4,
     .integer_tops = 18.4,
     .integer_depth = 16,
     .step_us = 3,
     .submission_us = 15,
     .round_trip_us = 10,
     .bus_gb_s = 200},
    {.name = "ryzen9-7950x",
     .gpu = "Ryzen 9 7950X, 16 cores, DDR5-5200",
     .memory_gb_s = 83.2,
     .memory_share = 0.8,
     .step_us = 0.8,
     .processor = {.fast = {16, 5.0, {}, {2, 4}, {1, 2}}, .core_gb_s = 35}},
    {.name = "ryzen9-9950x",
     .gpu = "Ryzen 9 9950X, 16 cores, DDR5-5600",
     .memory_gb_s = 89.6,
     .memory_share = 0.8,
     .step_us = 0.8,
     .processor = {.fast = {16, 4.8, {}, {2, 4}, {2, 4}}, .core_gb_s = 35, .avx_vnni = true}},
    {.name = "epyc-9654",
     .gpu = "EPYC 9654, 96 cores, 12 channels of DDR5-4800",
     .memory_gb_s = 460.8,
     .memory_share = 0.8,
     .step_us = 7.7,
     .processor = {.fast = {96, 3.55, {}, {2, 4}, {1, 2}}, .core_gb_s = 20}},
    {.name = "i9-14900k",
     .gpu = "Core i9-14900K, 8 and 16 cores, DDR5-5600",
     .memory_gb_s = 89.6,
     .memory_share = 0.85,
     .step_us = 1,
     .processor =
         {.fast = {8, 5.5, {}, {2, 3}, {}}, .slow = {16, 4.2, {}, {1, 1.5}, {}}, .core_gb_s = 30, .avx_vnni = true}},
    {.name = "ultra7-155h",
     .gpu = "Core Ultra 7 155H, 6 and 10 cores, LPDDR5X-7467",
     .memory_gb_s = 119.5,
     .memory_share = 0.65,
     .step_us = 0.9,
     .processor =
         {.fast = {6, 3.8, {}, {2, 3}, {}}, .slow = {10, 2.8, {}, {1, 1.5}, {}}, .core_gb_s = 22, .avx_vnni = true}},
    {.name = "m4max-cpu",
     .gpu = "Apple M4 Max (processor), 12 and 4 cores, LPDDR5X",
     .memory_gb_s = 546,
     .memory_share = 0.6,
     .step_us = 0.8,
     .processor = {.fast = {12, 4.3, {4, 4}, {}, {}}, .slow = {4, 2.6, {3, 3}, {}, {}}, .core_gb_s = 80}},
};

constexpr bool processors_come_last() {
  bool seen = false;
  for (const DeviceProfile& each : kProfiles) {
    if (seen && !each.is_processor()) return false;
    seen = each.is_processor();
  }
  return true;
}
static_assert(processors_come_last());

}  // namespace

std::span<const DeviceProfile> device_profiles() {
  return kProfiles;
}

std::span<const DeviceProfile> gpu_profiles() {
  return device_profiles().first(std::size(kProfiles) - processor_profiles().size());
}

std::span<const DeviceProfile> processor_profiles() {
  const auto first = std::ranges::find_if(kProfiles, &DeviceProfile::is_processor);
  return {first, std::end(kProfiles)};
}

const DeviceProfile& device_profile(std::string_view name) {
  const auto found = std::ranges::find(kProfiles, name, &DeviceProfile::name);
  if (found != std::end(kProfiles)) return *found;
  std::string names;
  for (const DeviceProfile& each : kProfiles) names += std::string(each.name) + ", ";
  throw bad_input("There is no profile of a device named '" + printable(name) + "'; allowed: " + names +
                  "gpus, processors, all.");
}

std::span<const DeviceProfile> chosen_profiles(std::string_view name) {
  if (name == "all") return kProfiles;
  if (name == "gpus") return gpu_profiles();
  if (name == "processors") return processor_profiles();
  return {&device_profile(name), 1};
}

namespace {

std::string out_of_range(std::string_view what, double value, std::string_view unit, double least, double most) {
  const auto words = [](double number) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g", number);
    return std::string(text.data());
  };
  if (value >= least && value <= most) return {};  // false for what is no number
  return std::string(what) + " is " + (std::isfinite(value) ? words(value) + " " + std::string(unit) : "no number") +
         "; it must be " + words(least) + " to " + words(most) + ".";
}

}  // namespace

std::string problem_of(const OwnDevice& device) {
  if (device.name.find_first_not_of(' ') == std::string::npos) return "The device needs a name.";
  if (device.name.size() > kLongestOwnName || printable(device.name) != device.name) {
    return "The device's name must have at most " + std::to_string(kLongestOwnName) +
           " bytes, and no signs that cannot be seen.";
  }
  for (const std::string& problem : {out_of_range("Its memory", device.gb_s, "GB/s", 5, 20'000),
                                     out_of_range("Its arithmetic", device.tflops, "TFLOPS", 0.05, 1'000),
                                     out_of_range("A dispatch", device.dispatch_us, "\u00b5s", 0.1, 1'000)}) {
    if (!problem.empty()) return problem;
  }
  return {};
}

DeviceProfile profile_of(const OwnDevice& device) {
  constexpr uint32_t lanes = 128;
  constexpr double usual_clock_ghz = 2;
  const double tops = device.tflops / 2;
  const auto units = static_cast<uint32_t>(std::clamp(std::round(tops * 1e3 / (lanes * usual_clock_ghz)), 1.0, 256.0));
  return {.name = device.name,
          .gpu = device.name,
          .memory_gb_s = device.gb_s,
          .memory_share = 0.9,
          .latency_us = 0.6,
          .cache_latency_us = 0.2,
          .cache_tb_s = std::max(0.1, 3 * device.gb_s / 1e3),
          .cache_mb = 24,
          .local_kb = 64,
          .shared_kb = 64,
          .workgroup_shared_kb = 48,
          .units = units,
          .lanes_a_clock = lanes,
          .resident_lanes = 1536,
          .full_registers = 42,
          .clock_ghz = tops * 1e3 / (units * lanes),
          .step_us = device.dispatch_us,
          .submission_us = 15,
          .round_trip_us = 20,
          .bus_gb_s = 24};
}

}  // namespace canopy::predict

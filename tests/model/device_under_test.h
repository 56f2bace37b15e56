#pragma once
// The device that the tests of passes run on, so that one test body serves the oracle and every backend.
//   CANOPY_TEST_DEVICE   "reference" (default), "reference_i8" (which rounds activations like the kernels matrix_i8),
//                        "cpu" (the processor), "vulkan", "cuda" (a GPU of this machine) or "cuda_host" (the CUDA
//                        backend on a made-up GPU)
//   CANOPY_TEST_KERNELS  the processor's instruction set; empty: the best
//   CANOPY_TEST_CAPABILITY of that GPU: 89 is compute capability 8.9; empty: 90
//   CANOPY_TEST_SELECTOR which Vulkan device; empty: the best. Of CUDA cuda:0, cuda:1, ...; empty: the first
//   CANOPY_TEST_MAX_TILE columns of a matrix product's tile; empty: the device's own choice
//   CANOPY_TEST_PROMPTS  names of generate.json's prompts, with commas between; empty: all. SwiftShader multiplies so
//                        slowly (20 rows of tiny-qwen3 a second) that the suite gives it two.
//   CANOPY_TEST_WIDTHS   widths of passes for the numeric contract, with commas between; empty: all it knows
//   CANOPY_TEST_BUDGETS  budgets of draft trees, with commas between; empty: all that a test knows
//   CANOPY_TEST_KV       "f32" (default), "f16" or "q8_0": type of the K/V cache

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/compute/device.h"

namespace canopy::test {

/// The device; opened once in a process.
Device& device_under_test();

/// Opens the made-up GPU in programs that have one (cuda_host_device.cpp): its kernels take a minute to compile.
extern std::unique_ptr<Device> (*open_made_up_gpu)();

CacheType cache_under_test();

/// Whether this run answers the prompt of generate.json with this name.
bool prompt_under_test(const std::string& name);

/// The widths that the run is restricted to, or `all`.
std::vector<uint32_t> widths_under_test(const std::vector<uint32_t>& all);

/// The budgets of `all` that the run is restricted to.
std::vector<uint32_t> budgets_under_test(const std::vector<uint32_t>& all);

/// How much rounding the cache to f16 (11 bits) may change logits, keys and values, and the residual stream, whose
/// values are some ten times larger. The reference device with an f16 cache stays below half of both.
inline constexpr double kHalfCacheTolerance = 3e-2;
inline constexpr double kHalfCacheHiddenTolerance = 1e-1;

/// How much rounding activations to 8 bits may change logits of a quantized model, which reach from -18 to 16 in the
/// golden file. The reference device that rounds in the same way is off by 0.19, with an f16 cache by 0.26. (Results of
/// two devices differ as much from each other: what is near the boundary of two steps may become either, and all that
/// follows with it.)
inline constexpr double kByteActivationsTolerance = 0.4;

/// How much rounding activations to 16 bits may change logits of a quantized model: those of the tiny ones by 8e-4.
inline constexpr double kShortActivationsTolerance = 2e-3;

/// The golden files' own tolerance for f32 arithmetic, or one of the above for an f16 cache.
inline double tolerance(double f32_tolerance, double f16_tolerance = kHalfCacheTolerance) {
  return cache_under_test() == CacheType::f32 ? f32_tolerance : f16_tolerance;
}

}  // namespace canopy::test

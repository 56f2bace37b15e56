#pragma once
// The device that the tests of passes run on, so that one test body serves the oracle and every backend.
//   CANOPY_TEST_DEVICE   "reference" (default) or "vulkan"
//   CANOPY_TEST_SELECTOR which Vulkan device; empty: the best
//   CANOPY_TEST_KV       "f32" (default) or "f16": type of the K/V cache

#include "engine/compute/device.h"

namespace canopy::test {

/// Opened once per process.
Device& device_under_test();

CacheType cache_under_test();

/// What rounding the cache to f16 (11 bits) may move logits, keys and values by, and the residual stream, whose values
/// are some ten times larger; the oracle with an f16 cache stays below half of either.
inline constexpr double kHalfCacheTolerance = 3e-2;
inline constexpr double kHalfCacheHiddenTolerance = 1e-1;

/// The golden files' own tolerance for f32 arithmetic, or one of those above.
inline double tolerance(double f32_tolerance, double f16_tolerance = kHalfCacheTolerance) {
  return cache_under_test() == CacheType::f32 ? f32_tolerance : f16_tolerance;
}

}  // namespace canopy::test

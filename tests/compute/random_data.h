#pragma once
// Random data from a seed: the same on every device and in every run.

#include <cstdint>
#include <random>
#include <vector>

#include "tests/compute/op_bench.h"

namespace canopy::test {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  /// From 0 to bound - 1.
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(engine_() % bound); }
  /// In [-1, 1), a multiple of 2^-23.
  float value() { return static_cast<float>(static_cast<int32_t>(engine_() >> 8) - (1 << 23)) * 0x1p-23f; }
  std::vector<float> values(size_t count);
  /// Integers from -bound to bound, so that sums of their products are exact in f32 in any order.
  std::vector<float> integers(size_t count, uint32_t bound);

  /// Arbitrary finite blocks of the type, with elements or scales times `scale`.
  FileMatrix matrix(WeightType type, uint32_t rows, uint32_t cols, float scale = 1);
  /// Blocks that decode to integers of magnitude at most 16, or 4096 for K-quants and IQ4.
  FileMatrix integer_matrix(WeightType type, uint32_t rows, uint32_t cols);
  /// Like matrix(), but with subnormal halves: elements of f16, and scales and minima of quantized blocks (MXFP4 has
  /// none).
  FileMatrix subnormal_matrix(WeightType type, uint32_t rows, uint32_t cols);

 private:
  template <class Half, class Value>
  FileMatrix blocks(WeightType type, uint32_t rows, uint32_t cols, Half half, Value value);

  std::mt19937 engine_;
};

}  // namespace canopy::test

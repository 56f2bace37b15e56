#pragma once
// Products with many columns, which are cut into chunks and segments.

#include <algorithm>
#include <vector>

#include "cuda_backend/kernels/params.h"
#include "tests/compute/op_test.h"

namespace canopy::test {

/// A product with a norm at several widths: each row against the same row alone, the last pass against the oracle.
struct DeepCase {
  WeightType type;
  uint32_t rows, cols;
  float scale = 1, last_scale = 1;  // of all rows, and beside that of the last 16

  FileMatrix matrix(Random& random) const {
    FileMatrix all = random.matrix(type, rows, cols, scale);
    if (last_scale == 1) return all;
    const FileMatrix last = random.matrix(type, cuda::kTileRows, cols, scale * last_scale);
    std::ranges::copy(last.data, all.data.end() - static_cast<ptrdiff_t>(last.data.size()));
    return all;
  }
  Results run(Device& device, const std::vector<uint32_t>& which) const {
    OpBench bench(device);
    Random random(rows + cols);
    const Weight* weight = bench.weight(matrix(random));
    const std::vector<float> all = random.values(size_t{pool} * cols);
    std::vector<float> values;
    for (const uint32_t row : which)
      values.insert(values.end(), all.begin() + row * cols, all.begin() + (row + 1) * cols);
    const auto width = static_cast<uint32_t>(which.size());
    const Activations* in = bench.activations(width, cols, values);
    Buffer* out = bench.output(uint64_t{width} * rows);
    bench.run([&](Recorder& r) { r(LinearArgs{width, weight, in, 1e-5f, out, rows, 0}); });
    return {bench.result("out", out, bench.of_products(f32_rounding))};
  }
  static constexpr uint32_t pool = 5;
};

}  // namespace canopy::test

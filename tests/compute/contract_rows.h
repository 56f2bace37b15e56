#pragma once
// For tests of the numeric contract: an op on rows of a pool, alone and together in every width.

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "tests/compute/op_test.h"

namespace canopy::test {

/// Runs an op on the given rows of a pool. Each result is [rows.size(), n].
using RunRows = std::function<Results(Device&, const std::vector<uint32_t>& rows)>;

inline constexpr uint32_t pool = 67;

inline std::vector<uint32_t> contract_widths() {
  std::vector<uint32_t> widths(33);
  std::iota(widths.begin(), widths.end(), 1);
  widths.insert(widths.end(), {40, 47, 64, 65, 96, 130, 257});
  return widths;
}

inline void expect_rows_independent(Device& device, const RunRows& run) {
  std::vector<Results> alone;  // for each row of the pool
  for (uint32_t row = 0; row < pool; ++row) alone.push_back(run(device, {row}));

  for (const uint32_t width : contract_widths()) {
    std::vector<uint32_t> rows(width);
    for (uint32_t w = 0; w < width; ++w) rows[w] = (5 * w + 11 * width) % pool;  // 5 and 67 have no common factor
    const Results together = run(device, rows);
    for (size_t i = 0; i < together.size(); ++i) {
      const size_t size = together[i].words.size() / width;
      for (uint32_t w = 0; w < width; ++w) {
        const std::vector<uint32_t>& single = alone[rows[w]][i].words;
        ASSERT_EQ(single.size(), size);
        const auto [want, have] = std::mismatch(single.begin(), single.end(), together[i].words.begin() + w * size);
        ASSERT_TRUE(want == single.end())
            << together[i].name << ": row " << rows[w] << " of the pool differs at place " << w << " of width " << width
            << ", element " << (want - single.begin()) << ": alone 0x" << std::hex << *want << ", together 0x" << *have;
      }
    }
  }
}

/// The given rows of values [pool, cols].
inline std::vector<float> gather(const std::vector<float>& values, uint32_t cols, const std::vector<uint32_t>& rows) {
  std::vector<float> result;
  for (const uint32_t row : rows) {
    result.insert(result.end(), values.begin() + row * size_t{cols}, values.begin() + (row + 1) * size_t{cols});
  }
  return result;
}

/// The first `words` words, without the guard after them.
inline Result trimmed(Result result, size_t words) {
  result.words.resize(words);
  return result;
}

class ContractTest : public OpTest {};

}  // namespace canopy::test

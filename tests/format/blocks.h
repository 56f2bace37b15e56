#pragma once
// Blocks of quantized types made by hand, and checks of what they decode to.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"
#include "tests/format/gguf_builder.h"

namespace canopy::test {

/// The two bytes of a value as an f16.
inline std::string half(float value) {
  return le(f32_to_f16(value));
}

/// The same byte `count` times.
inline std::string bytes(size_t count, int value) {
  return std::string(count, static_cast<char>(value));
}

/// `block` with another byte at `at`.
inline std::string with_byte(std::string block, size_t at, int value) {
  block.at(at) = static_cast<char>(value);
  return block;
}

/// The elements of one or more blocks; fails the test unless `block` is a whole number of blocks.
inline std::vector<float> decode(TensorType type, const std::string& block) {
  const TensorTypeInfo& info = tensor_type_info(type);
  EXPECT_EQ(block.size() % info.block_bytes, 0u) << info.name;
  std::vector<float> out(block.size() / info.block_bytes * info.block_elements);
  dequantize(type, as_bytes(block), out);
  return out;
}

/// The indices at which two results differ in any bit.
inline std::vector<size_t> differences(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<size_t> result;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b.at(i))) result.push_back(i);
  }
  return result;
}

/// Checks that every element of the block is exactly `value`.
inline void expect_all(TensorType type, const std::string& block, float value) {
  const std::vector<float> out = decode(type, block);
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], value) << to_string(type) << " element " << i;
}

/// Checks that replacing the byte at `at` by `value` changes exactly the elements `changed`.
inline void expect_changes(TensorType type, const std::string& block, size_t at, int value,
                           const std::vector<size_t>& changed) {
  EXPECT_EQ(differences(decode(type, block), decode(type, with_byte(block, at, value))), changed)
      << to_string(type) << " byte " << at;
}

}  // namespace canopy::test

#include "engine/compute/kv_slots.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "engine/base/error.h"
#include "engine/base/numbers.h"

namespace canopy {
namespace {

constexpr uint16_t kHalfNan = 0x7E00;
constexpr uint16_t kHalfInfinity = 0x7C00;
constexpr uint8_t kZeroCode = 128;

uint64_t slot_elements(const KvShape& shape) {
  return uint64_t{shape.kv_heads} * shape.head_dim;
}

/// Halves that a head's scales take, up to a whole word.
uint32_t head_scales(const KvShape& shape) {
  return (shape.head_dim / kKvBlock + 1) / 2 * 2;
}

using BlockValues = std::span<const float, kKvBlock>;

uint16_t scale_of(BlockValues values) {
  uint32_t largest = 0;  // as bits, so that a NaN is larger than any number
  for (const float v : values) largest = std::max(largest, std::bit_cast<uint32_t>(v) & 0x7FFFFFFFu);
  const float inverse = std::bit_cast<float>(0x3C010204u);  // 1/127
  const uint16_t scale = f32_to_f16(std::bit_cast<float>(largest) * inverse);
  return largest >= 0x7F800000u || scale >= kHalfInfinity ? kHalfNan : scale;
}

/// The quotient of a float and a half has less than 53 bits between it and the next k - 1/2, so that doubles decide
/// as exact numbers would.
uint8_t code_of(float value, float scale) {
  const auto magnitude = static_cast<int>(std::min(std::floor(double{std::abs(value)} / scale + 0.5), 127.0));
  return static_cast<uint8_t>(kZeroCode + (value < 0 ? -magnitude : magnitude));
}

void encode_block(BlockValues values, std::byte* codes, std::byte* scale) {
  const uint16_t half = scale_of(values);
  std::memcpy(scale, &half, sizeof half);
  const bool has_codes = half != 0 && half != kHalfNan;
  for (size_t i = 0; i < kKvBlock; ++i) {
    codes[i] = std::byte{has_codes ? code_of(values[i], f16_to_f32(half)) : kZeroCode};
  }
}

void decode_block(const std::byte* codes, const std::byte* scale, float* values) {
  uint16_t half = 0;
  std::memcpy(&half, scale, sizeof half);
  for (size_t i = 0; i < kKvBlock; ++i) {
    values[i] = static_cast<float>(std::to_integer<int>(codes[i]) - kZeroCode) * f16_to_f32(half);
  }
}

/// Calls `each` with the first element of a block in its slot and the byte of its scale.
template <class F>
void for_blocks(const KvShape& shape, F each) {
  for (uint32_t head = 0; head < shape.kv_heads; ++head) {
    for (uint32_t d = 0; d < shape.head_dim; d += kKvBlock) {
      each(size_t{head} * shape.head_dim + d,
           slot_elements(shape) + (size_t{head} * head_scales(shape) + d / kKvBlock) * sizeof(uint16_t));
    }
  }
}

}  // namespace

void check_keeps_heads(CacheType type, uint32_t head_dim) {
  if (keeps_heads(type, head_dim)) return;
  throw bad_input("K/V heads of " + std::to_string(head_dim) + " elements cannot be kept in " + to_string(type) +
                  ", which has blocks of " + std::to_string(kKvBlock) + ": allowed are multiples of " +
                  std::to_string(kKvBlock) + ". f16 and f32 take heads of this size.");
}

void check_latent_values(const KvShape& shape) {
  if (shape.latent_values % 4 == 0 && shape.latent_values <= shape.head_dim) return;
  throw bad_input("A latent cache has values of " + std::to_string(shape.latent_values) + " elements in keys of " +
                  std::to_string(shape.head_dim) + "; allowed: multiples of 4, up to the keys' own.");
}

uint64_t slot_bytes(const KvShape& shape) {
  switch (shape.type) {
    case CacheType::f32: return slot_elements(shape) * sizeof(float);
    case CacheType::f16: return slot_elements(shape) * sizeof(uint16_t);
    case CacheType::q8_0: break;
  }
  const uint64_t bytes = slot_elements(shape) + uint64_t{shape.kv_heads} * head_scales(shape) * sizeof(uint16_t);
  return (bytes + 15) / 16 * 16;
}

double mean_element_bytes(const KvShape& shape) {
  return static_cast<double>(slot_bytes(shape)) / static_cast<double>(slot_elements(shape));
}

std::vector<std::byte> encode_slots(const KvShape& shape, std::span<const float> values) {
  const size_t elements = slot_elements(shape), bytes = slot_bytes(shape);
  if (values.size() % elements != 0) throw bad_input("What is written to a K/V cache is no whole number of slots.");
  std::vector<std::byte> result(values.size() / elements * bytes);
  if (shape.type == CacheType::f32) {
    std::memcpy(result.data(), values.data(), result.size());
  } else if (shape.type == CacheType::f16) {
    std::vector<uint16_t> halves(values.size());
    std::ranges::transform(values, halves.begin(), f32_to_f16);
    std::memcpy(result.data(), halves.data(), result.size());
  } else {
    for (size_t slot = 0; slot < values.size() / elements; ++slot) {
      std::byte* to = result.data() + slot * bytes;
      for_blocks(shape, [&](size_t first, size_t scale) {
        encode_block(values.subspan(slot * elements + first).first<kKvBlock>(), to + first, to + scale);
      });
    }
  }
  return result;
}

std::vector<float> decode_slots(const KvShape& shape, std::span<const std::byte> data) {
  const size_t elements = slot_elements(shape), bytes = slot_bytes(shape);
  if (data.size() % bytes != 0) throw bad_input("What is read of a K/V cache is no whole number of slots.");
  std::vector<float> result(data.size() / bytes * elements);
  if (shape.type == CacheType::f32) {
    std::memcpy(result.data(), data.data(), data.size());
  } else if (shape.type == CacheType::f16) {
    std::vector<uint16_t> halves(result.size());
    std::memcpy(halves.data(), data.data(), data.size());
    std::ranges::transform(halves, result.begin(), f16_to_f32);
  } else {
    for (size_t slot = 0; slot < data.size() / bytes; ++slot) {
      const std::byte* from = data.data() + slot * bytes;
      for_blocks(shape, [&](size_t first, size_t scale) {
        decode_block(from + first, from + scale, result.data() + slot * elements + first);
      });
    }
  }
  return result;
}

}  // namespace canopy

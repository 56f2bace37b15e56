#include "engine/vulkan/block_codes.h"

#include <cstring>

#include "engine/base/half.h"
#include "engine/format/packed_scales.h"

namespace canopy::vk {

namespace {

uint32_t byte_at(const std::byte* from, uint32_t i) {
  return std::to_integer<uint32_t>(from[i]);
}

uint16_t half_at(const std::byte* from) {
  uint16_t value;
  std::memcpy(&value, from, 2);
  return value;
}

uint32_t word_at(const std::byte* from) {
  uint32_t value;
  std::memcpy(&value, from, 4);
  return value;
}

// Sixteen bytes: element j in the low half of byte j, element j + 16 in the high half.
void read_nibbles_32(const std::byte* from, uint8_t* codes) {
  for (uint32_t j = 0; j < 16; ++j) {
    codes[j] = byte_at(from, j) & 15;
    codes[j + 16] = static_cast<uint8_t>(byte_at(from, j) >> 4);
  }
}

// Bytes in runs of 32: the low halves are elements 0 ... 31 of 64, the high halves the next 32.
void read_nibbles_256(const std::byte* from, uint8_t* codes) {
  for (uint32_t e = 0; e < 256; ++e) codes[e] = (byte_at(from, e / 64 * 32 + e % 32) >> (e % 64 / 32 * 4)) & 15;
}

// f16 scale [and minimum, Q5_1], 32 upper bits, 16 bytes of nibbles. Q5_0 is centred: its minimum is -16 scales.
void read_q5(const std::byte* from, bool has_minimum, BlockCodes& out) {
  const uint16_t scale = half_at(from);
  const uint16_t minimum = has_minimum ? half_at(from + 2) : f32_to_f16(-16.0f * f16_to_f32(scale));
  from += has_minimum ? 4 : 2;
  out.scales[0] = scale | uint32_t{minimum} << 16;
  read_nibbles_32(from + 4, out.codes.data());
  const uint32_t upper = word_at(from);
  for (uint32_t e = 0; e < 32; ++e) out.codes[e] |= static_cast<uint8_t>((upper >> e & 1) << 4);
}

// 16 bytes (scale in the low half, minimum in the high half, per 16 elements), 64 bytes of codes, two f16. Codes: of
// 128 elements, element 32 j + l is bits 2 j of byte l.
void read_q2_k(const std::byte* from, BlockCodes& out) {
  for (uint32_t b = 0; b < 8; ++b) out.scales[b] = byte_at(from, 2 * b) | byte_at(from, 2 * b + 1) << 8;
  for (uint32_t e = 0; e < 256; ++e) {
    out.codes[e] = (byte_at(from, 16 + e / 128 * 32 + e % 32) >> (e % 128 / 32 * 2)) & 3;
  }
  out.factor = word_at(from + 80);
}

// 32 bytes of upper bits (element e is bit e / 32 of byte e % 32; set means the code is not lowered by 4), 64 bytes of
// codes as in Q2_K, 12 bytes of sixteen 6-bit scales (low halves in 8 bytes, upper two bits in 4), f16.
void read_q3_k(const std::byte* from, BlockCodes& out) {
  const std::byte* scales = from + 96;
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t low = byte_at(scales, i % 8) >> (i / 8 * 4) & 15;
    const uint32_t high = byte_at(scales, 8 + i % 4) >> (i / 4 * 2) & 3;
    uint32_t& word = out.scales[i / 2];
    word = (i % 2 == 0 ? 0 : word) | (low | high << 4) << (8 * (i % 2));
  }
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t low = byte_at(from, 32 + e / 128 * 32 + e % 32) >> (e % 128 / 32 * 2) & 3;
    const uint32_t high = byte_at(from, e % 32) >> (e / 32) & 1;
    out.codes[e] = static_cast<uint8_t>(low | high << 2);
  }
  out.factor = half_at(from + 108);
}

void read_scale_pairs(const std::byte* from, BlockCodes& out) {
  std::array<uint8_t, 12> bytes;
  std::memcpy(bytes.data(), from, bytes.size());
  const ScalesAndMinimums pairs = unpack_scales(bytes);
  for (uint32_t b = 0; b < 8; ++b) out.scales[b] = pairs.scales[b] | uint32_t{pairs.minimums[b]} << 8;
}

// Two f16, 12 bytes of scale pairs (engine/format/packed_scales.h), 128 bytes of nibbles.
void read_q4_k(const std::byte* from, BlockCodes& out) {
  out.factor = word_at(from);
  read_scale_pairs(from + 4, out);
  read_nibbles_256(from + 16, out.codes.data());
}

// As Q4_K, with 32 bytes of upper bits before the nibbles: element e is bit e / 32 of byte e % 32.
void read_q5_k(const std::byte* from, BlockCodes& out) {
  out.factor = word_at(from);
  read_scale_pairs(from + 4, out);
  read_nibbles_256(from + 48, out.codes.data());
  for (uint32_t e = 0; e < 256; ++e) {
    out.codes[e] |= static_cast<uint8_t>((byte_at(from, 16 + e % 32) >> (e / 32) & 1) << 4);
  }
}

// 128 bytes of nibbles (of 128 elements, 0 ... 63 are the low halves of 64 bytes, the others the high halves), 64 bytes
// of upper bits (element e of 128 is bits 2 (e / 32) of byte e % 32), 16 signed scales, f16.
void read_q6_k(const std::byte* from, BlockCodes& out) {
  for (uint32_t e = 0; e < 256; ++e) {
    const uint32_t in = e % 128;
    const uint32_t low = byte_at(from, e / 128 * 64 + in % 64) >> (in / 64 * 4) & 15;
    const uint32_t high = byte_at(from, 128 + e / 128 * 32 + in % 32) >> (in / 32 * 2) & 3;
    out.codes[e] = static_cast<uint8_t>(low | high << 4);
  }
  for (uint32_t b = 0; b < 8; ++b) out.scales[b] = byte_at(from, 192 + 2 * b) | byte_at(from, 193 + 2 * b) << 8;
  out.factor = half_at(from + 208);
}

// f16, 16 bits of upper scale bits, 4 bytes of their low halves, 128 bytes of nibbles, 16 to 32 elements.
void read_iq4_xs(const std::byte* from, BlockCodes& out) {
  out.factor = half_at(from);
  const uint32_t upper = half_at(from + 2);
  for (uint32_t b = 0; b < 8; ++b) {
    out.scales[b] = (byte_at(from, 4 + b / 2) >> (b % 2 * 4) & 15) | (upper >> (2 * b) & 3) << 4;
    read_nibbles_32(from + 8 + 16 * b, out.codes.data() + 32 * b);
  }
}

}  // namespace

void read_block(WeightType type, const std::byte* from, BlockCodes& out) {
  out.factor = 0;
  switch (type) {
    case WeightType::q5_0: return read_q5(from, false, out);
    case WeightType::q5_1: return read_q5(from, true, out);
    case WeightType::q2_k: return read_q2_k(from, out);
    case WeightType::q3_k: return read_q3_k(from, out);
    case WeightType::q4_k: return read_q4_k(from, out);
    case WeightType::q5_k: return read_q5_k(from, out);
    case WeightType::q6_k: return read_q6_k(from, out);
    case WeightType::iq4_xs: return read_iq4_xs(from, out);
    case WeightType::iq4_nl:  // f16 scale, nibbles
      out.scales[0] = half_at(from);
      return read_nibbles_32(from + 2, out.codes.data());
    case WeightType::mxfp4:  // exponent, nibbles
      out.scales[0] = byte_at(from, 0);
      return read_nibbles_32(from + 1, out.codes.data());
    case WeightType::f32:
    case WeightType::f16:
    case WeightType::bf16:
    case WeightType::q8_0:
    case WeightType::q4_0:
    case WeightType::q4_1: return;
  }
}

}  // namespace canopy::vk

#include "engine/format/random_tensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "engine/base/error.h"
#include "engine/base/half.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

/// Sebastiano Vigna's splitmix64: each call gives 64 random bits.
class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Uniform in [low, high).
  float between(float low, float high) { return low + (high - low) * static_cast<float>(next() >> 40) * 0x1p-24f; }
  void fill(std::span<std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
      const uint64_t bits = next();
      std::memcpy(bytes.data() + i, &bits, std::min(sizeof bits, bytes.size() - i));
    }
  }

 private:
  uint64_t state_;
};

constexpr float kSpread = 0.035f;  // uniform in +-kSpread: 0.02 on average (root mean square)

void put_half(std::byte* at, float value) {
  const uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof half);
}

/// The scales of a block whose codes are random bytes already; `vary` is about 1. Codes go from 0 to 15 (Q4), 31 (Q5)
/// and so on; each scale is kSpread over the largest distance from their middle, in the types with scales of scales
/// over a usual one.
void put_scales(TensorType type, float vary, std::byte* block) {
  const float spread = kSpread * vary;
  switch (type) {
    case TensorType::q8_0: put_half(block, spread / 127); return;
    case TensorType::q4_0: put_half(block, spread / 8); return;
    case TensorType::q5_0: put_half(block, spread / 16); return;
    case TensorType::q4_1:
      put_half(block, spread / 8);
      put_half(block + 2, -spread * 7.5f / 8);
      return;
    case TensorType::q4_k:  // value = d * scale * code - dmin * minimum, scale and minimum of 6 bits
      put_half(block, spread / (12 * 31.5f));
      put_half(block + 2, spread * 7.5f / (12 * 31.5f));
      return;
    case TensorType::q6_k:  // 128 + 64 bytes of codes, 16 signed scales, d: scales of -8 to 7
      for (int i = 0; i < 16; ++i) {
        block[192 + i] = static_cast<std::byte>((std::to_integer<int>(block[192 + i]) & 15) - 8);
      }
      put_half(block + 208, spread / (32 * 5));
      return;
    default: break;
  }
  throw bad_input("There are no random weights of type " + std::string(to_string(type)) +
                  "; allowed: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q4_K, Q6_K.");
}

template <class Element, class Convert>
void fill_floats(RandomBits& random, std::span<std::byte> bytes, Convert&& convert) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Element)) {
    const Element value = convert(random.between(-kSpread, kSpread));
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

TensorView view_of(const RequiredTensor& wanted, TensorType type) {
  TensorView tensor;
  tensor.name = wanted.name;
  tensor.type = type;
  tensor.rank = wanted.rows == 1 ? 1 : 2;
  tensor.shape = {wanted.rows, wanted.cols};
  if (tensor.rank == 1) tensor.shape = {wanted.cols};
  return tensor;
}

/// Bytes of a matrix; its rows must be whole blocks.
uint64_t matrix_bytes(const TensorView& tensor) {
  (void)tensor_bytes(tensor.type, tensor.cols(), "row of " + tensor.name);
  return tensor_bytes(tensor.type, tensor.elements(), tensor.name);
}

/// Multiples of it are whole pages and whole blocks.
uint64_t step_of(TensorType type) {
  return std::lcm<uint64_t>(RepeatedBytes::page(), tensor_type_info(type).block_bytes);
}

}  // namespace

void fill_random_blocks(TensorType type, uint64_t seed, std::span<std::byte> blocks) {
  const uint32_t each = tensor_type_info(type).block_bytes;
  if (blocks.size() % each != 0) {
    throw bad_input("Random weights of type " + std::string(to_string(type)) + " were to fill " +
                    std::to_string(blocks.size()) + " bytes; allowed: multiples of " + std::to_string(each) + ".");
  }
  RandomBits random(seed);
  switch (type) {
    case TensorType::f32: return fill_floats<float>(random, blocks, [](float value) { return value; });
    case TensorType::f16: return fill_floats<uint16_t>(random, blocks, f32_to_f16);
    case TensorType::bf16: return fill_floats<uint16_t>(random, blocks, f32_to_bf16);
    default: break;
  }
  random.fill(blocks);
  for (size_t at = 0; at < blocks.size(); at += each) {
    put_scales(type, random.between(0.8f, 1.2f), blocks.data() + at);
  }
}

RandomTensors::RandomTensors(std::span<const RequiredTensor> wanted, const TypeOfTensor& type_of) {
  std::map<TensorType, uint64_t> largest;
  uint64_t longest_norm = 0;
  for (const RequiredTensor& one : wanted) {
    const bool is_norm = one.rows == 1;
    const TensorView& tensor = tensors_.emplace_back(
        view_of(one, is_norm || one.name.ends_with(".bias") ? TensorType::f32 : type_of(one.name, one.cols)));
    if (is_norm) longest_norm = std::max(longest_norm, one.cols);
    if (!is_norm) largest[tensor.type] = std::max(largest[tensor.type], matrix_bytes(tensor));
  }
  std::map<TensorType, uint64_t> patterns;  // bytes
  for (const auto& [type, bytes] : largest) {
    const uint64_t step = step_of(type);
    patterns[type] = (std::min(bytes, kPattern) + step - 1) / step * step;
    std::vector<std::byte> pattern(patterns[type]);
    fill_random_blocks(type, 1 + static_cast<uint64_t>(type), pattern);
    bytes_[type] = RepeatedBytes(pattern, bytes + pattern.size());
  }
  ones_.assign(longest_norm, 1.0f);
  minus_ones_.assign(longest_norm, -1.0f);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorView& tensor = tensors_[i];
    if (tensor.rank == 1) {
      const std::vector<float>& values = tensor.name.ends_with(".ssm_a") ? minus_ones_ : ones_;
      tensor.bytes = std::as_bytes(std::span(values).first(tensor.cols()));
      continue;
    }
    const uint64_t step = step_of(tensor.type);
    const uint64_t begin = i * 7919 % (patterns[tensor.type] / step) * step;
    tensor.bytes = bytes_[tensor.type].bytes().subspan(begin, matrix_bytes(tensor));
  }
}

}  // namespace canopy

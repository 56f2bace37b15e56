#pragma once
// Scales that a safetensors file stores as floats of some kind, read one at a time.

#include <cmath>
#include <cstring>

#include "engine/base/half.h"
#include "engine/format/tensor_view.h"

namespace canopy {

class StoredScales {
 public:
  /// F32, F16, BF16 and F8_E8M0, which is a power of two.
  static bool can_read(TensorType type) {
    return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16 ||
           type == TensorType::f8_e8m0;
  }

  explicit StoredScales(const TensorView& tensor) : type_(tensor.type), bytes_(tensor.bytes) {}

  float operator[](uint64_t i) const {
    switch (type_) {
      case TensorType::f16: return f16_to_f32(word<uint16_t>(i));
      case TensorType::bf16: return bf16_to_f32(word<uint16_t>(i));
      case TensorType::f8_e8m0: return power_of_two(word<uint8_t>(i));
      default: return word<float>(i);
    }
  }

  /// The bits of an element of 16.
  uint16_t bits(uint64_t i) const { return word<uint16_t>(i); }

  TensorType type() const { return type_; }

 private:
  template <class Word>
  Word word(uint64_t i) const {
    Word result;
    std::memcpy(&result, bytes_.data() + i * sizeof result, sizeof result);
    return result;
  }

  static float power_of_two(uint8_t code) { return code == 255 ? NAN : std::ldexp(1.0f, code - 127); }

  TensorType type_;
  std::span<const std::byte> bytes_;
};

}  // namespace canopy

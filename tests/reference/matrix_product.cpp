#include "tests/reference/matrix_product.h"

#include <algorithm>
#include <cmath>

// The loop below is most of what tests on the oracle take. Wider registers halve its time and change no bit: a product
// of two floats is exact in double, and the order of the additions stays.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CANOPY_WIDE_REGISTERS [[gnu::target_clones("avx2", "default")]]
#else
#define CANOPY_WIDE_REGISTERS
#endif

namespace canopy::reference {

CANOPY_WIDE_REGISTERS
double dot(const float* a, const float* b, uint32_t count) {
  // Eight independent sums: with a single one, each addition would have to wait for the one before.
  constexpr uint32_t chains = 8;
  double partial[chains] = {};
  uint32_t k = 0;
  for (; k + chains <= count; k += chains) {
    for (uint32_t c = 0; c < chains; ++c) partial[c] += double{a[k + c]} * double{b[k + c]};
  }
  double sum = 0;
  for (const double p : partial) sum += p;
  for (; k < count; ++k) sum += double{a[k]} * double{b[k]};
  return sum;
}

namespace {
constexpr float kRounding = 0x1.8p23f;  // a sum with it is rounded to a whole number, ties to even
}

void round_to_8_bits(float* values, uint32_t count) {
  for (uint32_t first = 0; first < count; first += 32) {
    const uint32_t block = std::min(32u, count - first);
    float* const x = values + first;
    float largest = 0;
    for (uint32_t i = 0; i < block; ++i) {
      largest = std::isnan(x[i]) || std::isnan(largest) ? NAN : std::max(largest, std::abs(x[i]));
    }
    if (largest < 0x1p-100f) largest = 0;
    const float step = largest * (1.0f / 127.0f), inverse = largest == 0 ? 0 : 127.0f / largest;
    for (uint32_t i = 0; i < block; ++i) x[i] = step * (std::fma(x[i], inverse, kRounding) - kRounding);
  }
}

ProductInput::ProductInput(const HostActivations& in, uint32_t w, float eps, const HostWeight& weight)
    : weight_(weight), row_(in.row(w)), scale_(in.norm_scale(w, eps)) {
  if (!weight.rounds_to_8_bits) return;
  for (uint32_t k = 0; k < in.cols(); ++k) rounded_.push_back(row_[k] * static_cast<float>(scale_));
  round_to_8_bits(rounded_.data(), in.cols());
  row_ = rounded_.data();
  scale_ = 1;
}

}  // namespace canopy::reference

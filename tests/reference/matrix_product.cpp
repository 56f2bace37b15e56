#include "tests/reference/matrix_product.h"

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

}  // namespace canopy::reference

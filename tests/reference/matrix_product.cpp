#include "tests/reference/matrix_product.h"

namespace canopy::reference {

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

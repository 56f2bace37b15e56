// counts[l] = bits set in touched[l]; touched[l] = 0

#include <bit>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const CountExpertsArgs& args) {
  check_experts(args.experts, "count_experts");
  const uint32_t words = args.experts.touched_words();
  const auto touched = elements<uint32_t>(args.touched, uint64_t{args.layers} * words, "count_experts: touched");
  const auto counts = elements<uint32_t>(args.counts, args.layers, "count_experts: counts");
  for (uint32_t l = 0; l < args.layers; ++l) {
    counts[l] = 0;
    for (uint32_t i = 0; i < words; ++i) {
      uint32_t& word = touched[size_t{l} * words + i];
      counts[l] += static_cast<uint32_t>(std::popcount(word));
      word = 0;
    }
  }
}

}  // namespace canopy::reference

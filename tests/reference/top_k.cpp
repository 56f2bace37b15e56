// ids[w], values[w] = the k largest logits, largest first, ties by the lowest id
// log_sum_exp[w] = log sum_v exp(logits[w, v]), taken relative to the largest logit

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  if (std::isinf(largest)) return largest;  // nothing but -inf, or a +inf that outweighs the rest
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

}  // namespace

void top_k(const TopKArgs& args) {
  require(args.k >= 1 && args.k <= kMaxTopK && args.k <= args.vocab, "top_k: k lies outside 1 to min(64, vocab).");
  const auto all = elements<float>(args.logits, uint64_t{args.width} * args.vocab, "top_k: logits");
  const auto ids = elements<uint32_t>(args.ids, uint64_t{args.width} * args.k, "top_k: ids");
  const auto values = elements<float>(args.values, uint64_t{args.width} * args.k, "top_k: values");
  const auto sums = elements<float>(args.log_sum_exp, args.width, "top_k: log_sum_exp");

  std::vector<uint32_t> order(args.vocab);
  for (uint32_t w = 0; w < args.width; ++w) {
    const auto logits = all.subspan(size_t{w} * args.vocab, args.vocab);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + args.k, order.end(),
                      [&](uint32_t a, uint32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    for (uint32_t i = 0; i < args.k; ++i) {
      ids[size_t{w} * args.k + i] = order[i];
      values[size_t{w} * args.k + i] = logits[order[i]];
    }
    sums[w] = static_cast<float>(log_sum_exp(logits));
  }
}

}  // namespace canopy::reference

// y = softcap * tanh(multiplier * logit / softcap), or multiplier * logit where softcap is 0, rounded to f32
// ids, values of row first_out + w = the k largest y of row w, largest first, ties by the lowest id
// log_sum_exp[first_out + w] = log sum_v exp(y[w, v]), taken relative to the largest y

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

std::vector<float> capped(std::span<const float> logits, double multiplier, double softcap) {
  std::vector<float> y(logits.begin(), logits.end());
  if (multiplier == 1 && softcap == 0) return y;
  for (float& x : y) {
    const double scaled = multiplier * x;
    x = static_cast<float>(softcap > 0 ? softcap * std::tanh(scaled / softcap) : scaled);
  }
  return y;
}

}  // namespace

template <>
void compute(const TopKArgs& args) {
  require(args.k >= 1 && args.k <= kMaxTopK && args.k <= args.vocab, "top_k: k lies outside 1 to min(64, vocab).");
  const auto all = elements<float>(args.logits, uint64_t{args.width} * args.vocab, "top_k: logits");
  require(std::isfinite(args.multiplier) && args.multiplier != 0, "top_k: the multiplier is 0 or not finite.");
  require(std::isfinite(args.softcap) && args.softcap >= 0, "top_k: the softcap is negative or not finite.");
  const uint64_t end = uint64_t{args.first_out} + args.width;
  const auto ids = elements<uint32_t>(args.ids, end * args.k, "top_k: ids");
  const auto values = elements<float>(args.values, end * args.k, "top_k: values");
  const auto sums = elements<float>(args.log_sum_exp, end, "top_k: log_sum_exp");

  std::vector<uint32_t> order(args.vocab);
  for (uint32_t w = 0; w < args.width; ++w) {
    const size_t out = size_t{args.first_out} + w;
    const std::vector<float> logits =
        capped(all.subspan(size_t{w} * args.vocab, args.vocab), args.multiplier, args.softcap);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + args.k, order.end(),
                      [&](uint32_t a, uint32_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    for (uint32_t i = 0; i < args.k; ++i) {
      ids[out * args.k + i] = order[i];
      values[out * args.k + i] = logits[order[i]];
    }
    sums[out] = static_cast<float>(log_sum_exp(logits));
  }
}

}  // namespace canopy::reference

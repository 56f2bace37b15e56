#include "engine/speculation/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/error.h"

namespace canopy {

TokenLogprobs logprobs_of(std::span<const float> logits, uint32_t token, uint32_t count) {
  if (token >= logits.size()) {
    throw bad_input("The log probability of token " + std::to_string(token) + " was asked for; the row has " +
                    std::to_string(logits.size()) + " logits.");
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float highest = -infinity;
  for (const float logit : logits) {
    if (!(logit < infinity)) {  // NaN too
      throw bad_input("A logit is " + std::to_string(logit) +
                      "; the model's output is broken (its file may be damaged).");
    }
    highest = std::max(highest, logit);
  }
  if (highest == -infinity) throw bad_input("All logits of a row are -inf: no token has a probability.");
  // In the order of the ids, so that the sum has the same bits each time.
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - double{highest});
  const double log_sum = std::log(sum);
  const auto at = [&](uint32_t id) {
    return TokenLogprob{id, std::min(0.0, double{logits[id]} - double{highest} - log_sum)};
  };
  TokenLogprobs found{at(token), {}};
  const auto is_likelier = [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; };
  std::vector<uint32_t> best;  // the likeliest first, of equal ones the first
  for (uint32_t id = 0; id < logits.size(); ++id) {
    if (best.size() == count && (count == 0 || !is_likelier(id, best.back()))) continue;
    best.insert(std::ranges::upper_bound(best, id, is_likelier), id);
    if (best.size() > count) best.pop_back();
  }
  for (const uint32_t id : best) found.likeliest.push_back(at(id));
  return found;
}

}  // namespace canopy

#pragma once
// Rows of drafter logits, and the candidates that a device would select from them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "engine/speculation/tree_builder.h"

namespace canopy::test {

/// The k largest logits of each row, largest first, ties by the lowest token.
class Candidates {
 public:
  /// logits [depth, vocab]
  Candidates(std::span<const float> logits, uint32_t vocab, uint32_t k) : depths_(logits.size() / vocab) {
    for (size_t d = 0; d < depths_.size(); ++d) {
      const auto row = logits.subspan(d * vocab, vocab);
      Depth& depth = depths_[d];
      depth.tokens.resize(vocab);
      std::iota(depth.tokens.begin(), depth.tokens.end(), 0u);
      std::sort(depth.tokens.begin(), depth.tokens.end(),
                [&](uint32_t a, uint32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
      const double largest = row[depth.tokens[0]];
      double sum = 0;
      for (const float logit : row) sum += std::exp(double{logit} - largest);
      depth.log_sum_exp = largest + std::log(sum);
      depth.tokens.resize(std::min(k, vocab));
      for (const uint32_t token : depth.tokens) depth.logits.push_back(row[token]);
    }
  }

  /// The first `k` candidates of a depth, counted from 1.
  DepthCandidates at(uint32_t depth, size_t k = SIZE_MAX) const {
    const Depth& found = depths_.at(depth - 1);
    const size_t count = std::min(k, found.tokens.size());
    return {std::span(found.tokens).first(count), std::span(found.logits).first(count), found.log_sum_exp};
  }

  /// The first `k` candidates of each depth.
  std::vector<DepthCandidates> all(size_t k = SIZE_MAX) const {
    std::vector<DepthCandidates> result;
    for (uint32_t depth = 1; depth <= depths_.size(); ++depth) result.push_back(at(depth, k));
    return result;
  }

  uint32_t depths() const { return static_cast<uint32_t>(depths_.size()); }

 private:
  struct Depth {
    std::vector<uint32_t> tokens;
    std::vector<float> logits;
    double log_sum_exp = 0;
  };
  std::vector<Depth> depths_;
};

inline std::vector<float> random_rows(size_t count, unsigned seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = spread * normal(random);
  return logits;
}

/// Builds a tree with `k` candidates for each depth at first, and doubles that whenever the builder asks. Returns how
/// often it asked.
inline int build_asking(TreeBuilder& builder, uint32_t root, const Candidates& candidates, uint32_t vocab,
                        uint32_t budget, uint32_t k) {
  builder.begin(root, candidates.all(k), vocab);
  int asked = 0;
  while (builder.build(budget) == TreeStep::needs_candidates) {
    const uint32_t depth = builder.starved_depth();
    builder.extend(depth, candidates.at(depth, size_t{builder.candidates_at(depth)} * 2));
    ++asked;
  }
  return asked;
}

}  // namespace canopy::test

#pragma once
// Draws a token from one row of logits: what the op `sample` is defined as (engine/compute/ops.h).

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/sampling.h"

namespace canopy {

/// Keeps scratch memory between calls, so it belongs to one thread; no call depends on an earlier one.
class RowSampler {
 public:
  /// The token after a row of logits [vocab]; -inf bans one. kNoToken where an adjusted logit is NaN or +inf and where
  /// every token is banned. `adjustments` name no token twice and none outside the vocabulary; their counts include the
  /// path to the row. words.position is the position of the token that is drawn.
  ///
  /// Order: bias, penalties, temperature, top-k, top-p, min-p, then argmax(log p + G) with Gumbel noise G. top-k keeps
  /// the largest logits; top-p the fewest of them whose probabilities reach its share of what top-k kept. Ties go to
  /// the lowest id.
  uint32_t draw(std::span<const float> logits, const SamplingWords& words,
                std::span<const TokenAdjustment> adjustments);

  /// By how much the last draw preferred a to b, in nats: log p + G of one less that of the other, of logits where the
  /// likeliest is taken. Filters are left aside.
  double lead(uint32_t a, uint32_t b) const;

  /// The logits of the last draw after bias and penalties.
  std::span<const float> adjusted() const { return adjusted_; }

 private:
  struct Candidate {
    float logit = 0;
    uint32_t id = 0;
  };

  uint32_t distance_of(const Candidate& candidate) const;
  void keep_top_k();
  void keep_top_p();
  uint32_t draw_one() const;

  SamplingWords words_;
  float highest_ = 0;
  std::vector<float> adjusted_;        // [vocab]
  std::vector<Candidate> candidates_;  // what the filters have left, by id; the best is always there
};

}  // namespace canopy

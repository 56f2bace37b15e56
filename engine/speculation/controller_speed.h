#pragma once
// The recent speed of drafting rounds relative to autoregressive decoding.

#include <cstdint>

#include "engine/speculation/state_archive.h"

namespace canopy {

/// Ratio of faded sums: tokens that rounds with a draft emitted to the AR rounds that would have fitted in their
/// time. A few assumed rounds of speed-up 1 stand for what is not known yet.
class DraftingSpeed {
 public:
  /// A round with a draft emitted `tokens` in the time of `ar_rounds` AR ones, `distance` tokens of text after
  /// the one before it.
  void learn(double tokens, double ar_rounds, double distance);

  /// Speed-up over autoregressive decoding.
  double mean() const;
  /// The mean and a little more, by how uncertain it is: being wrong about it costs little where it is tried again.
  double hopeful() const;
  double rounds() const { return n_; }

  void archive(StateArchive& archive) {
    for (double* value : {&n_, &tokens_, &time_, &tt_, &tv_, &vv_}) archive.number(*value);
  }

 private:
  double n_ = 0;
  double tokens_ = 0, time_ = 0;
  double tt_ = 0, tv_ = 0, vv_ = 0;  // products of tokens and time
};

/// Weight that older evidence keeps when `distance` tokens of text were written since: text changes with its length,
/// not with the number of drafts. Never below a half, so that a draft after a long pause does not count alone.
double fading_over(double distance, double memory);

}  // namespace canopy

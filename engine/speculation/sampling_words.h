#pragma once
// A user's sampling settings and the text so far, as the host's sampler and the op `sample` read them.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/sampling.h"
#include "engine/speculation/sampling_settings.h"

namespace canopy {

/// The settings in the arithmetic of sampling_arithmetic.h, for the token at `position` of reply `turn`. Throws
/// Error(bad_input) for settings that validate() refuses and for a position of 2^32 or more where a token is drawn.
SamplingWords sampling_words(const SamplingSettings& settings, uint64_t turn = 0, uint64_t position = 0);

/// The adjustments of a text that grows: tokens with a bias and, where a penalty is on, the tokens of the text.
class TokenAdjustments {
 public:
  /// Of an empty text. Throws Error(bad_input) for a bias of a token outside the vocabulary.
  TokenAdjustments(const SamplingSettings& settings, uint32_t vocab_size);

  /// Tokens outside the vocabulary count for nothing.
  void add(uint32_t token);
  void add(std::span<const uint32_t> tokens);
  /// The text is empty again.
  void clear();

  /// Ascending by token.
  std::span<const TokenAdjustment> all() const { return all_; }
  /// Whether any logit may change: without, all() stays empty.
  bool any() const { return counts_ || !biases_.empty(); }

 private:
  uint32_t vocab_size_;
  bool counts_;                          // a penalty is on
  std::vector<TokenAdjustment> biases_;  // ascending, each token once
  std::vector<TokenAdjustment> all_;
};

}  // namespace canopy

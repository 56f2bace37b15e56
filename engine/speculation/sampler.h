#pragma once
// The target's own next token from one row of logits on the host: design.md, section 2, step 4. The result is a pure
// function of (logits, settings, history, turn, position), so it is the same however rounds and batches were formed.
// The op `sample` decides the same on a device, bit for bit.

#include <cstdint>
#include <span>

#include "engine/compute/row_sampler.h"
#include "engine/speculation/sampling_settings.h"
#include "engine/speculation/sampling_words.h"

namespace canopy {

/// Keeps scratch memory between calls, so it belongs to one thread; no call depends on an earlier one.
class Sampler {
 public:
  /// Throws Error(bad_input) for settings that validate() refuses, or a bias for a token outside the vocabulary.
  Sampler(SamplingSettings settings, uint32_t vocab_size);

  /// The next token.
  ///   logits    [vocab_size] of one row; -inf bans a token
  ///   history   the text so far: prompt, reply and, in a tree, the path to the row; read only when a penalty is on
  ///   turn      number of this reply in the conversation: replies under one seed draw independently
  ///   position  of the token to be drawn in its reply, from 0
  /// See RowSampler for the order in which settings apply. Throws Error(bad_input) for NaN or +inf logits, a wrong
  /// count, or when every token is banned.
  uint32_t sample(std::span<const float> logits, std::span<const uint32_t> history, uint64_t turn, uint64_t position);

  const SamplingSettings& settings() const { return settings_; }

 private:
  [[noreturn]] void refuse(std::span<const float> logits) const;

  SamplingSettings settings_;
  uint32_t vocab_size_ = 0;
  TokenAdjustments adjustments_;
  RowSampler rows_;
};

}  // namespace canopy

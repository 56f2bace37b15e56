#pragma once
// The target's own next token from a row of logits, by the sampling settings of a user and the text so far. It is the
// same however rounds and batches were formed, and what the op `sample` decides on a device.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/compute/sampling.h"

namespace canopy {

// The sampling settings of a user; RowSampler says in which order they apply.
struct SamplingSettings {
  float temperature = 0.0f;  // 0 = greedy; otherwise > 0 and finite
  uint32_t top_k = 0;        // 0 = off
  float top_p = 1.0f;        // (0, 1]
  float min_p = 0.0f;        // [0, 1)
  uint64_t seed = 0;
  float repetition_penalty = 1.0f;                     // > 0; 1 = off
  float presence_penalty = 0.0f;                       // [-2, 2]
  float frequency_penalty = 0.0f;                      // [-2, 2]
  std::vector<std::pair<uint32_t, float>> logit_bias;  // token id, added to its logit

  /// Greedy decoding with no bias or penalty: the argmax on the device is the answer.
  bool is_plain_greedy() const {
    return temperature == 0.0f && repetition_penalty == 1.0f && presence_penalty == 0.0f && frequency_penalty == 0.0f &&
           logit_bias.empty();
  }
};

/// Throws Error (bad_input) naming the field, its value and what is allowed.
void validate(const SamplingSettings& settings);

// A user's sampling settings and the text so far, as the host's sampler and the op `sample` read them.

/// The settings in the arithmetic of engine/compute/sampling.h, for the token at `position` of reply `turn`. Throws
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

// The target's own next token from one row of logits on the host: a pure function of (logits, settings, history, turn,
// position). The op `sample` decides the same on a device, bit for bit.

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

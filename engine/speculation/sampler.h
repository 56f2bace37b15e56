#pragma once
// The target's own next token from one row of logits: design.md, section 2, step 4. The result is a pure function of
// (logits, settings, history, turn, position), so it is the same however rounds and batches were formed.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/sampling_settings.h"

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
  /// Order: bias, penalties, temperature, top-k, top-p, min-p, then argmax(log p + G) with Gumbel noise G. Ties go to
  /// the lowest id. Throws Error(bad_input) for NaN or +inf logits, a wrong count, or when every token is banned.
  uint32_t sample(std::span<const float> logits, std::span<const uint32_t> history, uint64_t turn, uint64_t position);

  const SamplingSettings& settings() const { return settings_; }

 private:
  struct Candidate {
    double score = 0;  // (logit - highest) / temperature: log of the unnormalised probability; 0 for the best
    uint32_t id = 0;
  };

  void adjust(std::span<const float> logits, std::span<const uint32_t> history);
  void apply_penalties(std::span<const uint32_t> history);
  void collect(float highest);
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  uint32_t draw(uint64_t turn, uint64_t position) const;

  SamplingSettings settings_;
  uint32_t vocab_size_ = 0;
  std::vector<float> adjusted_;        // [vocab_size] logits after bias and penalties
  std::vector<uint32_t> counts_;       // [vocab_size] all zero between calls
  std::vector<Candidate> candidates_;  // what the filters have left, by id; the best is always there
};

}  // namespace canopy

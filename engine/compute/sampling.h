#pragma once
// What the op `sample` reads from buffers (shaders/sampling.glsl mirrors it). engine/speculation makes it of a user's
// settings and of the text so far.

#include <cstdint>

namespace canopy {

/// Stands for a token where there is none.
inline constexpr uint32_t kNoToken = 0xFFFFFFFF;

/// Distances between logits, after the temperature, count in units of 2^-24 nats; farther than 64 nats is as far as 64.
inline constexpr uint32_t kNat = 1u << 24;
inline constexpr uint32_t kFarthest = 64 * kNat;

/// How a token is chosen, the same for all rows of a pass (uint32 x 16).
struct SamplingWords {
  float inverse_temperature = 0;  // 0: the largest logit wins, and no filter counts; else 2^-100 ... 2^100
  uint32_t top_k = 0;             // 0: off
  uint32_t top_p = 0;             // in units of 2^-32; 0: off
  uint32_t farthest = kNoToken;   // min-p: the largest distance from the best that stays; kNoToken: off
  uint32_t seed[2] = {0, 0};      // low word first, as in the next
  uint32_t turn[2] = {0, 0};      // number of the reply in the conversation
  uint32_t position = 0;          // in the reply, of the token that is drawn after a row without a parent
  float repetition = 1;           // penalties: see adjusted_logit() in engine/compute/sampling_arithmetic.h
  float inverse_repetition = 1;
  float presence = 0;
  float frequency = 0;
  uint32_t adjustments = 0;  // TokenAdjustments that count
  uint32_t unused[2] = {0, 0};
};
static_assert(sizeof(SamplingWords) == 64);

/// A token whose logit is adjusted: it is in the text so far, or has a bias, or both.
struct TokenAdjustment {
  uint32_t token = 0;
  uint32_t count = 0;  // of the token in the text so far, the path to a row not included
  float bias = 0;
};
static_assert(sizeof(TokenAdjustment) == 12);

/// A row after which a token is drawn.
struct SampledRow {
  /// Of the row itself. kNoToken, which only a row without a parent may have: none is drawn after it.
  uint32_t token = 0;
  /// Its parent's place in the list, before its own. kNoToken: the row's token is in the text so far.
  uint32_t parent = kNoToken;
};
static_assert(sizeof(SampledRow) == 8);

}  // namespace canopy

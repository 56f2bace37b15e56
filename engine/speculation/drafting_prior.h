#pragma once
// The assumed acceptance of a drafter that has not drafted yet. With the measured costs of passes it decides whether
// drafting is tried at once, or only when autoregressive decoding has saved up the time that an attempt may lose.

#include <cstdint>

namespace canopy {

/// Tokens that a round of `width` rows is believed to emit, where at most `depths` tokens are drafted. Each next token
/// is believed to be accepted at 0.85: 4.8 tokens of a block of 8 and 6.2 of 16, about what the authors of DFlash
/// measured of theirs on text that suits them, and more than most drafters reach on most texts. Wide trees get no more
/// than a chain: where a wide tree pays, a chain pays already.
double believed_emitted(uint32_t width, uint32_t depths);

}  // namespace canopy

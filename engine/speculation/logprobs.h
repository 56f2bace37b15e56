#pragma once
// Log probabilities of a text's tokens, as the target gives them: at temperature 1, before bias, penalties and filters.

#include <cstdint>
#include <span>
#include <vector>

namespace canopy {

struct TokenLogprob {
  uint32_t token = 0;
  double logprob = 0;  // natural, at most 0; NaN of a text's first token, which nothing comes before
  bool operator==(const TokenLogprob&) const = default;
};

/// Of a token of a text and of those that were likeliest in its place.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> likeliest;  // the largest first, ties by the lowest token
  bool operator==(const TokenLogprobs&) const = default;
};

/// The log softmax of a row of logits [vocab] at `token`, and its `count` largest (all where there are fewer). A
/// function of the row alone: a row has the same bits in every mode, and so have these. Throws bad_input for NaN or
/// +inf logits, for a row of nothing but -inf, and for a token outside the row.
TokenLogprobs logprobs_of(std::span<const float> logits, uint32_t token, uint32_t count);

}  // namespace canopy

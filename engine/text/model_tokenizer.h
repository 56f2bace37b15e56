#pragma once
// The tokenizer that a model file brings.

#include <memory>

#include "engine/text/tokenizer.h"

namespace canopy {

struct TokenizerSource;

/// Builds the tokenizer from what the file holds. Throws Error(bad_input) when it holds none, or one that is not
/// supported or contradicts itself.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerSource& source);

}  // namespace canopy

#pragma once
// Properties that every tokenizer that loads must have, whatever its vocabulary.

#include <string_view>

#include "engine/text/tokenizer.h"

namespace canopy::fuzz {

/// Checks what a tokenizer says about its tokens: the first few hundred, and those with a role.
void check_vocabulary(const Tokenizer& tokenizer);

/// Encodes, decodes and streams a text. Throws what encode() throws.
void check_text(const Tokenizer& tokenizer, std::string_view text);

/// Checks that the control tokens in the ids of spans come only from spans that may contain some: text of other spans
/// never becomes one, alone or together with its neighbours.
void check_special_tokens(const Tokenizer& tokenizer, std::span<const TextSpan> spans);

}  // namespace canopy::fuzz

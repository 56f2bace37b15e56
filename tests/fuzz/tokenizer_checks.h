#pragma once
// What must hold of every tokenizer that loads, whatever its vocabulary.

#include <string_view>

#include "engine/text/tokenizer.h"

namespace canopy::fuzz {

/// What a tokenizer knows of its tokens: the first few hundred, and those with a role.
void check_vocabulary(const Tokenizer& tokenizer);

/// Encodes, decodes and streams a text. Throws what encode() throws.
void check_text(const Tokenizer& tokenizer, std::string_view text);

/// The control tokens in the ids of spans are those that the spans which may hold some have by themselves: no text of
/// the other spans becomes one, alone or with its neighbours.
void check_special_tokens(const Tokenizer& tokenizer, std::span<const TextSpan> spans);

}  // namespace canopy::fuzz

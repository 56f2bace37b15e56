#pragma once
// Pre-tokenizers written out by hand, character by character, from the meaning of their expressions: what the engine's
// regular expressions are compared with.

#include <string_view>
#include <vector>

namespace canopy::fuzz {

/// Whether split_by_hand() knows the pre-tokenizer of that name.
bool is_split_by_hand(std::string_view name);

/// The pieces of a text of valid UTF-8; together they are the whole text.
std::vector<std::string_view> split_by_hand(std::string_view name, std::string_view text);

}  // namespace canopy::fuzz

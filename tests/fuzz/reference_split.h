#pragma once
// Pre-tokenizers written by hand, character by character, according to the meaning of their expressions. The engine's
// regular expressions are compared with them.

#include <string_view>
#include <vector>

namespace canopy::fuzz {

/// The pre-tokenizer that a name, or none, is another word for; names that are none come back as they are.
std::string_view split_name(std::string_view name);

/// Whether split_by_hand() supports this pre-tokenizer.
bool is_split_by_hand(std::string_view name);

/// The pieces of a text, which must be valid UTF-8; joined they are the whole text.
std::vector<std::string_view> split_by_hand(std::string_view name, std::string_view text);

}  // namespace canopy::fuzz

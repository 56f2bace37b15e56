#pragma once
// Short labels for tokens, for one line of text.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/trace/trace_format.h"

namespace canopy::app {

inline constexpr size_t kLongestLabel = 24;  // characters

/// The label of a token, on one line and safe to show: spaces around a word are left out, runs of spaces shown as
/// "·×7", control characters escaped ("
/// "), bytes that form no whole character as "‹E2 82›". Never empty. Longer labels end in an ellipsis after `longest`
/// characters. A token whose text is not known is "#1234", its id; one without an id is "?".
std::string token_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token,
                        size_t longest = kLongestLabel);

/// The label of a token in the tree. As token_label(), but line breaks are kReturnSign, which draw_word() draws, and
/// the spaces after them a number: "\u21b511" for a line break and eleven spaces.
inline constexpr std::string_view kReturnSign = "\u21b5";
std::string tree_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token);

/// The bytes in hexadecimal: "20 6F 72"; after `most` bytes an ellipsis.
std::string token_bytes(std::string_view bytes, size_t most = 8);

/// Number of characters; text must be valid UTF-8.
size_t characters(std::string_view text);
/// The text, or if it is longer than `count` characters its first ones and an ellipsis.
std::string shortened(std::string_view text, size_t count);

}  // namespace canopy::app

#pragma once
// What a token is called where there is room for a word only.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/trace/trace_format.h"

namespace canopy::app {

inline constexpr size_t kLongestLabel = 24;  // characters

/// One line that never acts on its reader: blanks around a word are left out, runs of them shown as "·×7", control
/// characters escaped ("\n"), bytes that are no whole character as "‹E2 82›". Never empty. Beyond longest characters
/// an ellipsis. A token whose text nobody knows goes by its number, "#1234"; one that is not known at all is "?".
std::string token_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token,
                        size_t longest = kLongestLabel);

/// "20 6F 72"; beyond most bytes an ellipsis.
std::string token_bytes(std::string_view bytes, size_t most = 8);

/// Characters of valid UTF-8.
size_t characters(std::string_view text);
/// The first count characters and an ellipsis, or all of a text that is no longer than that.
std::string shortened(std::string_view text, size_t count);

}  // namespace canopy::app

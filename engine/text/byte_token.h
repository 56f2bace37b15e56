#pragma once
// The tokens by which SentencePiece-like vocabularies write spaces (U+2581) and single bytes (<0x0A>).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace canopy {

/// U+2581, which stands for a space.
inline constexpr std::string_view word_mark = "\xE2\x96\x81";

/// The text of a token: marks become spaces.
std::string text_of_marked(std::string_view token);

/// "<0x0A>" -> 10; absent for anything else.
std::optional<uint32_t> byte_of_token(std::string_view token);

}  // namespace canopy

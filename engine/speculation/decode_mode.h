#pragma once
// The four modes of decoding (design.md, section 2).

#include <cstdint>
#include <optional>
#include <string_view>

namespace canopy {

/// The mode of a reply, and of one of its rounds; a round is never `adaptive`.
enum class DecodeMode : uint8_t { ar, chain, tree, adaptive };

std::string_view to_string(DecodeMode mode);

/// The mode of that name; nothing for another name.
std::optional<DecodeMode> decode_mode_of(std::string_view name);

}  // namespace canopy

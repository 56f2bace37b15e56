#pragma once
// Bytes as text: Base64 (RFC 4648, section 4).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace canopy {

std::string encode_base64(std::span<const uint8_t> bytes);

/// The bytes that a text stands for; nothing for a text that is no Base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace canopy

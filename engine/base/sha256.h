#pragma once
// SHA-256 (FIPS 180-4), and Base64 of bytes (RFC 4648).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace canopy {

std::array<uint8_t, 32> sha256(std::string_view bytes);

std::string base64(std::span<const uint8_t> bytes);

}  // namespace canopy

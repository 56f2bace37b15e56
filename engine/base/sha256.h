#pragma once
// SHA-256 (FIPS 180-4).

#include <array>
#include <cstdint>
#include <string_view>

namespace canopy {

std::array<uint8_t, 32> sha256(std::string_view bytes);

}  // namespace canopy

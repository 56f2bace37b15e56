#pragma once
// CRC-32C (Castagnoli; polynomial 0x1EDC6F41, reflected, as in RFC 3720): finds every single flipped bit and every
// burst of up to 32 in a record.

#include <cstddef>
#include <cstdint>
#include <span>

namespace canopy {

uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace canopy

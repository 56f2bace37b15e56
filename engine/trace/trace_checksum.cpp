#include "engine/trace/trace_checksum.h"

#include <array>

#include "engine/base/reader.h"

namespace canopy {
namespace {

constexpr uint32_t reflected_polynomial = 0x82f63b78;
constexpr size_t slices = 8;

/// tables[k][b]: contribution of byte value b to the CRC when k more bytes follow it in the same step.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, slices> made = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? reflected_polynomial : 0);
    made[0][byte] = crc;
  }
  for (size_t k = 1; k < slices; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      made[k][byte] = (made[k - 1][byte] >> 8) ^ made[0][made[k - 1][byte] & 0xff];
    }
  }
  return made;
}();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  uint32_t crc = ~0u;
  // Eight bytes in each step, each byte with its own table, so that the lookups are independent of each other.
  while (reader.remaining() >= slices) {
    const uint64_t step = reader.read<uint64_t>("eight bytes") ^ crc;
    crc = 0;
    for (size_t k = 0; k < slices; ++k) crc ^= tables[slices - 1 - k][(step >> (8 * k)) & 0xff];
  }
  while (reader.remaining() > 0) crc = (crc >> 8) ^ tables[0][(crc ^ reader.read<uint8_t>("a byte")) & 0xff];
  return ~crc;
}

}  // namespace canopy

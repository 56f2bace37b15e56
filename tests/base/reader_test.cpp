#include "engine/base/bytes.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

template <size_t N>
std::span<const std::byte> as_bytes(const std::array<uint8_t, N>& raw) {
  return std::as_bytes(std::span(raw));
}

TEST(Reader, ReadsLittleEndian) {
  const std::array<uint8_t, 14> raw = {0x01, 0x02, 0xff, 0xff, 0xff, 0xff, 0x00,
                                       0x00, 0x80, 0x3f, 'o',  'k',  0xfe, 0x07};
  Reader reader(as_bytes(raw));
  EXPECT_EQ(reader.read<uint16_t>("a"), 0x0201);
  EXPECT_EQ(reader.read<int32_t>("b"), -1);
  EXPECT_EQ(reader.read<float>("c"), 1.0f);
  EXPECT_EQ(reader.text(2, "d"), "ok");
  EXPECT_EQ(reader.read<int8_t>("e"), -2);
  EXPECT_EQ(reader.offset(), 13u);
  EXPECT_EQ(reader.remaining(), 1u);
}

TEST(Reader, NamesOffsetAndFieldAtTheEnd) {
  const std::array<uint8_t, 6> raw = {};
  Reader reader(as_bytes(raw), 100);
  reader.read<uint32_t>("the version");
  test::expect_error("The file ends inside the tensor count at offset 104: 8 bytes are needed, 2 are left.",
                     [&] { reader.read<uint64_t>("the tensor count"); });
  EXPECT_EQ(reader.offset(), 104u) << "a failed read must not move";
}

TEST(Reader, SurvivesAbsurdLengths) {
  const std::array<uint8_t, 2> raw = {1, 2};
  Reader reader(as_bytes(raw));
  reader.read<uint8_t>("x");
  test::expect_error("18446744073709551615 bytes are needed", [&] { reader.bytes(UINT64_MAX, "a string"); });
  EXPECT_EQ(reader.bytes(0, "nothing").size(), 0u);
}

}  // namespace
}  // namespace canopy

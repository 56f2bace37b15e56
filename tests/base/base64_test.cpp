#include "engine/base/bytes.h"

#include <gtest/gtest.h>

namespace canopy {
namespace {

TEST(Base64, GivesTheExamplesOfTheStandard) {
  const auto of = [](std::string_view text) {
    return encode_base64({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foob"), "Zm9vYg==");
  EXPECT_EQ(of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(of("\xff\xfe\xfd"), "//79");
}

TEST(Base64, IsReadStrictly) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_EQ(decode_base64("Zm8="), "fo");
  EXPECT_EQ(decode_base64("Zm9v"), "foo");
  EXPECT_EQ(decode_base64("+/8A"), std::string("\xFB\xFF\0", 3));
  for (const char* wrong : {"Z", "Zm9", "Zm9v=", "Z===", "====", "Zg==Zg==", "Zm 9", "Zm9\xFF"}) {
    EXPECT_FALSE(decode_base64(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace canopy

#include "engine/text/normalizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <random>

namespace canopy {
namespace {

std::string normalize_nfc(std::string_view text) {
  return to_unicode_form(text, UnicodeForm::nfc);
}

TEST(NormalizeNfc, ComposesAcrossTheBoundaryOfAscii) {
  EXPECT_EQ(normalize_nfc("cafe\xCC\x81 x"), "caf\xC3\xA9 x");
  EXPECT_EQ(normalize_nfc("\xCC\x81"), "\xCC\x81");
  EXPECT_EQ(normalize_nfc("e\xCC\x81"), "\xC3\xA9");
  EXPECT_EQ(normalize_nfc("plain"), "plain");
  EXPECT_EQ(normalize_nfc(""), "");
}

TEST(NormalizeNfc, EqualsTheWholeTextNormalisedAtOnce) {
  const char* units[] = {
      "a", "e", " ", "\xCC\x81", "\xCC\xA3", "\xCC\x87", "\xE1\x84\x80", "\xE1\x85\xA1", "\xC3\xA9", "\xE4\xBD\xA0"};
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = random() % 20; n > 0; --n) text += units[random() % std::size(units)];
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> whole(
        utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())), &std::free);
    ASSERT_EQ(normalize_nfc(text), reinterpret_cast<const char*>(whole.get())) << text;
  }
}

TEST(NormalizeNfc, EndlessMarksInTheWrongOrderTakeLinearTime) {
  std::string text = "a";
  for (int i = 0; i < 300'000; ++i) text += i % 2 == 0 ? "\xCC\x81" : "\xCC\xA3";  // classes 230 and 220
  EXPECT_GT(normalize_nfc(text).size(), text.size() / 2);  // a quadratic algorithm would take hours
}

}  // namespace
}  // namespace canopy

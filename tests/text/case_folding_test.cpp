// Searching without regard to case and encoding, and where in the text the match is.

#include "engine/text/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace canopy {
namespace {

/// The first match in the text, or "-".
std::string found(std::string_view text, std::string_view wanted) {
  const auto hit = FoldedText(text).find(FoldedText(wanted));
  return hit ? std::string(text.substr(hit->begin, hit->end - hit->begin)) : "-";
}

TEST(CaseFolding, FindsLettersOfEveryScriptInEitherCase) {
  EXPECT_EQ(found("Привет, мир", "привет"), "Привет");
  EXPECT_EQ(found("да, привет", "ПРИВЕТ"), "привет");
  EXPECT_EQ(found("Äpfel und Öl", "äpfel"), "Äpfel");
  EXPECT_EQ(found("Äpfel und Öl", "ÖL"), "Öl");
  EXPECT_EQ(found("ο ΟΔΥΣΣΕΥΣ!", "οδυσσευς"), "ΟΔΥΣΣΕΥΣ");
  EXPECT_EQ(found("Kueche", "KUECHE"), "Kueche");
  EXPECT_EQ(found("Ընկեր", "ԸՆԿԵՐ"), "Ընկեր");
  EXPECT_EQ(found("漢字", "字"), "字");
  EXPECT_EQ(found("abc", "abd"), "-");
  EXPECT_EQ(found("abc", ""), "-");
}

TEST(CaseFolding, GivesBytesOfTheTextWhereFoldingChangesLengths) {
  EXPECT_EQ(found("xx İstanbul x", "istanbul"), "İstanbul");
  EXPECT_EQ(found("xx İstanbul x", "ISTANBUL X"), "İstanbul x");
  EXPECT_EQ(found("IŞIK", "ışık"), "IŞIK");
  EXPECT_EQ(found("die Straße!", "STRASSE"), "Straße");
  EXPECT_EQ(found("die Straße!", "stras"), "Straß") << "whole characters";
  EXPECT_EQ(found("STRASSE", "straße"), "STRASSE");
  EXPECT_EQ(found("a ﬁne day", "FINE"), "ﬁne");
  const auto hit = FoldedText("ẞẞ Привет").find(FoldedText("привет"));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->begin, 7u);
  EXPECT_EQ(hit->end, 19u);
}

TEST(CaseFolding, TakesBothEncodingsOfAnAccentForTheSameLetterAndAnAccentForAnotherLetter) {
  EXPECT_EQ(found("A\u0308pfel", "äpfel"), "A\u0308pfel");
  EXPECT_EQ(found("Äpfel", "a\u0308PFEL"), "Äpfel");
  EXPECT_EQ(found("e\u0302\u0323x", "\u1EC7X"), "e\u0302\u0323x") << "marks in another order";
  EXPECT_EQ(found("Äpfel", "apfel"), "-");
  EXPECT_EQ(found("A\u0308, a", "a"), "a");
  EXPECT_EQ(found("각", "가"), "-");
  EXPECT_EQ(found("か\u3099", "か"), "-");
}

TEST(CaseFolding, LeavesOutWhatIsNeverSeen) {
  EXPECT_EQ(found("a zu\u00ADsam\u00ADmen b", "ZUSAMMEN"), "zu\u00ADsam\u00ADmen");
  EXPECT_EQ(found("\u2764\uFE0F!", "\u2764!"), "\u2764\uFE0F!");
}

TEST(CaseFolding, GoesOnBehindAMatchAndReadsBytesThatAreNoText) {
  const FoldedText text("Ää \xFF\xFE ÄÄ"), wanted("ä");
  size_t count = 0;
  for (auto hit = text.find(wanted); hit; hit = text.find(wanted, hit->next)) ++count;
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(found("\xFF"
                  "Ab",
                  "aB"),
            "Ab");
  EXPECT_EQ(found("Ab\xC3", "b"), "b");
  EXPECT_LT(fold_case("äa"), fold_case("Äb"));
}

}  // namespace
}  // namespace canopy

// Tables of measurements as text, CSV and Markdown.

#include "engine/base/figures.h"

#include <gtest/gtest.h>

namespace canopy {
namespace {

const TextTable table{{"category", "mode", "x"},
                      {{"code", "ar", "1.50"}, {"maths", "tree", "-"}, {"é", "ar", "12.25"}}};

TEST(TextTable, TextAlignsNumbersRightAndWordsLeft) {
  EXPECT_EQ(as_text(table),
            "category  mode      x\n"
            "code      ar     1.50\n"
            "maths     tree      -\n"
            "é         ar    12.25\n");
}

TEST(TextTable, CsvQuotesOnlyWhatNeedsIt) {
  const TextTable awkward{{"a", "b"}, {{"plain", "with, comma"}, {"with \"quotes\"", "two\nlines"}}};
  EXPECT_EQ(as_csv(awkward), "a,b\r\nplain,\"with, comma\"\r\n\"with \"\"quotes\"\"\",\"two\nlines\"\r\n");
}

TEST(TextTable, MarkdownKeepsACellInItsColumn) {
  const TextTable awkward{{"a", "n"}, {{"x|y", "1"}, {"two\nlines", "-2"}}};
  EXPECT_EQ(as_markdown(awkward),
            "| a | n |\n"
            "|---|---:|\n"
            "| x\\|y | 1 |\n"
            "| two lines | -2 |\n");
}

TEST(TextTable, AColumnWithoutAnyNumberIsOneOfWords) {
  EXPECT_EQ(as_text({{"budget", "x"}, {{"-", "1"}}}), "budget  x\n-       1\n");
}

}  // namespace
}  // namespace canopy

#include "engine/text/normalizer.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/text/unicode.h"
#include "tests/base/expect_error.h"
#include "tests/text/charsmap_builder.h"

namespace canopy {
namespace {

using test::charsmap;

const std::map<std::string, std::string> rules = {{"\uFB01", "fi"},      {"\u3000", " "}, {"\u00AD", ""},
                                                  {"e\u0301", "\u00E9"}, {"\uFF45", "e"}, {"\uFF45\u0301", "\u00E9"}};

std::string applied(const std::string& text) {
  return CompiledNormalizer(charsmap(rules), "the table").apply(text);
}

TEST(CompiledNormalizer, ReplacesWhatItsTableLists) {
  EXPECT_EQ(applied(""), "");
  EXPECT_EQ(applied("plain e\n"), "plain e\n");
  EXPECT_EQ(applied("\uFB01ne\u3000cafe\u0301 a\u00ADb"), "fine caf\u00E9 ab");
  EXPECT_EQ(applied(std::string("a\0b", 3)), std::string("a\0b", 3));
}

// As Hugging Face's library has it, on purpose: a short cluster is replaced by what its first prefix stands for.
TEST(CompiledNormalizer, AClusterIsReplacedByItsFirstPrefix) {
  EXPECT_EQ(applied("\uFF45"), "e");
  EXPECT_EQ(applied("\uFF45\u0301"), "e");
  EXPECT_EQ(applied("\uFF45\u0301\u0302x"), "e\u0301\u0302x") << "a cluster of six bytes or more goes by characters";
}

std::string refusal_of(const std::string& table) {
  return test::error_of([&] { CompiledNormalizer(table, "the table"); });
}

/// The table with one unit replaced.
std::string with_unit(std::string table, uint32_t index, uint32_t unit) {
  std::memcpy(table.data() + 4 + index * 4, &unit, 4);
  return table;
}

TEST(CompiledNormalizer, ADamagedTableIsRefused) {
  const std::string table = charsmap({{"a", "b"}, {"ab", "c"}});
  const uint32_t a = 256 ^ 'a', leaf = 512;
  const auto refused = [](const char* words, const std::string& damaged) {
    const std::string message = refusal_of(damaged);
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find("the table normalizes text by a compiled table that is damaged: it"), 0u) << message;
  };
  refused("its trie of 0 bytes does not fit into its 0", "");
  refused("does not fit", std::string("\0\0\0\0", 4) + "x");
  refused("does not fit", std::string("\xFF\xFF\xFF\xFF", 4) + std::string(1024, '\0'));
  refused("does not fit", std::string("\6\0\0\0", 4) + std::string(64, '\0'));
  refused("does not end its last replacement", table.substr(0, table.size() - 1));
  refused("does not end its last replacement", table.substr(0, table.size() - 4));
  refused("leads out of itself", with_unit(table, 0, 0x7FF << 10));
  refused("leads out of itself", with_unit(table, a, (0xFFFFFu << 10) | 'a'));
  refused("leads back into itself", with_unit(table, a, (a ^ 256) << 10 | 'a'));
  refused("names a replacement that it does not have", with_unit(table, leaf, 0x80000000u | 100));
  refused("names a replacement that it does not have", with_unit(table, leaf, 0x80000000u | 1));
  refused("has a replacement that is no UTF-8", charsmap({{"a", "\xC3"}}));
  refused("has a replacement that is absurdly long", charsmap({{"a", std::string(65, 'x')}}));
  EXPECT_NO_THROW(CompiledNormalizer(charsmap({{"ab", std::string(65, 'x')}}), "the table"));
  refused("replaces a text of more than 128 bytes", charsmap({{std::string(130, 'a'), "x"}}));
  std::map<std::string, std::string> nested;
  for (size_t length = 1; length <= 33; ++length) nested[std::string(length, 'a')] = "x";
  refused("replaces too many prefixes of one text", charsmap(nested));
  nested.erase(std::string(33, 'a'));
  EXPECT_NO_THROW(CompiledNormalizer(charsmap(nested), "the table"));
}

TEST(CompiledNormalizer, AnyFlippedBitIsRefusedOrHarmless) {
  const std::string table = charsmap(rules);
  size_t accepted = 0;
  for (size_t bit = 0; bit < table.size() * 8; bit += 3) {
    std::string damaged = table;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    try {
      const std::string text =
          CompiledNormalizer(damaged, "the table").apply("\uFB01\u3000\uFF45\u0301 e\u0301\u00AD!");
      EXPECT_EQ(valid_utf8_prefix(text), text.size());
      ++accepted;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    }
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace canopy

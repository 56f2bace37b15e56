// SentencePiece and Unigram tokenizers give the ids of Hugging Face's own code (tests/golden/make_sentencepiece.py).

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/text/golden_text.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

/// Null in a build without sentencepiece.
std::unique_ptr<Tokenizer> tokenizer_in(const fs::path& folder) {
  const auto text_of = [&](const char* name) {
    return fs::exists(folder / name) ? golden::read_text(folder / name) : std::string();
  };
  if (fs::exists(folder / "tokenizer.json")) return Tokenizer::from_tokenizer_json(text_of("tokenizer.json"));
  try {
    return Tokenizer::from_sentencepiece_model(text_of("tokenizer.model"), text_of("tokenizer_config.json"));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    return nullptr;
  }
}

TEST(SentencePieceGolden, EveryTextHasItsIds) {
  size_t folders = 0;
  for (const auto& entry : fs::directory_iterator(golden::folder() / "sentencepiece")) {
    SCOPED_TRACE(entry.path().filename());
    ++folders;
    const auto tokenizer = tokenizer_in(entry.path());
    if (!tokenizer) continue;
    const auto cases = nlohmann::json::parse(golden::read_text(entry.path() / "cases.json"));
    EXPECT_FALSE(cases.empty());
    for (const auto& one : cases) {
      const auto text = one.at("text").get<std::string>();
      EXPECT_EQ(tokenizer->encode(text, SpecialTokens::parse), one.at("ids").get<std::vector<uint32_t>>()) << text;
    }
  }
  EXPECT_GE(folders, 8u);
}

}  // namespace
}  // namespace canopy

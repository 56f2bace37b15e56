// SentencePiece and Unigram tokenizers give the ids of Hugging Face's own code (tests/golden/make_sentencepiece.py).

#include <gtest/gtest.h>

#include <algorithm>

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

/// The vocabulary of a tokenizer.json as GGUF files of the kind "gemma4" hold it; `words` has the bytes.
VocabularyData as_gguf(const nlohmann::json& tokenizer, std::vector<std::string>& words) {
  constexpr int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, byte = 6;
  const nlohmann::json& model = tokenizer.at("model");
  size_t tokens = model.at("vocab").size();
  for (const auto& added : tokenizer.at("added_tokens")) tokens = std::max(tokens, added.at("id").get<size_t>() + 1);
  const size_t merges = model.at("merges").size();
  words.assign(tokens + merges, "");
  VocabularyData data;
  data.model = "gemma4";
  data.types.assign(tokens, normal);
  for (const auto& [spelling, id] : model.at("vocab").items()) {
    words.at(id.get<size_t>()) = spelling;
    if (spelling.starts_with("<0x")) data.types.at(id.get<size_t>()) = byte;
  }
  for (const auto& added : tokenizer.at("added_tokens")) {
    const auto id = added.at("id").get<size_t>();
    words.at(id) = added.at("content").get<std::string>();
    data.types.at(id) = added.at("special").get<bool>() ? control : user_defined;
    if (added.at("content") == "<unk>") data.unknown = static_cast<uint32_t>(id), data.types.at(id) = unknown;
  }
  for (size_t i = 0; i < merges; ++i) {
    const nlohmann::json& pair = model.at("merges").at(i);
    words[tokens + i] = pair.at(0).get<std::string>() + " " + pair.at(1).get<std::string>();
  }
  data.tokens.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(tokens));
  data.merges.assign(words.begin() + static_cast<std::ptrdiff_t>(tokens), words.end());
  return data;
}

TEST(SentencePieceGolden, GemmaOfAGgufFileHasTheIdsOfItsFolder) {
  const fs::path folder = golden::folder() / "sentencepiece" / "gemma-json";
  std::vector<std::string> words;
  VocabularyData data = as_gguf(nlohmann::json::parse(golden::read_text(folder / "tokenizer.json")), words);
  const auto tokenizer = Tokenizer::from_vocabulary(data);
  for (const auto& one : nlohmann::json::parse(golden::read_text(folder / "cases.json"))) {
    const auto text = one.at("text").get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, SpecialTokens::parse), one.at("ids").get<std::vector<uint32_t>>()) << text;
  }
  data.merges.clear();
  try {
    Tokenizer::from_vocabulary(data);
    ADD_FAILURE() << "without merges";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("The Gemma vocabulary has no merges"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace canopy

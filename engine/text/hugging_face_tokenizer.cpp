// Reads Hugging Face's tokenizer.json: the vocabulary here, what surrounds it in hugging_face_pipeline.cpp.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/byte_token.h"
#include "engine/text/hugging_face_config.h"
#include "engine/text/hugging_face_pipeline.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

using Json = nlohmann::json;

// The strings that VocabularyData's views point into.
struct Vocabulary {
  std::vector<std::string> tokens;  // by id
  std::vector<std::string> merges;
  std::vector<int32_t> types;
  std::vector<AddedToken> added;

  void put(uint64_t wanted, std::string token, TokenType type) {
    const size_t id = checked_token_id(wanted, token);
    if (id >= tokens.size()) {
      tokens.resize(id + 1);
      types.resize(id + 1, static_cast<int32_t>(TokenType::unused));
    }
    tokens[id] = std::move(token);
    types[id] = static_cast<int32_t>(type);
  }

  std::optional<uint32_t> find(const std::string& token) const {
    const auto found = std::find(tokens.begin(), tokens.end(), token);
    if (token.empty() || found == tokens.end()) return std::nullopt;
    return static_cast<uint32_t>(found - tokens.begin());
  }
};

void read_model(const Json& model, bool is_byte_level, Vocabulary& vocabulary) {
  const bool has_byte_tokens = !is_byte_level && model.value("byte_fallback", false);
  for (const auto& [token, id] : model.at("vocab").items()) {
    const bool is_byte = has_byte_tokens && byte_of_token(token).has_value();
    vocabulary.put(read_token_id(id, token), token, is_byte ? TokenType::byte : TokenType::normal);
  }
  for (const Json& merge : model.at("merges")) {
    vocabulary.merges.push_back(merge.is_array() ? merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>()
                                                 : merge.get<std::string>());
  }
}

void read_added_tokens(const Json& root, Vocabulary& vocabulary) {
  for (const Json& entry : root.value("added_tokens", Json::array())) {
    const uint64_t id = read_token_id(entry.at("id"), entry.at("content").get<std::string>());
    AddedToken token = read_added_token(entry, id);
    vocabulary.put(id, token.spelling, token.special ? TokenType::control : TokenType::user_defined);
    vocabulary.added.push_back(std::move(token));
  }
}

void check_model(const Json& model) {
  const auto type = model.value("type", std::string(model.contains("merges") ? "BPE" : "unnamed"));
  if (type != "BPE") refuse_tokenizer_part("model", type, "BPE");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_absent(model, affix) && !model.at(affix).get<std::string>().empty()) {
      refuse_tokenizer_part("model option", affix, "none");
    }
  }
  // Dropout randomises training; a file that was saved with it is read as if it were off, as its own library does.
}

void apply_config(const HuggingFaceConfig& config, const std::string& leading_token, const Vocabulary& vocabulary,
                  VocabularyData& data) {
  data.bos = vocabulary.find(config.bos);
  data.eos = vocabulary.find(config.eos);
  data.padding = vocabulary.find(config.padding);
  data.chat_template = config.chat_template;
  if (const auto leading = vocabulary.find(leading_token)) {
    data.bos = leading;
    data.add_bos = true;
  }
}

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view tokenizer_json, std::string_view config_json) {
  const Json root = parse_json(tokenizer_json, "tokenizer.json");
  if (!root.is_object()) throw bad_input("tokenizer.json must hold a JSON object.");
  const Json& model = root.at("model");
  HuggingFacePipeline pipeline = read_hugging_face_pipeline(root);
  check_model(model);
  Vocabulary vocabulary;
  read_model(model, pipeline.is_byte_level, vocabulary);
  read_added_tokens(root, vocabulary);

  VocabularyData data;
  data.tokens.assign(vocabulary.tokens.begin(), vocabulary.tokens.end());
  data.merges.assign(vocabulary.merges.begin(), vocabulary.merges.end());
  data.types = vocabulary.types;
  apply_config(read_hugging_face_config(config_json), pipeline.leading_token, vocabulary, data);
  if (!is_absent(model, "unk_token")) data.unknown = vocabulary.find(model.at("unk_token").get<std::string>());

  using Alphabet = BpeTokenizer::Alphabet;
  BpeTokenizer::Options options;
  options.alphabet = pipeline.is_byte_level ? Alphabet::bytes : Alphabet::characters;
  options.normalizer = std::move(pipeline.normalizer);
  options.pre_tokenizer = std::move(pipeline.pre_tokenizer);
  options.ignore_merges = model.value("ignore_merges", false);
  options.unknown = data.unknown;
  options.fuses_unknown = model.value("fuse_unk", false);
  options.drops_leading_space = pipeline.drops_leading_space;
  return std::make_unique<BpeTokenizer>(data, std::move(vocabulary.added), std::move(options));
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_tokenizer_json(std::string_view tokenizer_json,
                                                          std::string_view tokenizer_config_json) {
  try {
    return read_tokenizer(tokenizer_json, tokenizer_config_json);
  } catch (const nlohmann::json::exception& e) {
    throw bad_input(std::string("tokenizer.json or tokenizer_config.json is not as expected: ") +
                    printable(to_valid_utf8(e.what())) + ".");
  }
}

}  // namespace canopy

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

namespace canopy {
namespace {

using Json = nlohmann::json;

constexpr const char* tokenizer_file = "tokenizer.json";

// The strings that VocabularyData's views point into.
struct Vocabulary {
  std::vector<std::string> tokens;  // by id
  std::vector<std::string> merges;
  std::vector<int32_t> types;
  std::vector<AddedToken> added;

  /// Whether an id has a token already.
  bool has(uint64_t id) const { return id < types.size() && types[id] != static_cast<int32_t>(TokenType::unused); }

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

std::string read_merge(const Json& merge, size_t rank) {
  if (merge.is_string()) return merge.get<std::string>();
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  throw bad_input("Merge " + std::to_string(rank) + " of tokenizer.json is " + printable(merge.dump(), 80) +
                  "; two tokens in a list, or in a string with a space between them, are expected.");
}

void read_model(const JsonFields& model, bool is_byte_level, Vocabulary& vocabulary) {
  const bool has_byte_tokens = !is_byte_level && model.boolean_or("byte_fallback", false);
  model.at("vocab");
  for (const auto& [token, number] : model.object("vocab")->items()) {
    const bool is_byte = has_byte_tokens && byte_of_token(token).has_value();
    const uint64_t id = read_token_id(number, token);
    if (vocabulary.has(id)) {
      throw bad_input("The tokens \"" + printable(vocabulary.tokens[id], 80) + "\" and \"" + printable(token, 80) +
                      "\" of tokenizer.json both have the id " + std::to_string(id) + "; each needs its own.");
    }
    vocabulary.put(id, token, is_byte ? TokenType::byte : TokenType::normal);
  }
  for (const Json& merge : model.list("merges")) {
    vocabulary.merges.push_back(read_merge(merge, vocabulary.merges.size()));
  }
}

void read_added_tokens(const JsonFields& root, Vocabulary& vocabulary) {
  if (!root.has("added_tokens")) return;
  for (const Json& entry : root.list("added_tokens")) {
    const JsonFields fields(entry, "an added token of tokenizer.json");
    const uint64_t id = read_token_id(fields.at("id"), fields.text("content"));
    AddedToken token = read_added_token(fields, id);
    vocabulary.put(id, token.spelling, token.special ? TokenType::control : TokenType::user_defined);
    vocabulary.added.push_back(std::move(token));
  }
}

void check_model(const JsonFields& model) {
  const std::string type = model.text_or("type", model.has("merges") ? "BPE" : "unnamed");
  if (type != "BPE") refuse_tokenizer_part("model", type, "BPE");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text_or(affix, "").empty()) refuse_tokenizer_part("model option", affix, "none");
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
  const Json json = parse_json(tokenizer_json, tokenizer_file);
  const JsonFields root(json, tokenizer_file);
  const JsonFields model(root.at("model"), "the model of tokenizer.json");
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
  data.unknown = vocabulary.find(model.text_or("unk_token", ""));

  using Alphabet = BpeTokenizer::Alphabet;
  BpeTokenizer::Options options;
  options.alphabet = pipeline.is_byte_level ? Alphabet::bytes : Alphabet::characters;
  options.normalizer = std::move(pipeline.normalizer);
  options.pre_tokenizer = std::move(pipeline.pre_tokenizer);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  options.unknown = data.unknown;
  options.fuses_unknown = model.boolean_or("fuse_unk", false);
  options.drops_leading_space = pipeline.drops_leading_space;
  return with_context(tokenizer_file, [&] {
    return std::make_unique<BpeTokenizer>(data, std::move(vocabulary.added), std::move(options));
  });
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::from_tokenizer_json(std::string_view tokenizer_json,
                                                          std::string_view tokenizer_config_json) {
  return read_tokenizer(tokenizer_json, tokenizer_config_json);
}

}  // namespace canopy

// Reads Hugging Face's tokenizer.json: the vocabulary here, what surrounds it in hugging_face_pipeline.cpp.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/hugging_face_pipeline.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

using Json = nlohmann::json;

constexpr int deepest_json = 64;
constexpr uint64_t most_tokens = 1u << 24;  // ids are positions in a table; real vocabularies end below 2^18

Json parse_json(std::string_view text, const char* what) {
  const auto limit_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest_json) {
      throw bad_input(std::string(what) + " is nested more than " + std::to_string(deepest_json) + " levels deep.");
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), limit_depth);
  if (!json.is_object()) throw bad_input(std::string(what) + " must hold a JSON object.");
  return json;
}

bool is_absent(const Json& object, const char* key) {
  return !object.contains(key) || object.at(key).is_null();
}

// The strings that VocabularyData's views point into.
struct Vocabulary {
  std::vector<std::string> tokens;  // by id
  std::vector<std::string> merges;
  std::vector<int32_t> types;
  std::vector<AddedToken> added;

  void put(uint64_t id, std::string token, TokenType type) {
    if (id >= most_tokens) {
      throw bad_input("The token \"" + printable(token, 80) + "\" of tokenizer.json has the id " + std::to_string(id) +
                      "; ids must be below " + std::to_string(most_tokens) + ".");
    }
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

// An id as JSON. nlohmann would turn -1 or 1e30 into some other number.
uint64_t read_id(const Json& id, const std::string& token) {
  if (!id.is_number_unsigned()) {
    throw bad_input("The token \"" + printable(token, 80) + "\" of tokenizer.json has the id " +
                    printable(id.dump(), 80) + "; an id must be a whole number from 0 on.");
  }
  return id.get<uint64_t>();
}

void read_model(const Json& model, bool is_byte_level, Vocabulary& vocabulary) {
  const bool has_byte_tokens = !is_byte_level && model.value("byte_fallback", false);
  for (const auto& [token, id] : model.at("vocab").items()) {
    const bool is_byte = has_byte_tokens && token.size() == 6 && token.starts_with("<0x") && token.ends_with('>');
    vocabulary.put(read_id(id, token), token, is_byte ? TokenType::byte : TokenType::normal);
  }
  for (const Json& merge : model.at("merges")) {
    vocabulary.merges.push_back(merge.is_array() ? merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>()
                                                 : merge.get<std::string>());
  }
}

void read_added_tokens(const Json& root, Vocabulary& vocabulary) {
  for (const Json& entry : root.value("added_tokens", Json::array())) {
    AddedToken token;
    token.spelling = entry.at("content").get<std::string>();
    const uint64_t id = read_id(entry.at("id"), token.spelling);
    token.special = entry.value("special", false);
    token.strips_left = entry.value("lstrip", false);
    token.strips_right = entry.value("rstrip", false);
    // A control token is always looked for in the text as it stands: normalizing would move the borders between what
    // may hold one and what a user wrote.
    token.in_normalized_text = !token.special && entry.value("normalized", false);
    if (entry.value("single_word", false))
      refuse_tokenizer_part("added token with single_word", token.spelling, "false");
    vocabulary.put(id, token.spelling, token.special ? TokenType::control : TokenType::user_defined);
    token.id = static_cast<uint32_t>(id);
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

// tokenizer_config.json writes a token as a string or as an object; null and absent mean there is none.
std::string configured_token(const Json& config, const char* key) {
  if (is_absent(config, key)) return {};
  const Json& token = config.at(key);
  return token.is_object() ? token.at("content").get<std::string>() : token.get<std::string>();
}

// A template is a string, or a list of named ones of which "default" is the one for chats.
std::string configured_template(const Json& config) {
  if (is_absent(config, "chat_template")) return {};
  const Json& chat = config.at("chat_template");
  if (chat.is_string()) return chat.get<std::string>();
  for (const Json& entry : chat) {
    if (entry.at("name") == "default") return entry.at("template").get<std::string>();
  }
  return {};
}

void read_config(std::string_view config_text, const std::string& leading_token, const Vocabulary& vocabulary,
                 VocabularyData& data) {
  const Json config = config_text.empty() ? Json::object() : parse_json(config_text, "tokenizer_config.json");
  data.bos = vocabulary.find(configured_token(config, "bos_token"));
  data.eos = vocabulary.find(configured_token(config, "eos_token"));
  data.padding = vocabulary.find(configured_token(config, "pad_token"));
  data.chat_template = configured_template(config);
  if (const auto leading = vocabulary.find(leading_token)) {
    data.bos = leading;
    data.add_bos = true;
  }
}

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view tokenizer_json, std::string_view config_json) {
  const Json root = parse_json(tokenizer_json, "tokenizer.json");
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
  read_config(config_json, pipeline.leading_token, vocabulary, data);
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

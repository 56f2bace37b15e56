// Reads Hugging Face's tokenizer.json. Only what is understood is accepted: a part that is skipped would silently give
// other ids than the model was trained on.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/byte_level_bpe.h"
#include "engine/text/pre_tokenizer.h"
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

// The "type" of a part of the file.
std::string type_of(const Json& part) {
  return part.at("type").get<std::string>();
}

[[noreturn]] void unsupported(const char* what, const std::string& actual, const char* allowed) {
  throw bad_input(std::string("The ") + what + " \"" + printable(actual) +
                  "\" of tokenizer.json is not supported; supported: " + allowed + ".");
}

// The parts of a Sequence, or the one part itself.
std::vector<Json> parts_of(const Json& part, const char* list) {
  if (part.is_null()) return {};
  if (type_of(part) != "Sequence") return {part};
  std::vector<Json> parts;
  for (const Json& inner : part.at(list)) {
    for (Json& flat : parts_of(inner, list)) parts.push_back(std::move(flat));
  }
  return parts;
}

Normalizer read_normalizer(const Json& root) {
  Normalizer normalizer = Normalizer::none;
  for (const Json& part : parts_of(root.value("normalizer", Json()), "normalizers")) {
    if (type_of(part) != "NFC") unsupported("normalizer", type_of(part), "NFC, or none");
    normalizer = Normalizer::nfc;
  }
  return normalizer;
}

// A literal as a regular expression. \Q...\E ends at the first \E, so each is written apart.
std::string quoted(const std::string& literal) {
  std::string out = "\\Q";
  size_t from = 0;
  for (size_t at = literal.find("\\E"); at != std::string::npos; at = literal.find("\\E", from)) {
    out += literal.substr(from, at - from) + "\\E\\\\E\\Q";
    from = at + 2;
  }
  return out + literal.substr(from) + "\\E";
}

PreTokenizer::Stage read_split(const Json& part) {
  const Json& pattern = part.at("pattern");
  std::string expression = pattern.contains("Regex") ? pattern.at("Regex").get<std::string>()
                                                     : quoted(pattern.at("String").get<std::string>());
  PreTokenizer::Stage stage{Regex(std::move(expression))};
  const auto behavior = part.at("behavior").get<std::string>();
  if (behavior == "Removed") {
    stage.behavior = PreTokenizer::Behavior::removed;
  } else if (behavior != "Isolated") {
    unsupported("Split behavior", behavior, "Isolated, Removed");
  }
  stage.invert = part.value("invert", false);
  return stage;
}

PreTokenizer read_pre_tokenizer(const Json& root) {
  std::vector<PreTokenizer::Stage> stages;
  bool is_byte_level = false;
  for (const Json& part : parts_of(root.value("pre_tokenizer", Json()), "pretokenizers")) {
    const std::string type = type_of(part);
    if (is_byte_level) unsupported("pre-tokenizer", type, "nothing after ByteLevel");
    if (type == "Split") {
      stages.push_back(read_split(part));
    } else if (type == "Digits") {
      stages.push_back({Regex(part.value("individual_digits", false) ? "\\p{N}" : "\\p{N}+")});
    } else if (type == "ByteLevel") {
      is_byte_level = true;
      if (part.value("add_prefix_space", true)) unsupported("ByteLevel option", "add_prefix_space: true", "false");
      if (part.value("use_regex", true)) stages.push_back({Regex(gpt2_expression)});
    } else {
      unsupported("pre-tokenizer", type, "Sequence, Split, Digits, ByteLevel");
    }
  }
  if (!is_byte_level) unsupported("pre-tokenizer", "without ByteLevel", "byte-level BPE");
  return PreTokenizer(std::move(stages));
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

void read_model(const Json& model, Vocabulary& vocabulary) {
  for (const auto& [token, id] : model.at("vocab").items()) {
    vocabulary.put(read_id(id, token), token, TokenType::normal);
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
    if (entry.value("single_word", false)) unsupported("added token with single_word", token.spelling, "false");
    vocabulary.put(id, token.spelling, token.special ? TokenType::control : TokenType::user_defined);
    token.id = static_cast<uint32_t>(id);
    vocabulary.added.push_back(std::move(token));
  }
}

void check_model(const Json& root) {
  const Json& model = root.at("model");
  const bool is_bpe = model.contains("type") ? type_of(model) == "BPE" : model.contains("merges");
  if (!is_bpe) unsupported("model", model.value("type", std::string("unnamed")), "BPE (byte-level)");
  if (model.value("byte_fallback", false)) unsupported("model", "BPE with byte_fallback", "BPE (byte-level)");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_absent(model, affix) && !model.at(affix).get<std::string>().empty())
      unsupported("model option", affix, "none");
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

// The token that the post-processor puts in front of every text, if any.
std::string leading_token(const Json& root) {
  for (const Json& part : parts_of(root.value("post_processor", Json()), "processors")) {
    if (type_of(part) != "TemplateProcessing") continue;
    const Json& single = part.at("single");
    if (!single.empty() && single.at(0).contains("SpecialToken")) {
      return single.at(0).at("SpecialToken").at("id").get<std::string>();
    }
  }
  return {};
}

void read_config(const Json& root, std::string_view config_text, const Vocabulary& vocabulary, VocabularyData& data) {
  const Json config = config_text.empty() ? Json::object() : parse_json(config_text, "tokenizer_config.json");
  data.bos = vocabulary.find(configured_token(config, "bos_token"));
  data.eos = vocabulary.find(configured_token(config, "eos_token"));
  data.padding = vocabulary.find(configured_token(config, "pad_token"));
  data.chat_template = configured_template(config);
  if (const auto leading = vocabulary.find(leading_token(root))) {
    data.bos = leading;
    data.add_bos = true;
  }
}

std::unique_ptr<Tokenizer> read_tokenizer(std::string_view tokenizer_json, std::string_view config_json) {
  const Json root = parse_json(tokenizer_json, "tokenizer.json");
  check_model(root);
  const Json& model = root.at("model");
  Vocabulary vocabulary;
  read_model(model, vocabulary);
  read_added_tokens(root, vocabulary);

  VocabularyData data;
  data.tokens.assign(vocabulary.tokens.begin(), vocabulary.tokens.end());
  data.merges.assign(vocabulary.merges.begin(), vocabulary.merges.end());
  data.types = vocabulary.types;
  read_config(root, config_json, vocabulary, data);
  if (!is_absent(model, "unk_token")) {
    data.unknown = data.token_less_byte = vocabulary.find(model.at("unk_token").get<std::string>());
  }
  ByteLevelBpe::Options options;
  options.normalizer = read_normalizer(root);
  options.ignore_merges = model.value("ignore_merges", false);
  return std::make_unique<ByteLevelBpe>(data, std::move(vocabulary.added), read_pre_tokenizer(root), options);
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

#include "engine/text/hugging_face_config.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"
#include "engine/text/hugging_face_pipeline.h"

namespace canopy {
namespace {

using Json = nlohmann::json;

// A token is written as a string or as an object; null and absent mean there is none.
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

std::vector<AddedToken> configured_added_tokens(const Json& config) {
  std::vector<AddedToken> added;
  if (is_absent(config, "added_tokens_decoder")) return added;
  for (const auto& [key, entry] : config.at("added_tokens_decoder").items()) {
    uint64_t id = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size()) {
      throw bad_input("The field 'added_tokens_decoder' of tokenizer_config.json has the key \"" + printable(key, 80) +
                      "\"; keys must be ids.");
    }
    added.push_back(read_added_token(entry, id));
  }
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace

bool is_absent(const Json& object, const char* key) {
  return !object.contains(key) || object.at(key).is_null();
}

uint64_t read_token_id(const Json& id, const std::string& token) {
  if (id.is_number_unsigned()) return id.get<uint64_t>();  // nlohmann would turn -1 or 1e30 into some other number
  throw bad_input("The token \"" + printable(token, 80) + "\" of tokenizer.json has the id " +
                  printable(id.dump(), 80) + "; an id must be a whole number from 0 on.");
}

uint32_t checked_token_id(uint64_t id, std::string_view token) {
  if (id < most_token_ids) return static_cast<uint32_t>(id);
  throw bad_input("The token \"" + printable(token, 80) + "\" has the id " + std::to_string(id) +
                  "; ids must be below " + std::to_string(most_token_ids) + ".");
}

AddedToken read_added_token(const Json& entry, uint64_t id) {
  AddedToken token;
  token.spelling = entry.at("content").get<std::string>();
  token.id = checked_token_id(id, token.spelling);
  token.special = entry.value("special", false);
  token.strips_left = entry.value("lstrip", false);
  token.strips_right = entry.value("rstrip", false);
  // A control token is always looked for in the text as it stands: normalizing would move the borders between what may
  // hold one and what a user wrote.
  token.in_normalized_text = !token.special && entry.value("normalized", false);
  if (entry.value("single_word", false)) {
    refuse_tokenizer_part("added token with single_word", token.spelling, "false");
  }
  return token;
}

HuggingFaceConfig read_hugging_face_config(std::string_view text) {
  HuggingFaceConfig config;
  if (text.empty()) return config;
  const Json root = parse_json(text, "tokenizer_config.json");
  if (!root.is_object()) throw bad_input("tokenizer_config.json must hold a JSON object.");
  config.bos = configured_token(root, "bos_token");
  config.eos = configured_token(root, "eos_token");
  config.padding = configured_token(root, "pad_token");
  if (!is_absent(root, "add_bos_token")) config.add_bos = root.at("add_bos_token").get<bool>();
  config.added = configured_added_tokens(root);
  config.chat_template = configured_template(root);
  return config;
}

}  // namespace canopy

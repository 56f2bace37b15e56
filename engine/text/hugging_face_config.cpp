#include "engine/text/hugging_face_config.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"

namespace canopy {
namespace {

using Json = nlohmann::json;

constexpr const char* config_file = "tokenizer_config.json";

// A token is written as a string or as an object; null and absent mean there is none.
std::string configured_token(const JsonFields& config, const char* key) {
  const Json* token = config.find(key);
  if (token == nullptr || !token->is_object()) return config.text_or(key, "");
  return JsonFields(*token, "the field '" + std::string(key) + "' of " + config.what()).text("content");
}

// A template is a string, or several with names, as a list or as an object; "default" is the one for chats.
std::string configured_template(const JsonFields& config) {
  const Json* chat = config.find("chat_template");
  if (chat != nullptr && chat->is_object()) {
    return JsonFields(*chat, "the field 'chat_template' of " + config.what()).text_or("default", "");
  }
  if (chat == nullptr || !chat->is_array()) return config.text_or("chat_template", "");
  for (const Json& entry : *chat) {
    const JsonFields fields(entry, "an entry of the field 'chat_template' of " + config.what());
    if (fields.text("name") == "default") return fields.text("template");
  }
  return {};
}

std::vector<AddedToken> configured_added_tokens(const JsonFields& config) {
  std::vector<AddedToken> added;
  const Json* entries = config.object("added_tokens_decoder");
  if (entries == nullptr) return added;
  for (const auto& [key, entry] : entries->items()) {
    uint64_t id = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size()) {
      throw bad_input("The field 'added_tokens_decoder' of tokenizer_config.json has the key \"" + printable(key, 80) +
                      "\"; keys must be ids.");
    }
    added.push_back(read_added_token(JsonFields(entry, "the added token " + key + " of " + config.what()), id));
  }
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

}  // namespace

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

AddedToken read_added_token(const JsonFields& entry, uint64_t id) {
  AddedToken token;
  token.spelling = entry.text("content");
  token.id = checked_token_id(id, token.spelling);
  token.special = entry.boolean_or("special", false);
  token.strips_left = entry.boolean_or("lstrip", false);
  token.strips_right = entry.boolean_or("rstrip", false);
  // A control token is always looked for in the text as it stands: normalizing would move the borders between what may
  // hold one and what a user wrote.
  token.in_normalized_text = !token.special && entry.boolean_or("normalized", false);
  token.single_word = entry.boolean_or("single_word", false);
  return token;
}

HuggingFaceConfig read_hugging_face_config(std::string_view text) {
  HuggingFaceConfig config;
  if (text.empty()) return config;
  const Json root = parse_json(text, config_file);
  const JsonFields fields(root, config_file);
  config.bos = configured_token(fields, "bos_token");
  config.eos = configured_token(fields, "eos_token");
  config.padding = configured_token(fields, "pad_token");
  if (fields.has("add_bos_token")) config.add_bos = fields.boolean_or("add_bos_token", false);
  config.legacy = fields.boolean_or("legacy", true);
  config.add_prefix_space = fields.boolean_or("add_prefix_space", true);
  config.added = configured_added_tokens(fields);
  config.chat_template = configured_template(fields);
  return config;
}

}  // namespace canopy

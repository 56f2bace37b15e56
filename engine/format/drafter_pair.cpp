#include "engine/format/drafter_pair.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/format/json_text.h"

namespace canopy {
namespace {

std::string number_text(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// Throws; `reason` goes on from "it does not fit: ".
[[noreturn]] void refuse(const ModelConfig& target, const DrafterConfig& drafter, const std::string& reason) {
  throw bad_input("The drafter " + quoted_name(drafter.transformer.name) + " does not fit the model " +
                  quoted_name(target.name) + ": " + reason);
}

void check_sizes(const ModelConfig& target, const DrafterConfig& drafter) {
  if (drafter.transformer.hidden != target.hidden) {
    refuse(target, drafter,
           "its hidden size is " + std::to_string(drafter.transformer.hidden) + ", the model's " +
               std::to_string(target.hidden) + ".");
  }
  if (drafter.target_layers != 0 && drafter.target_layers != target.layers) {
    refuse(target, drafter,
           "it was made for a model of " + std::to_string(drafter.target_layers) + " layers; this one has " +
               std::to_string(target.layers) + ".");
  }
  for (const uint32_t aux_layer : drafter.aux_layers) {
    if (aux_layer < target.layers) continue;
    refuse(target, drafter,
           "it reads layer " + std::to_string(aux_layer) + "; the model has the layers 0 to " +
               std::to_string(target.layers - 1) + ".");
  }
  if (drafter.vocab != 0 && drafter.vocab != target.vocab) {
    refuse(target, drafter,
           "it was made for a vocabulary of " + std::to_string(drafter.vocab) + " tokens; the model has " +
               std::to_string(target.vocab) + ".");
  }
  if (!drafter.draft_token_ids.empty() && drafter.draft_token_ids.back() >= target.vocab) {
    refuse(target, drafter,
           "it drafts token " + std::to_string(drafter.draft_token_ids.back()) +
               ", outside the model's vocabulary of " + std::to_string(target.vocab) + " tokens.");
  }
  if (drafter.mask_token >= target.vocab) {
    refuse(target, drafter,
           "its mask token is " + std::to_string(drafter.mask_token) + ", outside the model's vocabulary of " +
               std::to_string(target.vocab) + " tokens.");
  }
}

std::vector<std::string> oddities(const ModelConfig& target, const DrafterConfig& drafter) {
  std::vector<std::string> result;
  if (drafter.vocab == 0) {
    result.push_back(
        "The drafter does not say which vocabulary it was made for: if it was another one, its drafts fail.");
  }
  if (drafter.transformer.rope_theta != target.rope_theta) {
    result.push_back("The drafter's rope theta is " + number_text(drafter.transformer.rope_theta) + ", the model's " +
                     number_text(target.rope_theta) + "; they are equal in most pairs.");
  }
  if (drafter.transformer.max_context < target.max_context) {
    result.push_back("The drafter was made for a context of " + std::to_string(drafter.transformer.max_context) +
                     " positions, the model for " + std::to_string(target.max_context) +
                     "; beyond its own, its drafts may be poor.");
  }
  if (!std::ranges::is_sorted(drafter.aux_layers)) {
    result.push_back(
        "The drafter reads the model's layers in another than ascending order, which no published one does.");
  }
  // What ends a file is unused in a chat, and so may stand for the mask.
  if (std::ranges::find(target.eos, drafter.mask_token) != target.eos.end() &&
      std::ranges::find(target.file_ends, drafter.mask_token) == target.file_ends.end()) {
    result.push_back("The drafter's mask token, " + std::to_string(drafter.mask_token) +
                     ", is one that ends the model's replies.");
  }
  if (drafter.brings_vocabulary) {
    result.push_back(
        "The drafter brings an embedding or an output head of its own, which is left out: it drafts with "
        "the model's.");
  }
  return result;
}

using TokenTexts = std::map<uint64_t, std::string>;

TokenTexts gguf_tokens(const TokenizerSource& source) {
  constexpr int32_t unused = 5;  // rows that only pad the embedding
  TokenTexts result;
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    if (id < source.types.size() && source.types[id] == unused) continue;
    result.emplace(id, source.tokens[id]);
  }
  return result;
}

/// Of a tokenizer.json. Entries of unexpected form are left out: the tokenizer of the model is checked elsewhere, that
/// of a drafter is not used.
TokenTexts hugging_face_tokens(const TokenizerSource& source) {
  using nlohmann::json;
  TokenTexts result;
  const json root = parse_json(source.tokenizer_json, "tokenizer.json");
  const json empty;
  const json& model = root.is_object() && root.contains("model") ? root["model"] : empty;
  const json& vocab = model.is_object() && model.contains("vocab") ? model["vocab"] : empty;
  if (vocab.is_object()) {
    for (const auto& [text, id] : vocab.items()) {
      if (id.is_number_unsigned()) result.emplace(id.get<uint64_t>(), text);
    }
  }
  const json& added = root.is_object() && root.contains("added_tokens") ? root["added_tokens"] : empty;
  for (const json& token : added.is_array() ? added : json::array()) {
    if (!token.is_object() || !token.contains("id") || !token["id"].is_number_unsigned()) continue;
    const json& text = token.contains("content") ? token["content"] : empty;
    if (text.is_string()) result.insert_or_assign(token["id"].get<uint64_t>(), text.get<std::string>());
  }
  return result;
}

/// Empty where there are none, or none that can be listed.
TokenTexts tokens_of(const TokenizerSource& source) {
  if (source.kind == TokenizerSource::Kind::gguf) return gguf_tokens(source);
  if (source.tokenizer_json.empty()) return {};
  try {
    return hugging_face_tokens(source);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<std::string> tokenizer_difference(const TokenizerSource& target, const TokenizerSource& drafter) {
  if (target.kind == TokenizerSource::Kind::none || drafter.kind == TokenizerSource::Kind::none) return std::nullopt;
  const TokenTexts theirs = tokens_of(target);
  uint64_t compared = 0;
  uint64_t different = 0;
  std::string first;
  for (const auto& [id, text] : tokens_of(drafter)) {
    const auto found = theirs.find(id);
    if (found == theirs.end()) continue;
    ++compared;
    if (found->second == text || ++different > 1) continue;
    first = "token " + std::to_string(id) + " is " + quoted_name(text) + " to it and " + quoted_name(found->second) +
            " to the model";
  }
  if (different == 0) return std::nullopt;
  return "The drafter was made for another tokenizer: of " + std::to_string(compared) + " tokens, " +
         std::to_string(different) + (different == 1 ? " differs" : " differ") + " (" + first + ").";
}

std::vector<std::string> check_pair(const ModelConfig& target, const DrafterConfig& drafter) {
  validate_drafter_config(drafter);
  check_sizes(target, drafter);
  return oddities(target, drafter);
}

std::vector<std::string> check_pair(const ModelFile& target, const DrafterFile& drafter) {
  std::vector<std::string> result = check_pair(target.config(), drafter.config());
  if (auto difference = tokenizer_difference(target.tokenizer(), drafter.tokenizer())) {
    result.push_back(*std::move(difference));
  }
  return result;
}

PairReport describe_pair(const std::filesystem::path& target, const std::filesystem::path& drafter) {
  try {
    const ModelFile model = ModelFile::open(target);
    return {true, "", check_pair(model, DrafterFile::open(drafter))};
  } catch (const Error& e) {
    return {false, e.what(), {}};
  }
}

}  // namespace canopy

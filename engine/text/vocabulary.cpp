#include "engine/text/vocabulary.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "engine/base/error.h"
#include "engine/format/named_tokens.h"

namespace canopy {
namespace {

void check_id(const VocabularyData& data, const char* role, const std::optional<uint32_t>& id) {
  if (id && *id >= data.tokens.size()) {
    throw bad_input(std::string("The ") + role + " token has the id " + std::to_string(*id) +
                    ", but the vocabulary has only " + std::to_string(data.tokens.size()) + " entries.");
  }
}

}  // namespace

TokenType type_of_token(const VocabularyData& data, size_t id) {
  if (data.types.empty()) return TokenType::normal;
  const int32_t type = data.types[id];
  if (type == 0) return TokenType::normal;  // older converters leave it undefined
  if (type < 1 || type > 6) {
    throw bad_input("Token " + std::to_string(id) + " has the type " + std::to_string(type) + "; allowed are 1 to 6.");
  }
  return static_cast<TokenType>(type);
}

void apply_token_names(VocabularyData& data, std::vector<AddedToken>& added) {
  constexpr auto control = static_cast<int32_t>(TokenType::control);
  std::unordered_set<std::string_view> became_control;
  for (const uint32_t id : named_tokens(data.tokens, data.types).controls) {
    if (id < data.types.size() && data.types[id] == control) continue;
    if (data.types.empty()) data.types.assign(data.tokens.size(), static_cast<int32_t>(TokenType::normal));
    data.types[id] = control;
    became_control.insert(data.tokens[id]);
    const auto known =
        std::find_if(added.begin(), added.end(), [&](const AddedToken& token) { return token.id == id; });
    AddedToken& token = known != added.end() ? *known : added.emplace_back();
    token.id = id;
    token.spelling = data.tokens[id];
    token.special = true;
    token.in_normalized_text = false;
  }
  if (became_control.empty()) return;
  std::string merged;
  std::erase_if(data.merges, [&](std::string_view merge) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return false;
    merged.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    return became_control.contains(merged);
  });
}

void validate_vocabulary(const VocabularyData& data) {
  if (data.tokens.empty()) throw bad_input("The vocabulary has no tokens.");
  if (data.tokens.size() >= std::numeric_limits<uint32_t>::max()) {
    throw bad_input("The vocabulary has more than 2^32 - 2 tokens.");
  }
  if (!data.types.empty() && data.types.size() != data.tokens.size()) {
    throw bad_input("The vocabulary has " + std::to_string(data.tokens.size()) + " tokens but " +
                    std::to_string(data.types.size()) + " token types.");
  }
  check_id(data, "begin-of-text", data.bos);
  check_id(data, "end-of-text", data.eos);
  check_id(data, "unknown", data.unknown);
  check_id(data, "padding", data.padding);
}

}  // namespace canopy

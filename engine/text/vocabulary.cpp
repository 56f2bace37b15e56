#include "engine/text/vocabulary.h"

#include <limits>

#include "engine/base/error.h"

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

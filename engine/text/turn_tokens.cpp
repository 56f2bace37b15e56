#include "engine/text/turn_tokens.h"

#include <algorithm>

#include "engine/text/tokenizer.h"

namespace canopy {
namespace {

// More than the tokens of any stop string that is in use.
constexpr size_t longest_ending = 32;

}  // namespace

TurnTokens tokens_of_reply(const Tokenizer& tokenizer, std::span<const uint32_t> ids, std::string_view text) {
  const size_t shortest = ids.size() - std::min(ids.size(), longest_ending);
  for (size_t length = ids.size(); length > shortest; --length) {
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(length);
    const TurnTokens tokens{{ids.begin(), end}, {end, ids.end()}, tokenizer.identity()};
    if (spells(tokenizer, tokens, text)) return tokens;
  }
  return {};
}

bool spells(const Tokenizer& tokenizer, const TurnTokens& tokens, std::string_view text) {
  if (tokens.ids.empty() || tokens.vocabulary != tokenizer.identity()) return false;
  const auto is_content = [&](uint32_t id) { return id < tokenizer.vocab_size() && !tokenizer.is_special(id); };
  return std::all_of(tokens.ids.begin(), tokens.ids.end(), is_content) && tokenizer.decode(tokens.ids) == text;
}

}  // namespace canopy

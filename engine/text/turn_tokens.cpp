#include "engine/text/turn_tokens.h"

#include <algorithm>

#include "engine/text/tokenizer.h"

namespace canopy {
namespace {

// More than the tokens of any stop string that is in use.
constexpr size_t longest_ending = 32;

}  // namespace

TurnTokens tokens_of_reply(const Tokenizer& tokenizer, std::span<const uint32_t> ids, std::string_view text,
                           bool in_channels) {
  if (in_channels) {
    const std::span<const uint32_t> ends = tokenizer.end_ids();
    const bool ended = !ids.empty() && std::ranges::binary_search(ends, ids.back());
    const auto end = ids.end() - (ended ? 1 : 0);
    return {{ids.begin(), end}, {end, ids.end()}, tokenizer.identity()};
  }
  const size_t shortest = ids.size() - std::min(ids.size(), longest_ending);
  for (size_t length = ids.size(); length > shortest; --length) {
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(length);
    const TurnTokens tokens{{ids.begin(), end}, {end, ids.end()}, tokenizer.identity()};
    if (spells(tokenizer, tokens, text)) return tokens;
  }
  return {};
}

TurnTokens tokens_of_answer(const Tokenizer& tokenizer, const TurnTokens& tokens) {
  if (tokens.vocabulary != tokenizer.identity()) return tokens;
  const auto last =
      std::find_if(tokens.ids.rbegin(), tokens.ids.rend(), [&](uint32_t id) { return tokenizer.is_special(id); });
  if (last == tokens.ids.rend()) return tokens;
  return {{last.base(), tokens.ids.end()}, tokens.ending, tokens.vocabulary};
}

bool spells(const Tokenizer& tokenizer, const TurnTokens& tokens, std::string_view text) {
  if (tokens.ids.empty() || tokens.vocabulary != tokenizer.identity()) return false;
  const auto is_content = [&](uint32_t id) { return id < tokenizer.vocab_size() && !tokenizer.is_special(id); };
  return std::all_of(tokens.ids.begin(), tokens.ids.end(), is_content) && tokenizer.decode(tokens.ids) == text;
}

}  // namespace canopy

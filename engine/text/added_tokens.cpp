#include "engine/text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace canopy {
namespace {

bool is_white_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool inside_one(std::span<const TextRange> ranges, size_t begin, size_t end) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), begin,
                                      [](size_t at, const TextRange& range) { return at < range.begin; });
  return after != ranges.begin() && std::prev(after)->end >= end;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (const char c : tokens_[i].spelling) {
      const auto byte = static_cast<unsigned char>(c);
      const auto [entry, is_new] = nodes_[node].next.try_emplace(byte, static_cast<uint32_t>(nodes_.size()));
      const uint32_t child = entry->second;
      if (is_new) nodes_.emplace_back();
      if (node == 0) first_[byte] = child;
      node = child;
    }
    if (node != 0 && nodes_[node].token < 0) nodes_[node].token = static_cast<int64_t>(i);
  }
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at,
                                          std::span<const TextRange> special_ranges) const {
  const AddedToken* best = nullptr;
  uint32_t node = first_[static_cast<unsigned char>(text[at])];
  for (size_t end = at + 1; node != 0; ++end) {
    if (const int64_t index = nodes_[node].token; index >= 0) {
      const AddedToken& token = tokens_[static_cast<size_t>(index)];
      if (!token.special || inside_one(special_ranges, at, end)) best = &token;
    }
    if (end == text.size()) break;
    const auto step = nodes_[node].next.find(static_cast<unsigned char>(text[end]));
    node = step == nodes_[node].next.end() ? 0 : step->second;
  }
  return best;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from,
                                                    std::span<const TextRange> special_ranges) const {
  for (size_t at = from; at < text.size(); ++at) {
    const AddedToken* token = longest_at(text, at, special_ranges);
    if (token == nullptr) continue;
    Match match{at, at + token->spelling.size(), token};
    while (token->strips_left && match.begin > from && is_white_space(text[match.begin - 1])) --match.begin;
    while (token->strips_right && match.end < text.size() && is_white_space(text[match.end])) ++match.end;
    return match;
  }
  return std::nullopt;
}

const AddedToken* AddedTokens::lookup(std::string_view spelling) const {
  const auto found =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) { return token.spelling == spelling; });
  return found == tokens_.end() || spelling.empty() ? nullptr : &*found;
}

}  // namespace canopy

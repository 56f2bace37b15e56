#include "engine/session/comparison_texts.h"

#include <algorithm>
#include <utility>

namespace canopy {
namespace {

/// The token that completes byte `at`; behind all tokens, their number.
uint32_t token_of_byte(const std::vector<uint32_t>& ends, size_t at) {
  const auto found = std::ranges::find_if(ends, [&](uint32_t end) { return end > at; });
  return static_cast<uint32_t>(found - ends.begin());
}

}  // namespace

std::optional<uint32_t> difference_of(const WrittenText& written, const WrittenText& reference) {
  const bool same_tokens = written.vocabulary == reference.vocabulary && !written.ids.empty() && !reference.ids.empty();
  if (same_tokens) return first_difference(written.ids, reference.ids);
  if (written.text == reference.text) return std::nullopt;
  const auto [in_written, in_reference] = std::ranges::mismatch(written.text, reference.text);
  const auto at = static_cast<size_t>(in_written - written.text.begin());
  const bool by_reference = written.ids.empty() && !reference.ids.empty();
  return token_of_byte(by_reference ? reference.ends : written.ends, at);
}

std::vector<std::pair<RunKey, std::optional<uint32_t>>> ComparisonTexts::add(const RunKey& key, WrittenText text) {
  std::vector<std::pair<RunKey, std::optional<uint32_t>>> known;
  const bool is_reference = key.contestant == baseline_ && !references_.contains(key.prompt);
  if (is_reference) {
    const WrittenText& reference = references_[key.prompt] = std::move(text);
    known.emplace_back(key, std::nullopt);
    for (const auto& [other, written] : waiting_[key.prompt])
      known.emplace_back(other, difference_of(written, reference));
    waiting_.erase(key.prompt);
  } else if (const auto reference = references_.find(key.prompt); reference != references_.end()) {
    known.emplace_back(key, difference_of(text, reference->second));
  } else {
    waiting_[key.prompt].emplace_back(key, std::move(text));
  }
  return known;
}

}  // namespace canopy

#include "engine/text/token_index.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/checked.h"

namespace canopy {
namespace {

uint64_t mixed(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= 0x9E3779B97F4A7C15u;
  hash ^= hash >> 29;
  return hash;
}

// Eight bytes at a time: most pieces of a text are one or two words.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = text.size() * 0xBF58476D1CE4E5B9u;
  while (text.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    hash = mixed(hash ^ word) * 0x94D049BB133111EBu;
    text.remove_prefix(sizeof word);
  }
  uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  return mixed(mixed(hash ^ word) * 0x94D049BB133111EBu);
}

}  // namespace

TokenIndex::TokenIndex() : slots_(16) {}

size_t TokenIndex::slot_of(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = static_cast<size_t>(hash) & mask;
  for (; slots_[at].entry != 0; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && text_of(entries_[slots_[at].entry - 1]) == text) break;
  }
  return at;
}

void TokenIndex::grow() {
  slots_.assign(slots_.size() * 2, {});
  for (size_t i = 0; i < entries_.size(); ++i) {
    const uint64_t hash = hash_of(text_of(entries_[i]));
    slots_[slot_of(text_of(entries_[i]), hash)] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(i + 1)};
  }
}

void TokenIndex::add(std::string_view text, uint32_t id) {
  if (text.empty() || id == std::numeric_limits<uint32_t>::max()) return;
  if ((entries_.size() + 1) * 2 > slots_.size()) grow();
  const uint64_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.entry != 0) return;
  const auto begin = checked_cast<uint32_t>(texts_.size(), "length of all tokens together");
  entries_.push_back({begin, checked_cast<uint32_t>(text.size(), "length of a token"), id});
  texts_.append(text);
  slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(entries_.size())};
  longest_ = std::max(longest_, text.size());
}

std::optional<uint32_t> TokenIndex::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_) return std::nullopt;
  const Slot& slot = slots_[slot_of(text, hash_of(text))];
  if (slot.entry == 0) return std::nullopt;
  return entries_[slot.entry - 1].id;
}

}  // namespace canopy

#include "engine/text/merge_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

namespace canopy {
namespace {

constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

// Up to this many symbols, looking through all pairs for the best one is faster than keeping them in order.
constexpr size_t short_piece = 48;

// The lowest rank comes out first; between equal ones the leftmost, for the position is the lower half.
constexpr auto later = std::greater<uint64_t>();

}  // namespace

MergeTable::MergeTable(size_t expected) {
  grow(std::bit_ceil(std::max<size_t>(16, expected + expected / 2)));
}

void MergeTable::grow(size_t capacity) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(capacity));
  mask_ = capacity - 1;
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.key != empty) add(static_cast<uint32_t>(slot.key >> 32), static_cast<uint32_t>(slot.key), slot.merge);
  }
}

void MergeTable::add(uint32_t left, uint32_t right, Merge merge) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow(slots_.size() * 2);
  const uint64_t key = key_of(left, right);
  size_t at = home(key);
  while (slots_[at].key != empty && slots_[at].key != key) at = (at + 1) & mask_;
  if (slots_[at].key == key) return;
  slots_[at] = {key, merge};
  ++used_;
}

void MergeTable::apply(std::vector<uint32_t>& symbols, Scratch& scratch) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= short_piece) {
    apply_short(symbols, scratch);
  } else {
    apply_long(symbols, scratch);
  }
}

void MergeTable::apply_short(std::vector<uint32_t>& symbols, Scratch& scratch) const {
  auto& rank = scratch.rank;
  auto& id = scratch.id;
  size_t count = symbols.size();
  rank.assign(count, none);
  id.resize(count);
  const auto look_up = [&](size_t left) {
    const Merge* merge = left + 1 < count ? find(symbols[left], symbols[left + 1]) : nullptr;
    rank[left] = merge != nullptr ? merge->rank : none;
    if (merge != nullptr) id[left] = merge->id;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    const auto best = std::min_element(rank.begin(), rank.begin() + static_cast<ptrdiff_t>(count - 1));
    if (*best == none) break;
    const auto left = best - rank.begin();
    symbols[static_cast<size_t>(left)] = id[static_cast<size_t>(left)];
    const auto last = static_cast<ptrdiff_t>(count);
    std::move(symbols.begin() + left + 2, symbols.begin() + last, symbols.begin() + left + 1);
    std::move(rank.begin() + left + 2, rank.begin() + last, rank.begin() + left + 1);
    std::move(id.begin() + left + 2, id.begin() + last, id.begin() + left + 1);
    --count;
    look_up(static_cast<size_t>(left));
    if (left > 0) look_up(static_cast<size_t>(left) - 1);
  }
  symbols.resize(count);
}

void MergeTable::apply_long(std::vector<uint32_t>& symbols, Scratch& scratch) const {
  // No structured binding: clang 14 cannot capture those in lambdas.
  auto& rank = scratch.rank;
  auto& id = scratch.id;
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  auto& queue = scratch.queue;
  const auto count = static_cast<uint32_t>(symbols.size());
  rank.assign(count, none);
  id.resize(count);
  next.resize(count);
  previous.resize(count);
  queue.clear();
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : none;
    previous[i] = i > 0 ? i - 1 : none;
  }
  // Notes the pair that begins at a symbol; true when it can merge.
  const auto look_up = [&](uint32_t left) {
    const Merge* merge = next[left] != none ? find(symbols[left], symbols[next[left]]) : nullptr;
    rank[left] = merge != nullptr ? merge->rank : none;
    if (merge == nullptr) return false;
    id[left] = merge->id;
    return true;
  };
  const auto offer = [&](uint32_t left) {
    if (!look_up(left)) return;
    queue.push_back(uint64_t{rank[left]} << 32 | left);
    std::push_heap(queue.begin(), queue.end(), later);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) {
    if (look_up(i)) queue.push_back(uint64_t{rank[i]} << 32 | i);
  }
  std::make_heap(queue.begin(), queue.end(), later);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const uint64_t entry = queue.back();
    queue.pop_back();
    const auto left = static_cast<uint32_t>(entry);
    if (rank[left] != entry >> 32) continue;  // the pair has changed since it was queued
    const uint32_t right = next[left];
    symbols[left] = id[left];
    rank[right] = none;  // gone
    next[left] = next[right];
    if (next[right] != none) previous[next[right]] = left;
    if (previous[left] != none) offer(previous[left]);
    offer(left);
  }
  // The first symbol never goes, and what is left moves towards it.
  uint32_t kept = 0;
  for (uint32_t i = 0; i != none; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

}  // namespace canopy

#include "engine/model/page_table.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"

namespace canopy {

uint32_t PagePool::take() {
  const auto page = std::ranges::find(users_, 0u);
  *page = 1;
  ++taken_;
  return static_cast<uint32_t>(page - users_.begin());
}

void PagePool::remove_user(uint32_t page) {
  if (--users_[page] == 0) --taken_;
}

PageTable::PageTable(const PageTable& other) : pool_(other.pool_), pages_(other.pages_) {
  for (const uint32_t page : pages_) pool_->add_user(page);
}

uint32_t PageTable::needed(uint32_t first, uint32_t end) const {
  const uint32_t have = static_cast<uint32_t>(pages_.size()), wanted = pages_for(end);
  uint32_t needed = wanted > have ? wanted - have : 0;
  for (uint32_t i = first / kPagePositions; i < std::min(have, wanted); ++i) {
    needed += pool_->users(pages_[i]) > 1 ? 1 : 0;
  }
  return needed;
}

std::vector<KvMove> PageTable::reserve(uint32_t first, uint32_t end) {
  // Anew each time: a page that another text gave up may be this text's own by then.
  while (needed(first, end) > pool_->free() && pool_->reclaim()) {
  }
  if (const uint32_t more = needed(first, end); more > pool_->free()) {
    throw out_of_memory("A text needs " + std::to_string(more) + " more pages of " + std::to_string(kPagePositions) +
                        " positions of the K/V cache, but only " + std::to_string(pool_->free()) + " of " +
                        std::to_string(pool_->pages()) + " are available. Close another text, or shorten this one.");
  }
  const uint32_t have = static_cast<uint32_t>(pages_.size()), wanted = pages_for(end);
  std::vector<KvMove> moves;
  for (uint32_t i = first / kPagePositions; i < std::min(have, wanted); ++i) {
    if (pool_->users(pages_[i]) == 1) continue;
    const uint32_t own = pool_->take();
    for (uint32_t p = i * kPagePositions; p < first; ++p) {
      moves.push_back({pages_[i] * kPagePositions + p % kPagePositions, own * kPagePositions + p % kPagePositions});
    }
    pool_->remove_user(pages_[i]);
    pages_[i] = own;
  }
  while (pages_.size() < wanted) pages_.push_back(pool_->take());
  return moves;
}

void PageTable::cut(uint32_t length) {
  while (pages_.size() > pages_for(length)) {
    pool_->remove_user(pages_.back());
    pages_.pop_back();
  }
}

}  // namespace canopy

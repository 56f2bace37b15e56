#pragma once
// Where the K/V of a text lies: in pages of a cache that all texts share. Pure bookkeeping; no device.

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/compute/rows.h"

namespace canopy {

/// One slot's K/V moves to another.
struct KvMove {
  uint32_t from = 0;
  uint32_t to = 0;
  bool operator==(const KvMove&) const = default;
};

/// Pages of positions, rounded up.
inline constexpr uint32_t pages_for(uint32_t positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

/// The pages of a cache, and how many texts have each.
class PagePool {
 public:
  explicit PagePool(uint32_t pages) : users_(pages) {}

  uint32_t pages() const { return static_cast<uint32_t>(users_.size()); }
  uint32_t free() const { return pages() - taken_; }
  uint32_t users(uint32_t page) const { return users_[page]; }

  /// The first page that nobody has; the caller is its user. There must be one.
  uint32_t take();
  void add_user(uint32_t page) { ++users_[page]; }
  void remove_user(uint32_t page);

  /// Asked, as often as it takes, where a text needs more pages than are free: cuts pages off texts that can do
  /// without, never off the one that asks. False where there are none left to cut. Empty: nobody is asked.
  void set_reclaim(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }
  bool reclaim() { return reclaim_ && reclaim_(); }

 private:
  std::vector<uint32_t> users_;  // by page
  uint32_t taken_ = 0;
  std::function<bool()> reclaim_;
};

/// The page table of one text. A copy shares all pages; who then writes to one that others have too gets a page of its
/// own first. The pool must outlive it.
class PageTable {
 public:
  explicit PageTable(PagePool& pool) : pool_(&pool) {}
  PageTable(const PageTable& other);
  PageTable& operator=(const PageTable&) = delete;
  ~PageTable() { cut(0); }

  std::span<const uint32_t> pages() const { return pages_; }
  /// Positions that it has pages for.
  uint32_t positions() const { return static_cast<uint32_t>(pages_.size()) * kPagePositions; }

  /// Pages of its own for positions first ... end - 1, which are about to be written; `first` is the length of the
  /// text. Returns the moves that bring what the text has on such pages along, to be made before anything is written.
  /// Where too few are free, others are asked for theirs (PagePool::set_reclaim). Throws out_of_memory, with the pages
  /// needed and free, and changes nothing of this text then.
  std::vector<KvMove> reserve(uint32_t first, uint32_t end);

  /// Gives back the pages behind the first `length` positions.
  void cut(uint32_t length);

 private:
  /// Pages that it has to take for positions first ... end - 1.
  uint32_t needed(uint32_t first, uint32_t end) const;

  PagePool* pool_;
  std::vector<uint32_t> pages_;
};

}  // namespace canopy

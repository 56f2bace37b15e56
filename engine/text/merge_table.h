#pragma once
// The merges of byte pair encoding: which neighbours become one token, and which of them first.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace canopy {

class MergeTable {
 public:
  struct Merge {
    uint32_t rank = 0;  // lower merges first
    uint32_t id = 0;    // of the merged token
  };

  /// Memory that merging works in, kept from piece to piece so that nothing is allocated for each.
  struct Scratch {
    std::vector<uint32_t> rank, id;        // of the pair that begins at a symbol
    std::vector<uint32_t> next, previous;  // neighbours that are still there
    std::vector<uint64_t> queue;           // rank << 32 | position
  };

  /// Room for that many merges.
  explicit MergeTable(size_t expected = 0);

  /// Of several merges of one pair the first counts.
  void add(uint32_t left, uint32_t right, Merge merge);

  /// Null when the pair does not merge.
  const Merge* find(uint32_t left, uint32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = home(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return &slot.merge;
      if (slot.key == empty) return nullptr;
    }
  }

  /// Merges neighbours, the lowest rank first and of equal ranks the leftmost, until no pair is known.
  /// At most 2^32 - 2 symbols. Time n log n.
  void apply(std::vector<uint32_t>& symbols, Scratch& scratch) const;

 private:
  // No id is 2^32 - 1, so no pair has this key.
  static constexpr uint64_t empty = ~uint64_t{0};

  struct Slot {
    uint64_t key = empty;
    Merge merge;
  };

  static uint64_t key_of(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }
  size_t home(uint64_t key) const {
    key ^= key >> 29;
    key *= 0xBF58476D1CE4E5B9u;
    return static_cast<size_t>(key >> 32) & mask_;
  }
  void grow(size_t capacity);
  void apply_short(std::vector<uint32_t>& symbols, Scratch& scratch) const;
  void apply_long(std::vector<uint32_t>& symbols, Scratch& scratch) const;

  std::vector<Slot> slots_;  // open addressing; the number of slots is a power of two
  size_t mask_ = 0;
  size_t used_ = 0;
};

}  // namespace canopy

#pragma once
// The rows of one pass: what each row is, where its K/V goes, which slots it may see, and the steps in which
// recurrent layers go through them. Host, shaders and CUDA kernels read the same structs.

#include <cstdint>
#include <span>
#include <vector>

namespace canopy {

/// One row of a pass, as shaders read it (uint32 x 8; shaders/rows.glsl mirrors it).
///
/// A row's keys are a virtual sequence by absolute position: position p < prefix is where the pass's page table has it,
/// in slot pages[p / 64] * 64 + p % 64, and position prefix + i is slot ancestors[first_ancestor + i]. Its last
/// ancestor is the row itself, so position = prefix + ancestor_count - 1. A row of plain text has prefix = position and
/// itself as only ancestor; a node of a draft tree has prefix = committed length and its path from the root.
///
/// The rows of a drafter's block differ: they share one ancestor list, the slots of the whole block in order, and each
/// stands somewhere in it: position = prefix + own index, slot = ancestors[first_ancestor + own index]. Under a causal
/// mask such a row sees the block up to itself, as if its list ended there; under a block mask all of it.
struct Row {
  uint32_t token = 0;
  uint32_t position = 0;
  uint32_t slot = 0;  // where this row's K/V is written; kNoSlot: nowhere
  uint32_t prefix = 0;
  uint32_t first_ancestor = 0;
  uint32_t ancestor_count = 0;  // at most kMostAncestors; 0: it sees nothing
  /// How many of its first ancestors lie where the page table has their positions, as committed text does. Less than
  /// there are changes no result: a device shares between rows what lies there, and reads the rest for each row.
  uint32_t in_place = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(Row) == 32);

/// Together with no ancestors the mark of a row that stands for nothing: it fills a pass up to a width.
inline constexpr uint32_t kNoSlot = 0xFFFFFFFF;
/// Of a row, itself included.
inline constexpr uint32_t kMostAncestors = 65;

/// Positions of a page: neighbouring slots that a page table has as one.
inline constexpr uint32_t kPagePositions = 64;

/// Where a page table has a position; kNoSlot beyond its end. Empty: page i is the i-th, and so a position its own
/// slot.
uint32_t slot_of(std::span<const uint32_t> pages, uint32_t position);

/// The rows of one pass with the ancestor lists they index.
struct RowBatch {
  std::vector<Row> rows;
  std::vector<uint32_t> ancestors;   // slots
  std::vector<uint32_t> pages = {};  // the page table; empty: page i is the i-th, and so a position its own slot

  uint32_t width() const { return static_cast<uint32_t>(rows.size()); }

  uint32_t slot_of(uint32_t position) const { return canopy::slot_of(pages, position); }

  /// Appends a row of committed text, whose slot is that of its position.
  void add_text(uint32_t token, uint32_t position);

  /// Appends a node of a draft tree, written to `slot`, after `committed` positions. parent is the index of its parent
  /// among the rows of this batch, or -1 for the root.
  void add_node(uint32_t token, uint32_t slot, uint32_t committed, int32_t parent);

  /// Appends a drafter's block after `committed` positions: row i has tokens[i], position committed + i and slot
  /// first_slot + i, and all rows share the ancestor list first_slot ... first_slot + tokens.size() - 1.
  void add_block(std::span<const uint32_t> tokens, uint32_t first_slot, uint32_t committed);

  void clear();
};

/// Throws Error when a row's fields contradict each other or point outside `slots`, `context` or `vocab`.
/// Each row must be the last of its own ancestors.
void validate(const RowBatch& batch, uint32_t vocab, uint32_t context, uint32_t slots);
/// The same for the rows of a block (add_block), whose ancestor list may go on after the row: each row must be in its
/// own ancestor list at the place that its position gives.
void validate_block(const RowBatch& batch, uint32_t vocab, uint32_t context, uint32_t slots);

/// A step of a recurrence over the rows of a pass, as kernels read it (uint32 x 4; shaders/rows.glsl mirrors it).
struct DeltaStep {
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kSpare = 0x80000000;  // in `from` and `to`: an index of spare states, not of kept ones

  uint32_t row = kNone;     // kNone: the step does nothing; it fills a list up to a width
  uint32_t parent = kNone;  // the step of the row's parent; kNone: the text, of which `from` is the kept state
  uint32_t from = kNone;    // where the state before the row is; kNone: as the step before has left it
  uint32_t to = kNone;      // where the state after the row is put; kNone: nowhere
  bool operator==(const DeltaStep&) const = default;
};
static_assert(sizeof(DeltaStep) == 16);

}  // namespace canopy

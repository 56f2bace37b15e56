#include "engine/compute/rows.h"

#include <string>

#include "engine/base/error.h"

namespace canopy {

uint32_t slot_of(std::span<const uint32_t> pages, uint32_t position) {
  if (pages.empty()) return position;
  const uint32_t page = position / kPagePositions;
  return page < pages.size() ? pages[page] * kPagePositions + position % kPagePositions : kNoSlot;
}

void RowBatch::add_text(uint32_t token, uint32_t position) {
  const uint32_t slot = slot_of(position);
  rows.push_back({token, position, slot, position, static_cast<uint32_t>(ancestors.size()), 1, 1, 0});
  ancestors.push_back(slot);
}

void RowBatch::add_node(uint32_t token, uint32_t slot, uint32_t committed, int32_t parent) {
  const auto first = static_cast<uint32_t>(ancestors.size());
  uint32_t count = 0, in_place = 0;
  if (parent >= 0) {
    const Row& above = rows.at(static_cast<size_t>(parent));
    count = above.ancestor_count;
    in_place = above.in_place;
    for (uint32_t i = 0; i < count; ++i) ancestors.push_back(ancestors[above.first_ancestor + i]);
  }
  ancestors.push_back(slot);
  if (in_place == count && slot == slot_of(committed + count)) ++in_place;
  rows.push_back({token, committed + count, slot, committed, first, count + 1, in_place, 0});
}

void RowBatch::add_block(std::span<const uint32_t> tokens, uint32_t first_slot, uint32_t committed) {
  const auto first = static_cast<uint32_t>(ancestors.size());
  const auto count = static_cast<uint32_t>(tokens.size());
  for (uint32_t i = 0; i < count; ++i) {
    ancestors.push_back(first_slot + i);
    rows.push_back({tokens[i], committed + i, first_slot + i, committed, first, count, 0, 0});
  }
}

void RowBatch::clear() {
  rows.clear();
  ancestors.clear();
  pages.clear();
}

namespace {

[[noreturn]] void refuse(size_t row, const char* field, uint64_t value, const std::string& allowed) {
  throw bad_input("Row " + std::to_string(row) + " of the pass has " + field + " " + std::to_string(value) +
                  "; allowed: " + allowed + ".");
}

// Checks that apply under both masks: fields within their ranges.
void check_row(const RowBatch& batch, size_t i, uint32_t vocab, uint32_t context, uint32_t slots) {
  const Row& row = batch.rows[i];
  if (row.token >= vocab) refuse(i, "token", row.token, "below " + std::to_string(vocab));
  if (row.position >= context) refuse(i, "position", row.position, "below " + std::to_string(context));
  if (row.slot >= slots) refuse(i, "slot", row.slot, "below " + std::to_string(slots));
  if (!batch.pages.empty() && row.prefix > batch.pages.size() * kPagePositions) {
    refuse(i, "prefix", row.prefix,
           "at most the " + std::to_string(batch.pages.size() * kPagePositions) + " positions of its page table");
  }
  if (row.ancestor_count == 0) refuse(i, "ancestor count", 0, "at least 1, the row itself");
  if (uint64_t{row.first_ancestor} + row.ancestor_count > batch.ancestors.size()) {
    refuse(i, "last ancestor index", uint64_t{row.first_ancestor} + row.ancestor_count,
           "at most " + std::to_string(batch.ancestors.size()));
  }
  for (uint32_t a = 0; a < row.ancestor_count; ++a) {
    const uint32_t slot = batch.ancestors[row.first_ancestor + a];
    if (slot >= slots) refuse(i, "ancestor slot", slot, "below " + std::to_string(slots));
    if (a < row.in_place && slot != batch.slot_of(row.prefix + a)) {
      refuse(i, "ancestor slot", slot, "the slot of its position " + std::to_string(row.prefix + a));
    }
  }
  if (row.in_place > row.ancestor_count) {
    refuse(i, "number of ancestors in place", row.in_place, "at most " + std::to_string(row.ancestor_count));
  }
}

void require_rows(const RowBatch& batch, uint32_t slots) {
  if (batch.rows.empty()) throw bad_input("A pass needs at least one row.");
  for (const uint32_t page : batch.pages) {
    if (page < slots / kPagePositions) continue;
    throw bad_input("The page table of a pass has page " + std::to_string(page) + "; allowed: below " +
                    std::to_string(slots / kPagePositions) + ".");
  }
}

}  // namespace

void validate(const RowBatch& batch, uint32_t vocab, uint32_t context, uint32_t slots) {
  require_rows(batch, slots);
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    check_row(batch, i, vocab, context, slots);
    const Row& row = batch.rows[i];
    if (uint64_t{row.prefix} + row.ancestor_count != uint64_t{row.position} + 1) {
      refuse(i, "prefix + ancestors", uint64_t{row.prefix} + row.ancestor_count,
             "position + 1 = " + std::to_string(uint64_t{row.position} + 1));
    }
    if (batch.ancestors[row.first_ancestor + row.ancestor_count - 1] != row.slot) {
      refuse(i, "last ancestor slot", batch.ancestors[row.first_ancestor + row.ancestor_count - 1],
             "the row's own slot " + std::to_string(row.slot));
    }
  }
}

void validate_block(const RowBatch& batch, uint32_t vocab, uint32_t context, uint32_t slots) {
  require_rows(batch, slots);
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    check_row(batch, i, vocab, context, slots);
    const Row& row = batch.rows[i];
    const uint64_t end = uint64_t{row.prefix} + row.ancestor_count;
    if (end > context) refuse(i, "prefix + ancestors", end, "at most " + std::to_string(context));
    if (row.position < row.prefix || row.position >= end) {
      refuse(i, "position", row.position, std::to_string(row.prefix) + " to " + std::to_string(end - 1));
    }
    const uint32_t own = batch.ancestors[row.first_ancestor + (row.position - row.prefix)];
    if (own != row.slot) {
      refuse(i, "ancestor slot at its position", own, "the row's own slot " + std::to_string(row.slot));
    }
  }
}

}  // namespace canopy

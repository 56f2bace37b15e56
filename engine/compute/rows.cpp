#include "engine/compute/rows.h"

#include <string>

#include "engine/base/error.h"

namespace canopy {

void RowBatch::add_text(uint32_t token, uint32_t position) {
  rows.push_back({token, position, position, position, static_cast<uint32_t>(ancestors.size()), 1, {0, 0}});
  ancestors.push_back(position);
}

void RowBatch::add_node(uint32_t token, uint32_t slot, uint32_t committed, int32_t parent) {
  const auto first = static_cast<uint32_t>(ancestors.size());
  uint32_t count = 0;
  if (parent >= 0) {
    const Row& above = rows.at(static_cast<size_t>(parent));
    count = above.ancestor_count;
    for (uint32_t i = 0; i < count; ++i) ancestors.push_back(ancestors[above.first_ancestor + i]);
  }
  ancestors.push_back(slot);
  rows.push_back({token, committed + count, slot, committed, first, count + 1, {0, 0}});
}

void RowBatch::clear() {
  rows.clear();
  ancestors.clear();
}

namespace {

[[noreturn]] void refuse(size_t row, const char* field, uint64_t value, const std::string& allowed) {
  throw bad_input("Row " + std::to_string(row) + " of the pass has " + field + " " + std::to_string(value) +
                  "; allowed: " + allowed + ".");
}

}  // namespace

void validate(const RowBatch& batch, uint32_t vocab, uint32_t context, uint32_t slots) {
  if (batch.rows.empty()) throw bad_input("A pass needs at least one row.");
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const Row& row = batch.rows[i];
    if (row.token >= vocab) refuse(i, "token", row.token, "below " + std::to_string(vocab));
    if (row.position >= context) refuse(i, "position", row.position, "below " + std::to_string(context));
    if (row.slot >= slots) refuse(i, "slot", row.slot, "below " + std::to_string(slots));
    if (row.ancestor_count == 0) refuse(i, "ancestor count", 0, "at least 1, the row itself");
    if (uint64_t{row.first_ancestor} + row.ancestor_count > batch.ancestors.size()) {
      refuse(i, "last ancestor index", uint64_t{row.first_ancestor} + row.ancestor_count,
             "at most " + std::to_string(batch.ancestors.size()));
    }
    if (uint64_t{row.prefix} + row.ancestor_count != uint64_t{row.position} + 1) {
      refuse(i, "prefix + ancestors", uint64_t{row.prefix} + row.ancestor_count,
             "position + 1 = " + std::to_string(uint64_t{row.position} + 1));
    }
    for (uint32_t a = 0; a < row.ancestor_count; ++a) {
      const uint32_t slot = batch.ancestors[row.first_ancestor + a];
      if (slot >= slots) refuse(i, "ancestor slot", slot, "below " + std::to_string(slots));
    }
    if (batch.ancestors[row.first_ancestor + row.ancestor_count - 1] != row.slot) {
      refuse(i, "last ancestor slot", batch.ancestors[row.first_ancestor + row.ancestor_count - 1],
             "the row's own slot " + std::to_string(row.slot));
    }
  }
}

}  // namespace canopy

#include "engine/model/delta_walk.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <unordered_map>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr uint32_t kNone = DeltaStep::kNone;

[[noreturn]] void refuse(size_t row, const std::string& what) {
  throw bad_input("Row " + std::to_string(row) + " of a pass over recurrent layers " + what + ".");
}

/// The slot of the position before a row's own; kNoSlot at position 0.
uint32_t slot_before(const RowBatch& batch, const Row& row) {
  if (row.ancestor_count >= 2) return batch.ancestors[row.first_ancestor + row.ancestor_count - 2];
  return row.position == 0 ? kNoSlot : batch.slot_of(row.position - 1);
}

/// Goes through the rows depth first.
class Walk {
 public:
  Walk(std::span<const uint32_t> parents, const StateUse& use) : parents_(parents), use_(use) {
    const size_t count = parents.size();
    children_.resize(count);
    sizes_.assign(count, 1);
    step_of_.assign(count, kNone);
    for (size_t i = count; i-- > 0;) {
      if (parents[i] != kNone) sizes_[parents[i]] += sizes_[i];
    }
    for (uint32_t i = 0; i < count; ++i) (parents[i] == kNone ? roots_ : children_[parents[i]]).push_back(i);
    for (std::vector<uint32_t>& rows : children_) by_size(rows);
  }

  std::vector<DeltaStep> steps() {
    for (const uint32_t root : roots_) visit(root);
    return std::move(steps_);
  }

 private:
  /// A row whose children are still to come, by its place among them, and the spare state that its own waits in.
  struct Open {
    uint32_t row = 0;
    size_t next = 0;
    uint32_t spare = kNone;
  };

  void by_size(std::vector<uint32_t>& rows) const {
    std::ranges::stable_sort(rows, {}, [this](uint32_t row) { return sizes_[row]; });
  }

  void visit(uint32_t root) {
    std::vector<Open> open;
    enter(root, use_.from, open);
    while (!open.empty()) {
      Open& top = open.back();
      if (top.next == children_[top.row].size()) {
        open.pop_back();
        continue;
      }
      const bool first = top.next == 0;
      const uint32_t child = children_[top.row][top.next++];
      const uint32_t spare = top.spare;
      if (top.next == children_[top.row].size() && spare != kNone) --spares_;  // nobody takes it after this child
      enter(child, first ? kNone : DeltaStep::kSpare | spare, open);
    }
  }

  void enter(uint32_t row, uint32_t from, std::vector<Open>& open) {
    DeltaStep step{row, parents_[row] == kNone ? kNone : step_of_[parents_[row]], from, kNone};
    Open entered{row, 0, kNone};
    if (children_[row].size() > 1) {  // the first child comes next, the others later
      entered.spare = spares_++;
      step.to = DeltaStep::kSpare | entered.spare;
    }
    step_of_[row] = static_cast<uint32_t>(steps_.size());
    steps_.push_back(step);
    open.push_back(entered);
  }

  std::span<const uint32_t> parents_;
  const StateUse& use_;
  std::vector<uint32_t> roots_;
  std::vector<std::vector<uint32_t>> children_;  // by row
  std::vector<uint32_t> sizes_;                  // rows below and with a row
  std::vector<uint32_t> step_of_;                // by row
  std::vector<DeltaStep> steps_;
  uint32_t spares_ = 0;  // states that wait
};

}  // namespace

std::vector<uint32_t> parents_of(const RowBatch& batch, uint32_t position) {
  std::unordered_map<uint32_t, uint32_t> row_of_slot;
  for (uint32_t i = 0; i < batch.width(); ++i) {
    if (!row_of_slot.emplace(batch.rows[i].slot, i).second) refuse(i, "has the slot of another row");
  }
  std::vector<uint32_t> parents;
  for (uint32_t i = 0; i < batch.width(); ++i) {
    const Row& row = batch.rows[i];
    const auto found = row.position <= position ? row_of_slot.end() : row_of_slot.find(slot_before(batch, row));
    const bool follows = found != row_of_slot.end() && batch.rows[found->second].position + 1 == row.position;
    if (follows && found->second > i) refuse(i, "comes before the row that it follows");
    if (!follows && row.position != position) {
      refuse(i, "is at position " + std::to_string(row.position) +
                    "; allowed: behind another row of the pass, or at position " + std::to_string(position) +
                    ", behind the text that there is a state of");
    }
    parents.push_back(follows ? found->second : kNone);
  }
  return parents;
}

std::vector<DeltaStep> delta_walk(const RowBatch& batch, const StateUse& use) {
  const std::vector<uint32_t> parents = parents_of(batch, use.position);
  if (use.to == StateUse::kNowhere) return Walk(parents, use).steps();
  for (uint32_t i = 0; i < parents.size(); ++i) {
    if (parents[i] != (i == 0 ? kNone : i - 1))
      refuse(i, "does not follow the one before, and the state is to be kept");
  }
  std::vector<uint32_t> rows(parents.size());
  std::iota(rows.begin(), rows.end(), 0u);
  return delta_line(rows, use);
}

std::vector<DeltaStep> delta_line(std::span<const uint32_t> rows, const StateUse& use) {
  std::vector<DeltaStep> steps;
  for (uint32_t i = 0; i < rows.size(); ++i) {
    steps.push_back({rows[i], i == 0 ? kNone : i - 1, i == 0 ? use.from : kNone, kNone});
  }
  if (!steps.empty()) steps.back().to = use.to;
  return steps;
}

uint32_t most_spare_states(uint32_t width) {
  return std::max(1u, static_cast<uint32_t>(std::bit_width(width)));
}

}  // namespace canopy

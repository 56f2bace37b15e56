// The order in which recurrences go through the rows of a pass.

#include "engine/model/recurrent_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/base/expect_error.h"

namespace canopy::test {
namespace {

/// A tree behind 10 positions of text; parents[i] < i, -1 of the root.
RowBatch tree_of(const std::vector<int32_t>& parents) {
  RowBatch batch;
  for (uint32_t i = 0; i < parents.size(); ++i) batch.add_node(i, 1000 + i, 10, parents[i]);
  return batch;
}

/// Goes through the steps as a kernel does, a state being the rows that it has seen, and says what each row saw.
std::map<uint32_t, std::vector<uint32_t>> rows_seen(const std::vector<DeltaStep>& steps, uint32_t spares) {
  std::map<uint32_t, std::vector<uint32_t>> seen;
  std::vector<std::vector<uint32_t>> put_aside(spares);
  std::vector<uint32_t> state;
  for (size_t i = 0; i < steps.size(); ++i) {
    const DeltaStep& step = steps[i];
    if (step.from != DeltaStep::kNone) {
      state =
          (step.from & DeltaStep::kSpare) != 0 ? put_aside.at(step.from & ~DeltaStep::kSpare) : std::vector<uint32_t>();
    }
    if (step.parent != DeltaStep::kNone) {
      EXPECT_LT(step.parent, i);
    }
    state.push_back(step.row);
    seen[step.row] = state;
    if (step.to != DeltaStep::kNone && (step.to & DeltaStep::kSpare) != 0) {
      put_aside.at(step.to & ~DeltaStep::kSpare) = state;
    }
  }
  return seen;
}

void expect_paths(const std::vector<int32_t>& parents) {
  const auto width = static_cast<uint32_t>(parents.size());
  const std::vector<DeltaStep> steps = delta_walk(tree_of(parents), {3, 10, StateUse::kNowhere});
  ASSERT_EQ(steps.size(), width);
  const auto seen = rows_seen(steps, most_spare_states(width));
  for (uint32_t i = 0; i < width; ++i) {
    std::vector<uint32_t> path;
    for (auto row = static_cast<int32_t>(i); row >= 0; row = parents[static_cast<size_t>(row)]) {
      path.insert(path.begin(), static_cast<uint32_t>(row));
    }
    ASSERT_EQ(seen.at(i), path) << "row " << i << " of " << width;
  }
  for (const DeltaStep& step : steps) {
    const int32_t parent = parents[step.row];
    if (parent < 0) {
      EXPECT_EQ(step.from, 3u);
      EXPECT_EQ(step.parent, DeltaStep::kNone);
    } else {
      ASSERT_LT(step.parent, width);
      EXPECT_EQ(steps[step.parent].row, static_cast<uint32_t>(parent));
    }
  }
}

TEST(DeltaWalk, EachRowSeesItsPathAlone) {
  expect_paths({-1});
  expect_paths({-1, 0, 1, 2});
  expect_paths({-1, 0, 0, 0, 1, 2, 3});
  std::vector<int32_t> binary = {-1}, star = {-1};
  for (int32_t i = 1; i < 255; ++i) binary.push_back((i - 1) / 2);
  for (int32_t i = 1; i < 100; ++i) star.push_back(0);
  expect_paths(binary);
  expect_paths(star);
  std::mt19937 random(1);
  for (uint32_t width = 1; width < 150; ++width) {
    for (const uint32_t near : {2u, 5u, 1000u}) {
      std::vector<int32_t> parents = {-1};
      for (uint32_t i = 1; i < width; ++i) {
        parents.push_back(static_cast<int32_t>(i - 1 - random() % std::min(i, near)));
      }
      expect_paths(parents);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(DeltaWalk, AChainPutsNothingAside) {
  for (const DeltaStep& step : delta_walk(tree_of({-1, 0, 1, 2, 3}), {0, 10, StateUse::kNowhere})) {
    EXPECT_EQ(step.to, DeltaStep::kNone);
  }
}

TEST(DeltaWalk, RowsOfTextFollowEachOther) {
  RowBatch text;
  for (uint32_t i = 0; i < 5; ++i) text.add_text(i, 10 + i);
  const std::vector<DeltaStep> steps = delta_walk(text, {2, 10, 4});
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0], (DeltaStep{0, DeltaStep::kNone, 2, DeltaStep::kNone}));
  EXPECT_EQ(steps[4], (DeltaStep{4, 3, DeltaStep::kNone, 4}));
}

// In a text with a page table, a row is found by where its page lies.
TEST(DeltaWalk, SlotsComeFromThePageTable) {
  RowBatch text;
  text.pages = {5, 2};
  for (uint32_t i = 62; i < 66; ++i) text.add_text(i, i);
  EXPECT_EQ(parents_of(text, 62), (std::vector<uint32_t>{DeltaStep::kNone, 0, 1, 2}));
}

TEST(DeltaWalk, RefusesRowsWithoutAStateBehindThem) {
  RowBatch gap;
  gap.add_text(0, 10);
  gap.add_text(0, 12);
  expect_error("Row 1 of a pass over recurrent layers is at position 12", [&] { parents_of(gap, 10); });
  RowBatch early;
  early.add_text(0, 9);
  expect_error("is at position 9", [&] { parents_of(early, 10); });
  RowBatch backwards;
  backwards.add_text(0, 11);
  backwards.add_text(0, 10);
  expect_error("comes before the row that it follows", [&] { parents_of(backwards, 10); });
  RowBatch twice;
  twice.add_text(0, 10);
  twice.add_text(1, 10);
  expect_error("has the slot of another row", [&] { parents_of(twice, 10); });
  expect_error("the state is to be kept", [] { delta_walk(tree_of({-1, 0, 0}), {0, 10, 2}); });
}

}  // namespace
}  // namespace canopy::test

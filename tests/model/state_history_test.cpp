// The states that a text keeps, and that texts share.

#include "engine/model/recurrent_memory.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "engine/base/error.h"

namespace canopy::test {
namespace {

/// As a pass over so many rows that is committed.
StateUse advance(StateHistory& history, uint32_t tokens) {
  const StateUse use = history.begin(true);
  history.end(tokens);
  return use;
}

TEST(StateHistory, GoesOnFromPlaceToPlace) {
  StatePool pool(4);
  StateHistory history(pool);
  const StateUse first = advance(history, 5);
  EXPECT_EQ(first.from, StatePool::kEmpty);
  EXPECT_EQ(first.position, 0u);
  const StateUse second = advance(history, 3);
  EXPECT_EQ(second.from, first.to);
  EXPECT_EQ(second.position, 5u);
  EXPECT_NE(second.to, first.to);
  EXPECT_EQ(history.position(), 8u);
  EXPECT_EQ(pool.free(), 2u) << "a state that nobody goes back to is not kept";
}

TEST(StateHistory, APassThatIsNotCommittedChangesNothing) {
  StatePool pool(4);
  StateHistory history(pool);
  const StateUse kept = advance(history, 5);
  history.begin(true);
  const StateUse again = history.begin(false);
  EXPECT_EQ(again.from, kept.to);
  EXPECT_EQ(again.to, StateUse::kNowhere);
  EXPECT_EQ(pool.free(), 2u);
}

TEST(StateHistory, GoesBackToTheNearestState) {
  StatePool pool(8);
  StateHistory history(pool);
  advance(history, 10);
  history.keep();
  advance(history, 10);
  history.keep();
  const StateUse last = advance(history, 10);
  EXPECT_EQ(history.nearest(40), 30u);
  EXPECT_EQ(history.nearest(29), 20u);
  EXPECT_EQ(history.nearest(20), 20u);
  EXPECT_EQ(history.nearest(9), 0u);
  EXPECT_EQ(history.cut(25), 20u);
  const StateUse use = history.begin(true);
  EXPECT_EQ(use.position, 20u);
  EXPECT_EQ(use.from, last.from);
  EXPECT_EQ(history.cut(5), 0u);
  EXPECT_EQ(history.begin(false), (StateUse{StatePool::kEmpty, 0, StateUse::kNowhere}));
  EXPECT_EQ(pool.free(), 7u);
}

TEST(StateHistory, KeepsAStateEverySoManyPositions) {
  StatePool pool(16);
  StateHistory history(pool);
  for (uint32_t i = 0; i < 3 * StateHistory::kStep / 128; ++i) advance(history, 128);
  EXPECT_EQ(history.nearest(StateHistory::kStep + 100), StateHistory::kStep);
  EXPECT_EQ(history.nearest(2 * StateHistory::kStep + 100), 2 * StateHistory::kStep);
}

TEST(StateHistory, CopiesShareStates) {
  StatePool pool(6);
  StateHistory history(pool);
  advance(history, 10);
  history.keep();
  advance(history, 10);
  const uint32_t free = pool.free();
  std::optional<StateHistory> copy = history;
  EXPECT_EQ(pool.free(), free);
  advance(*copy, 4);
  EXPECT_EQ(history.position(), 20u);
  EXPECT_EQ(copy->position(), 24u);
  history.cut(0);
  EXPECT_EQ(copy->nearest(15), 10u) << "what the copy has of it stays";
  copy.reset();
  EXPECT_EQ(pool.free(), 5u);
}

// The thinnest of neighbours go first; half of the places stay for other texts.
TEST(StateHistory, ThinsOutItsStates) {
  StatePool pool(8);
  StateHistory history(pool);
  for (const uint32_t tokens : {100u, 10u, 100u, 100u, 100u, 100u}) {
    advance(history, tokens);
    history.keep();
  }
  EXPECT_EQ(history.checkpoints(), 4u);
  EXPECT_EQ(history.nearest(109), 0u) << "the state of 100 tokens has that of 110 beside it";
}

TEST(StateHistory, GivesUpItsOwnWhereNobodyElseDoes) {
  StatePool pool(4);
  StateHistory history(pool);
  advance(history, 10);
  history.keep();
  advance(history, 10);
  StateHistory other(pool);
  advance(other, 7);  // all places are taken
  advance(history, 1);
  EXPECT_EQ(history.checkpoints(), 0u);
  EXPECT_EQ(history.position(), 21u);
}

TEST(StateHistory, AsksOthersFirst) {
  StatePool pool(4);
  StateHistory history(pool);
  advance(history, 10);
  history.keep();
  advance(history, 10);
  StateHistory other(pool);
  advance(other, 7);
  pool.set_reclaim([&] { return other.position() > 0 && other.cut(0) == 0; });
  advance(history, 1);
  EXPECT_EQ(history.checkpoints(), 1u);
  EXPECT_EQ(other.position(), 0u);
}

TEST(StateHistory, SaysWhereThereIsNoPlace) {
  StatePool pool(3);
  StateHistory history(pool), other(pool), third(pool);
  advance(history, 10);
  advance(other, 10);
  try {
    third.begin(true);
    FAIL() << "there is no place";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string_view(e.what()).find("all 3 that there are hold those of texts"), std::string_view::npos);
  }
  EXPECT_EQ(history.position(), 10u);
}

TEST(StateHistory, TakesOverTheStatesOfItsBeginning) {
  StatePool pool(8);
  StateHistory beginning(pool), longer(pool);
  advance(beginning, 10);
  beginning.keep();
  advance(beginning, 10);
  advance(longer, 30);
  longer.adopt(beginning);
  EXPECT_EQ(longer.nearest(29), 20u);
  EXPECT_EQ(longer.nearest(19), 10u);
}

}  // namespace
}  // namespace canopy::test

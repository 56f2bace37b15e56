#include "engine/session/engine_client.h"

#include <gtest/gtest.h>

namespace canopy::test {
namespace {

RoundFinished round_of(uint32_t number, uint32_t nodes) {
  RoundRecord record;
  record.round = number;
  record.width = nodes;
  record.nodes.resize(nodes);
  record.choice.candidates.resize(8);
  record.choice.reason = "as it was planned";
  record.emitted = {number, number + 1};
  RoundFinished finished;
  finished.reply_id = 3;
  finished.round = std::make_shared<const RoundRecord>(std::move(record));
  finished.text_ends = {number, number};
  return finished;
}

TEST(EventQueue, KeepsEventsInOrderUntilTheyAreTaken) {
  EventQueue queue;
  queue.push(LoadProgress{"Loading weights", 1, 2});
  queue.push(round_of(0, 4));
  queue.push(Failure{});
  const std::vector<Event> events = queue.take();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<LoadProgress>(events[0]));
  EXPECT_TRUE(std::holds_alternative<RoundFinished>(events[1]));
  EXPECT_TRUE(std::holds_alternative<Failure>(events[2]));
  EXPECT_TRUE(queue.take().empty());
}

TEST(EventQueue, OnlyNeighboursOfOneKindMerge) {
  EventQueue queue;
  for (uint32_t i = 0; i < 5; ++i) queue.push(TextDelta{1, "ab", i + 1, 10 + i, 1.0});
  queue.push(TextDelta{2, "c", 1, 20, 1.0});
  queue.push(round_of(0, 2));
  queue.push(TextDelta{2, "d", 2, 21, 1.0});
  for (uint32_t i = 0; i < 5; ++i) queue.push(PrefillProgress{2, i, 5});
  queue.push(PrefillProgress{3, 1, 5});
  for (uint32_t i = 0; i < 5; ++i) queue.push(CalibrationProgress{i, 9, 1.0});
  for (uint64_t i = 0; i < 5; ++i) queue.push(MemoryUse{.weights = i});
  const std::vector<Event> events = queue.take();
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(std::get<TextDelta>(events[0]).text, "ababababab");
  EXPECT_EQ(std::get<TextDelta>(events[0]).reply_tokens, 5u);
  EXPECT_EQ(std::get<TextDelta>(events[1]).text, "c");
  EXPECT_EQ(std::get<TextDelta>(events[3]).text, "d");
  EXPECT_EQ(std::get<PrefillProgress>(events[4]).done, 4u);
  EXPECT_EQ(std::get<CalibrationProgress>(events[6]).done, 4u);
  EXPECT_EQ(std::get<MemoryUse>(events[7]).weights, 4u);
}

TEST(EventQueue, RoundsThatNobodyTakesStaySmallAndTheNewestWhole) {
  const size_t bulk = bulk_of(*round_of(0, 64).round);
  ASSERT_GT(bulk, 64 * sizeof(RoundNode));
  EventQueue queue(10 * bulk);
  constexpr uint32_t rounds = 5000;
  for (uint32_t i = 0; i < rounds; ++i) {
    queue.push(round_of(i, 64));
    queue.push(TextDelta{3, "x", i + 1, i, 1.0});
  }
  const std::vector<Event> events = queue.take();
  ASSERT_EQ(events.size(), 2 * rounds);
  size_t held = 0;
  for (uint32_t i = 0; i < rounds; ++i) {
    const auto& finished = std::get<RoundFinished>(events[2 * i]);
    held += bulk_of(*finished.round);
    EXPECT_EQ(finished.abridged, i + 10 < rounds) << i;
    EXPECT_EQ(finished.round->nodes.size(), finished.abridged ? 0u : 64u);
    EXPECT_EQ(finished.round->round, i);
    EXPECT_EQ(finished.round->width, 64u);
    EXPECT_EQ(finished.round->emitted.size(), 2u);
    EXPECT_EQ(finished.round->choice.reason, "as it was planned");
    EXPECT_EQ(finished.text_ends.size(), 2u);
  }
  EXPECT_LE(held, 10 * bulk);
  // Taking events makes room for whole rounds again.
  for (uint32_t i = 0; i < 10; ++i) queue.push(round_of(i, 64));
  for (const Event& event : queue.take()) EXPECT_FALSE(std::get<RoundFinished>(event).abridged);
}

TEST(EventQueue, ARoundLargerThanAllThatMayWaitIsAbridgedAtOnce) {
  EventQueue queue(1000);
  queue.push(round_of(0, 1000));
  queue.push(round_of(1, 1));
  const std::vector<Event> events = queue.take();
  EXPECT_TRUE(std::get<RoundFinished>(events[0]).abridged);
  EXPECT_FALSE(std::get<RoundFinished>(events[1]).abridged);
}

}  // namespace
}  // namespace canopy::test

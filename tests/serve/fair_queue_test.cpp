// Whose turn it is, without replies and without a clock.

#include "engine/serve/fair_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace canopy {
namespace {

std::vector<int> all_of(FairQueue<int>& queue) {
  std::vector<int> items;
  while (!queue.empty()) items.push_back(queue.pop());
  return items;
}

TEST(FairQueue, clients_take_turns_and_each_keeps_its_order) {
  FairQueue<int> queue;
  EXPECT_EQ(queue.next(), nullptr);
  for (int i = 1; i <= 5; ++i) queue.push("many", 0, i);
  queue.push("one", 0, 11);
  for (int i = 21; i <= 23; ++i) queue.push("some", 0, i);
  EXPECT_EQ(queue.size(), 9u);
  ASSERT_NE(queue.next(), nullptr);
  EXPECT_EQ(*queue.next(), 1);
  EXPECT_EQ(all_of(queue), (std::vector<int>{1, 11, 21, 2, 22, 3, 23, 4, 5}));
  EXPECT_EQ(queue.size(), 0u);
}

// However many a client puts, another waits for one of them at most.
TEST(FairQueue, who_asks_all_the_time_does_not_hold_up_others) {
  FairQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.push("greedy", 0, 1);
  for (int i = 0; i < 50; ++i) {
    queue.push("rare", 0, 2);
    queue.push("greedy", 0, 1);
    const int first = queue.pop(), second = queue.pop();
    EXPECT_EQ(first + second, 3) << i << ": one of each";
  }
}

TEST(FairQueue, a_client_that_asks_anew_stands_behind_those_that_wait) {
  FairQueue<int> queue;
  queue.push("a", 0, 1);
  queue.push("b", 0, 2);
  EXPECT_EQ(queue.pop(), 1);
  queue.push("a", 0, 3);
  EXPECT_EQ(all_of(queue), (std::vector<int>{2, 3}));
}

TEST(FairQueue, a_higher_priority_comes_before_all_lower_ones) {
  FairQueue<int> queue;
  queue.push("a", 0, 1);
  queue.push("a", 2, 2);
  queue.push("b", -1, 3);
  queue.push("b", 2, 4);
  queue.push("c", 0, 5);
  EXPECT_EQ(all_of(queue), (std::vector<int>{2, 4, 1, 5, 3}));
}

TEST(FairQueue, what_is_erased_takes_no_turn) {
  FairQueue<int> queue;
  for (int i = 1; i <= 3; ++i) queue.push("a", 0, i);
  queue.push("b", 0, 4);
  queue.push("c", 1, 5);
  const auto is_four = [](int item) { return item == 4; };
  ASSERT_NE(queue.find_if(is_four), nullptr);
  queue.erase_if([](int item) { return item != 2 && item != 3; });
  EXPECT_EQ(queue.find_if(is_four), nullptr);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(all_of(queue), (std::vector<int>{2, 3}));
  queue.push("a", 0, 6);
  queue.erase_if([](int) { return true; });
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace canopy

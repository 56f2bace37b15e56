#include "engine/model/page_table.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/base/expect_error.h"

namespace canopy::test {
namespace {

using Pages = std::vector<uint32_t>;

Pages pages_of(const PageTable& table) {
  return {table.pages().begin(), table.pages().end()};
}

TEST(PageTable, TakesPagesAsATextGrowsAndGivesThemBack) {
  PagePool pool(4);
  PageTable table(pool);
  EXPECT_TRUE(table.reserve(0, 1).empty());
  EXPECT_EQ(pages_of(table), (Pages{0}));
  EXPECT_TRUE(table.reserve(1, 64).empty());
  EXPECT_EQ(table.positions(), 64u);
  EXPECT_TRUE(table.reserve(64, 193).empty());
  EXPECT_EQ(pages_of(table), (Pages{0, 1, 2, 3}));
  EXPECT_EQ(pool.free(), 0u);
  table.cut(64);
  EXPECT_EQ(pages_of(table), (Pages{0}));
  table.cut(65);  // it has no more
  EXPECT_EQ(table.positions(), 64u);
  EXPECT_EQ(pool.free(), 3u);
}

TEST(PageTable, CopiesOnlyTheBeginningOfASharedPageThatIsWrittenTo) {
  PagePool pool(8);
  PageTable table(pool);
  table.reserve(0, 130);
  PageTable fork(table);
  EXPECT_EQ(pool.free(), 5u);
  EXPECT_EQ(pool.users(2), 2u);
  EXPECT_EQ(fork.reserve(130, 131), (std::vector<KvMove>{{128, 192}, {129, 193}}));
  EXPECT_EQ(pages_of(fork), (Pages{0, 1, 3}));
  EXPECT_EQ(pool.users(2), 1u);
  EXPECT_TRUE(table.reserve(130, 140).empty()) << "its own by now";
  PageTable whole(table);
  EXPECT_TRUE(whole.reserve(192, 200).empty()) << "begins a page";
  EXPECT_EQ(pages_of(whole), (Pages{0, 1, 2, 4}));
  PageTable cut(table);
  cut.cut(64);
  EXPECT_TRUE(cut.reserve(64, 70).empty());
  EXPECT_EQ(pages_of(cut), (Pages{0, 5}));
  PageTable within(table);
  within.cut(70);
  EXPECT_EQ(within.reserve(70, 71).size(), 6u);
}

TEST(PageTable, RefusesWhatIsNotThereAndChangesNothing) {
  PagePool pool(3);
  PageTable table(pool);
  table.reserve(0, 100);
  PageTable fork(table);
  try {
    fork.reserve(100, 130);
    FAIL() << "too many pages were given";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("needs 2 more pages of 64 positions"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("only 1 of 3 are available"), std::string::npos) << e.what();
  }
  EXPECT_EQ(pages_of(fork), pages_of(table));
  EXPECT_EQ(pool.free(), 1u);
  EXPECT_EQ(fork.reserve(100, 101).size(), 36u);
}

TEST(PageTable, AsksOthersForTheirPagesAsOftenAsItTakes) {
  PagePool pool(4);
  PageTable old(pool);
  old.reserve(0, 256);
  PageTable table(pool);
  uint32_t asked = 0;
  pool.set_reclaim([&] {
    if (asked == 3) return false;
    old.cut((3 - asked++) * kPagePositions);
    return true;
  });
  EXPECT_TRUE(table.reserve(0, 100).empty());
  EXPECT_EQ(asked, 2u);
  EXPECT_EQ(pages_of(table), (Pages{2, 3}));
  EXPECT_THROW(table.reserve(100, 256), Error);
  EXPECT_EQ(asked, 3u) << "all was given up, and it was not enough";
  EXPECT_EQ(pages_of(table), (Pages{2, 3}));
  pool.set_reclaim({});
  EXPECT_THROW(old.reserve(0, 200), Error);
}

// A page that the other one of two gives up needs no copy any more.
TEST(PageTable, WhatOthersGiveUpMayBeThePageThatWasShared) {
  PagePool pool(2);
  PageTable old(pool);
  old.reserve(0, 100);
  PageTable fork(old);
  pool.set_reclaim([&] {
    old.cut(64);
    return true;
  });
  EXPECT_TRUE(fork.reserve(100, 101).empty());
  EXPECT_EQ(pages_of(fork), (Pages{0, 1}));
}

TEST(PageTable, PlansLongContexts) {
  PagePool pool(pages_for(131072));
  EXPECT_EQ(pool.pages(), 2048u);
  PageTable table(pool);
  table.reserve(0, 131072);
  EXPECT_EQ(pool.free(), 0u);
  EXPECT_EQ(table.pages().back(), 2047u);
}

}  // namespace
}  // namespace canopy::test

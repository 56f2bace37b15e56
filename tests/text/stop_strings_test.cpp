#include "engine/text/chat_turn.h"

#include <gtest/gtest.h>

namespace canopy {
namespace {

std::string one_by_one(StopStrings& stops, std::string_view text) {
  std::string shown;
  for (const char c : text) shown += stops.push(std::string_view(&c, 1));
  return shown;
}

TEST(StopStrings, WithNoneTextPassesAtOnce) {
  StopStrings stops({""});
  EXPECT_EQ(stops.push("hello"), "hello");
  EXPECT_EQ(stops.finish(), "");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, HoldsBackWhatMayBeginOneAndReleasesItWhenItIsNot) {
  StopStrings stops({"\nUser:"});
  EXPECT_EQ(stops.push("Hi\nUs"), "Hi");
  EXPECT_EQ(stops.push("ual"), "\nUsual");
  EXPECT_EQ(stops.push("\n"), "");
  EXPECT_EQ(stops.finish(), "\n");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, NothingFromTheStopOnComesOut) {
  StopStrings stops({"END"});
  EXPECT_EQ(stops.push("abEN"), "ab");
  EXPECT_EQ(stops.push("D more"), "");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("and more"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, TheEarliestOfSeveralCounts) {
  StopStrings stops({"world", "lo w"});
  EXPECT_EQ(stops.met(), "");
  EXPECT_EQ(stops.push("hello world"), "hel");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.met(), "lo w");
}

TEST(StopStrings, OverlappingBeginningsAreFoundHoweverTheTextIsCut) {
  StopStrings stops({"aab"});
  EXPECT_EQ(one_by_one(stops, "xaaaab!"), "xaa");
  EXPECT_TRUE(stops.stopped());
}

}  // namespace
}  // namespace canopy

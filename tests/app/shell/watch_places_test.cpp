// Where the parts of Watch lie, at every size and scale of a window.

#include "app/shell/watch_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace canopy::test {
namespace {

using app::WatchPlaces;
using app::WatchRect;

constexpr float kBar = 48;

bool overlap(const WatchRect& a, const WatchRect& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

TEST(WatchPlaces, TheTreeHasThreeFifthsOfTheHeight) {
  for (float width = 900; width <= 2560; width += 20) {
    for (float height = 600; height <= 1440; height += 20) {
      const WatchPlaces at = app::watch_places(width, height, kBar);
      ASSERT_GE(at.tree.height, 0.6f * height) << width << " x " << height;
    }
  }
}

TEST(WatchPlaces, AlsoWhereTheInterfaceIsLarge) {
  for (const auto& [width, height] : {std::pair(640.0f, 400.0f), std::pair(960.0f, 540.0f), std::pair(1280.0f, 720.0f)})
    EXPECT_GE(app::watch_places(width, height, kBar).tree.height, 0.6f * height) << width << " x " << height;
}

TEST(WatchPlaces, NoPartOverlapsAnotherOrLeavesTheWindow) {
  for (float width = 320; width <= 2600; width += 37) {
    for (float height = 320; height <= 1500; height += 31) {
      const WatchPlaces at = app::watch_places(width, height, kBar);
      const std::array<WatchRect, 7> parts = {at.chat, at.numbers, at.caption, at.tree, at.legend, at.budget, at.strip};
      for (size_t i = 0; i < parts.size(); ++i) {
        if (!parts[i].shown()) continue;
        ASSERT_GE(parts[i].y, kBar);
        ASSERT_LE(parts[i].y + parts[i].height, height + 0.5f) << i << " in " << width << " x " << height;
        ASSERT_LE(parts[i].x + parts[i].width, width + 0.5f);
        for (size_t j = i + 1; j < parts.size(); ++j)
          if (parts[j].shown()) {
            ASSERT_FALSE(overlap(parts[i], parts[j])) << i << ", " << j << " in " << width << " x " << height;
          }
      }
    }
  }
}

TEST(WatchPlaces, TheDesignsSizesHaveAllParts) {
  const WatchPlaces at = app::watch_places(1280, 800, kBar);
  for (const WatchRect& part : {at.chat, at.numbers, at.caption, at.tree, at.legend, at.budget, at.strip})
    EXPECT_TRUE(part.shown());
  EXPECT_TRUE(at.subtitles);
  EXPECT_FLOAT_EQ(at.chat.width, 384) << "30 % of the window";
  EXPECT_FLOAT_EQ(app::watch_places(1600, 1000, kBar).chat.width, 480);
  EXPECT_FLOAT_EQ(app::watch_places(2560, 1440, kBar).chat.width, 768);
  const WatchPlaces small = app::watch_places(900, 600, kBar);
  EXPECT_FLOAT_EQ(small.chat.width, 288);
  EXPECT_FLOAT_EQ(small.chat.y + small.chat.height, 600) << "a narrow window has all its height for the chat";
  EXPECT_TRUE(small.numbers.shown());
  EXPECT_FALSE(small.subtitles);
}

TEST(WatchPlaces, TheChatIsAsWideAsItWasMadeAndLeavesRoomForTheTree) {
  for (float width = 480; width <= 2600; width += 17) {
    for (const float wanted : {1.0f, 300.0f, 512.0f, 5000.0f}) {
      const WatchPlaces at = app::watch_places(width, 800, kBar, false, {false, wanted});
      ASSERT_GE(at.chat.width, 180) << width;
      ASSERT_GE(at.tree.width, 256) << width << ": 260 less the gap";
      if (wanted >= 180 && wanted + 260 <= width) {
        ASSERT_FLOAT_EQ(at.chat.width, wanted) << width;
      }
      ASSERT_FLOAT_EQ(at.edge.x, at.chat.x + at.chat.width);
    }
  }
  EXPECT_FALSE(app::watch_places(400, 800, kBar).edge.shown()) << "the chat is below the tree";
}

TEST(WatchPlaces, TheListStandsAtTheLeftWhereThereIsRoom) {
  for (const float width : {1100.0f, 1280.0f, 1920.0f, 2560.0f}) {
    const WatchPlaces at = app::watch_places(width, 800, kBar, false, {true, 0});
    ASSERT_TRUE(at.list.shown()) << width;
    EXPECT_GE(at.chat.width, 288) << width;
    EXPECT_FLOAT_EQ(at.list.y + at.list.height, 800);
    for (const WatchRect& part : {at.chat, at.numbers, at.caption, at.tree, at.legend, at.budget, at.strip}) {
      EXPECT_TRUE(part.shown()) << width;
      EXPECT_FALSE(overlap(at.list, part)) << width;
    }
    EXPECT_FLOAT_EQ(at.tree.x + at.tree.width, width);
  }
  EXPECT_FALSE(app::watch_places(1099, 800, kBar, false, {true, 0}).list.shown());
}

// From 640x480 on, at every scale of the interface: 300% of it leaves 213x160.
TEST(WatchPlaces, TheChatHasRoomForQuestionReplyAndWhatIsTyped) {
  for (float width = 213; width <= 2600; width += 19) {
    for (float height = 160; height <= 1500; height += 23) {
      const WatchPlaces at = app::watch_places(width, height, kBar);
      ASSERT_GE(at.chat.width, 180) << width << " x " << height;
      ASSERT_GE(at.chat.height, std::min(120.0f, height - kBar - 4)) << width << " x " << height;
      if (width >= 480 && height >= 480) {
        ASSERT_GE(at.chat.height, 380) << width << " x " << height;
      }
      if (width >= 480 || height >= 320) {
        ASSERT_TRUE(at.tree.shown()) << width << " x " << height;
      }
    }
  }
}

}  // namespace
}  // namespace canopy::test

// "Share": the commands, the file that is asked for, and what the box shows.

#include "app/state/recording.h"

#include <gtest/gtest.h>

#include <tuple>

#include "app/state/view_model.h"

namespace canopy::app {
namespace {

TEST(ShareState, OpensOnlyWhereThereIsARound) {
  ShareState state;
  update(state, ShowShare{}, false);
  EXPECT_FALSE(state.box_shown);
  update(state, ShowShare{}, true);
  EXPECT_TRUE(state.box_shown);
  update(state, ShowShare{false}, true);
  EXPECT_FALSE(state.box_shown);
}

TEST(ShareState, AsksForOneFileAtATimeWithTheEndingOfItsKind) {
  ShareState state;
  for (const auto& [kind, typed, path] :
       {std::tuple(ShareKind::png, "/tmp/a", "/tmp/a.png"), std::tuple(ShareKind::svg, "/tmp/a.svg", "/tmp/a.svg"),
        std::tuple(ShareKind::page, "/tmp/a.png", "/tmp/a.png.html"),
        std::tuple(ShareKind::animation, "/tmp/a.png", "/tmp/a.png.svg")}) {
    const ShareWish wish = update(state, StartShare{kind, typed}, true);
    ASSERT_TRUE(wish.start.has_value());
    EXPECT_EQ(wish.start->path, path);
    EXPECT_TRUE(state.running);
    EXPECT_FALSE(update(state, StartShare{kind, typed}, true).start) << "one at a time";
    end_share(state, wish.start->path, "");
    EXPECT_EQ(state.saved, path);
  }
  EXPECT_FALSE(update(state, StartShare{ShareKind::png, ""}, true).start) << "no name";
  EXPECT_FALSE(update(state, StartShare{ShareKind::png, "/tmp/a"}, false).start) << "no round";
}

TEST(ShareState, TellsHowFarItIsAndIsCancelled) {
  ShareState state;
  EXPECT_FALSE(update(state, StopShare{}, true).stop) << "nothing runs";
  update(state, StartShare{ShareKind::page, "/tmp/a"}, true);
  EXPECT_LT(state.fraction(), 0);
  share_progress(state, 3, 12);
  EXPECT_FLOAT_EQ(state.fraction(), 0.25f);
  EXPECT_TRUE(update(state, StopShare{}, true).stop);
  end_share(state, "", "");
  EXPECT_FALSE(state.running);
  EXPECT_TRUE(state.saved.empty());
  EXPECT_LT(state.fraction(), 0);
}

TEST(ShareState, ForgetsTheLastFileWhenAnotherKindIsChosen) {
  ShareState state;
  end_share(state, "/tmp/a.png", "");
  update(state, ChooseShare{ShareKind::page}, true);
  EXPECT_TRUE(state.saved.empty());
  EXPECT_EQ(state.kind, ShareKind::page);
}

TEST(ShareState, SuggestsNamesThatSayWhatTheyAre) {
  EXPECT_EQ(share_name(ShareKind::png, 11, ""), "canopy-pass-12.png");
  EXPECT_EQ(share_name(ShareKind::page, 11, ""), "canopy-reply.html");
  EXPECT_EQ(share_name(ShareKind::svg, 0, "/a/code.canopytrace"), "canopy-code-1.svg");
  EXPECT_EQ(share_name(ShareKind::page, 0, "/a/canopy-2026.canopytrace"), "canopy-2026.html");
  EXPECT_EQ(share_name(ShareKind::animation, 8, "/a/code.canopytrace"), "canopy-code-moving-9.svg");
}

TEST(ShareState, IsPartOfTheView) {
  ViewModel view;
  EXPECT_FALSE(update(view, UiCommand(ShareCommand(StartShare{ShareKind::png, "/tmp/a"}))).share.start)
      << "there is no round";
}

}  // namespace
}  // namespace canopy::app

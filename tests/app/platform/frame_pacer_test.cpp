#include "app/platform/desktop_window.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace canopy::app {
namespace {

/// Draws as the pacer says for some seconds; returns the number of frames and the seconds spent on them.
struct Drawn {
  int frames = 0;
  double cost = 0;
};

Drawn simulate(FramePacer& pacer, double from, double seconds, double cost, double event_every) {
  Drawn drawn;
  double now = from, next_event = from;
  while (now < from + seconds) {
    if (event_every > 0 && now >= next_event) {
      pacer.on_engine_event(true);
      next_event += event_every;
    }
    const double wait = pacer.wait(now);
    if (wait <= 0) {
      pacer.on_frame(now, cost);
      now += cost;
      drawn.cost += cost;
      ++drawn.frames;
    } else {
      now += std::min(wait, event_every > 0 ? std::max(1e-4, next_event - now) : 10.0);
    }
  }
  return drawn;
}

TEST(FramePacer, AnIdleWindowDrawsAtMostFifteenFramesInTenSeconds) {
  FramePacer pacer(false);
  EXPECT_LE(simulate(pacer, 0, 10, 0.002, 0).frames, 15);
  EXPECT_EQ(pacer.wait(100), FramePacer::kNever);
}

TEST(FramePacer, DrawsAtMostThirtyFramesASecondWhileGenerating) {
  FramePacer pacer(false);
  simulate(pacer, 0, 1, 0.002, 0.001);
  const Drawn drawn = simulate(pacer, 1, 10, 0.002, 0.001);
  EXPECT_LE(drawn.frames, 301);
  EXPECT_GE(drawn.frames, 250);
}

TEST(FramePacer, ASoftwareDeviceSpendsAtMostATenthOnDrawingWhileGenerating) {
  FramePacer pacer(true);
  simulate(pacer, 0, 2, 0.054, 0.01);
  const Drawn drawn = simulate(pacer, 2, 20, 0.054, 0.01);
  EXPECT_LE(drawn.cost, 20 * 0.1 + 0.054);
  EXPECT_GE(drawn.frames, 20);
}

TEST(FramePacer, InputIsAnsweredAtOnceAndSettlesInThreeFrames) {
  FramePacer pacer(false);
  simulate(pacer, 0, 1, 0.002, 0);
  pacer.on_input();
  EXPECT_EQ(pacer.wait(5), 0);
  EXPECT_EQ(simulate(pacer, 5, 0.2, 0.002, 0).frames, 3);
}

// Dear ImGui shows a tooltip only after the mouse has rested, when no other event would bring a frame.
TEST(FramePacer, FramesComeOnceMoreWhenTheMouseHasRested) {
  FramePacer pacer(false);
  simulate(pacer, 0, 2, 0.002, 0);
  EXPECT_EQ(pacer.wait(2), FramePacer::kNever);
  pacer.on_input();
  EXPECT_EQ(simulate(pacer, 5, 0.4, 0.002, 0).frames, 3);
  EXPECT_NEAR(pacer.wait(5.4), 0.1, 0.05);
  EXPECT_EQ(simulate(pacer, 5.4, 1, 0.002, 0).frames, 3);
  EXPECT_EQ(pacer.wait(7), FramePacer::kNever);
}

/// Moves the mouse a hundred times a second for ten seconds; returns the share of the time that drawing took.
double share_of_moving(FramePacer& pacer, double cost) {
  double spent = 0, now = 10;
  for (double next_move = now; now < 20;) {
    for (; next_move <= now; next_move += 0.01) pacer.on_pointer();
    const double wait = pacer.wait(now);
    if (wait > 0) {
      now += std::min(wait, next_move - now);
      continue;
    }
    pacer.on_frame(now, cost);
    now += cost;
    spent += cost;
  }
  return spent / 10;
}

TEST(FramePacer, TheMouseAloneTakesNoMoreThanAQuarterOfASoftwareDevice) {
  FramePacer pacer(true);
  simulate(pacer, 0, 2, 0.054, 0);
  const double share = share_of_moving(pacer, 0.054);
  EXPECT_LE(share, 0.26);
  EXPECT_GE(share, 0.2) << "and frames go on coming";
  FramePacer card(false);
  simulate(card, 0, 2, 0.002, 0);
  EXPECT_GE(share_of_moving(card, 0.002), 0.1) << "about 60 frames a second on a graphics card";
}

// The first move after a rest lights up what is under the mouse at once, and the card or tooltip comes when it rests.
TEST(FramePacer, AMoveAfterARestIsAnsweredAtOnce) {
  FramePacer pacer(true);
  simulate(pacer, 0, 2, 0.054, 0);
  EXPECT_EQ(pacer.wait(5), FramePacer::kNever);
  pacer.on_pointer();
  EXPECT_EQ(pacer.wait(5), 0);
  EXPECT_EQ(simulate(pacer, 5, 0.4, 0.054, 0).frames, 2);
  EXPECT_GE(simulate(pacer, 5.4, 1, 0.054, 0).frames, 1);
}

TEST(FramePacer, TheLastEngineEventIsDrawnToItsEnd) {
  FramePacer pacer(true);
  simulate(pacer, 0, 2, 0.01, 0.05);
  pacer.on_engine_event(false);
  EXPECT_EQ(simulate(pacer, 2, 5, 0.01, 0).frames, 3);
}

// gui.md, criterion 22: frames are drawn while rounds play, and none once they stand still.
TEST(FramePacer, DrawsWhileSomethingMoves) {
  FramePacer pacer(false);
  double now = 1;
  const auto frames_in = [&](double seconds) {
    int frames = 0;
    for (const double end = now + seconds; now < end;) {
      const double wait = pacer.wait(now);
      if (wait == FramePacer::kNever) return frames;
      now += wait;
      pacer.on_frame(now, 0.001);
      ++frames;
    }
    return frames;
  };
  pacer.on_motion(true);
  EXPECT_NEAR(frames_in(2), 120, 4);
  pacer.on_motion(false);
  EXPECT_LE(frames_in(10), 3);
}

TEST(FramePacer, MotionTakesNoMoreThanHalfOfASoftwareDevice) {
  FramePacer pacer(true);
  for (double now = 0; now < 1; now += 0.05) pacer.on_frame(now, 0.05);
  pacer.on_motion(true);
  EXPECT_NEAR(pacer.wait(0.95), 0.1, 0.01);
}

}  // namespace
}  // namespace canopy::app

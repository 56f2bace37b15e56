// What takes time and can be cancelled: what is said of it, and what its Cancel asks of the engine.

#include "app/state/view_model.h"

#include <gtest/gtest.h>

#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

ViewModel view_with_pair() {
  ViewModel view;
  ModelReady model = test::small_model();
  model.drafter = "drafter.gguf";
  update(view, Event(model));
  view.rounds.trace_path = "/a/run.canopytrace";
  return view;
}

template <class T>
bool asks_for(const Effects& effects) {
  return effects.engine.size() == 1 && std::holds_alternative<T>(effects.engine[0]);
}

TEST(WorkUnderWay, OfAnIdleWindowIsNothing) {
  ViewModel idle = view_with_pair();
  EXPECT_FALSE(work_under_way(idle));
  EXPECT_TRUE(update(idle, UiCommand(WhatIfCommand(StopDense{}))).engine.empty());
}

TEST(WorkUnderWay, TheCheckOfARecordingTellsItsReply) {
  ViewModel view = view_with_pair();
  update(view, UiCommand(VerifyCommand(VerifyShown{})));
  update(view, Event(VerifyProgress{1, 3, 20, 80}));
  const auto work = recording_work(view);
  ASSERT_TRUE(work);
  EXPECT_EQ(work->progress.stage, "Checking reply 2 of 3");
  EXPECT_FLOAT_EQ(work->progress.fraction(), 0.25f);
  EXPECT_TRUE(asks_for<CancelVerification>(update(view, work->cancel)));
  update(view, Event(Failure{ErrorKind::cancelled, "The check was cancelled", "", 0, false, 0}));
  EXPECT_FALSE(work_under_way(view));
  EXPECT_TRUE(view.cards.empty());
}

TEST(WorkUnderWay, DraftsBehindEveryTokenAreCancelledWithoutACard) {
  ViewModel view = view_with_pair();
  ASSERT_TRUE(asks_for<DensifyTrace>(update(view, UiCommand(WhatIfCommand(MakeDense{})))));
  update(view, Event(DensifyProgress{300, 400}));
  const auto work = work_under_way(view);
  ASSERT_TRUE(work);
  EXPECT_FLOAT_EQ(work->progress.fraction(), 0.75f);
  EXPECT_TRUE(asks_for<CancelDensify>(update(view, work->cancel)));
  TraceDensified done{"/a/run.canopytrace", 0, ""};
  done.cancelled = true;
  update(view, Event(done));
  EXPECT_FALSE(work_under_way(view));
  EXPECT_TRUE(view.cards.empty());
  EXPECT_TRUE(view.what_if.dense_trace.empty()) << "nothing new is there to be opened";
  EXPECT_TRUE(asks_for<DensifyTrace>(update(view, UiCommand(WhatIfCommand(MakeDense{}))))) << "it can go on";
}

TEST(WorkUnderWay, ARecordingThatEndsDraftsWithoutBeingAskedHere) {
  ViewModel view = view_with_pair();
  update(view, Event(DensifyProgress{3, 4}));
  EXPECT_TRUE(recording_work(view));
  update(view, Event(Recording{false, "run.canopytrace", 10, 2, ""}));
  EXPECT_FALSE(recording_work(view));
}

}  // namespace
}  // namespace canopy::app

// The check of a recording: when it is possible, what it asks of the engine, and what the user hears.

#include "app/state/recording.h"

#include <gtest/gtest.h>

#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

ViewModel view_with_recording() {
  ViewModel view;
  update(view, Event(test::small_model()));
  view.rounds.trace_path = "/a/run.canopytrace";
  return view;
}

RecordingVerified same_text() {
  RecordingVerified told;
  told.path = "/a/run.canopytrace";
  told.recorded_on = "NVIDIA H200";
  told.replies = 3;
  told.tokens = 412;
  return told;
}

TEST(VerifyState, NeedsARecordingAndAModel) {
  ViewModel view;
  EXPECT_EQ(verify_obstacle(view), "Open a recording first");
  EXPECT_TRUE(update(view, UiCommand(VerifyCommand(VerifyShown{}))).engine.empty());
  view.rounds.trace_path = "/a/run.canopytrace";
  EXPECT_EQ(verify_obstacle(view), "Needs the model that the recording was made with");
}

TEST(VerifyState, AsksOnceAndSaysThatTheTextIsTheSame) {
  ViewModel view = view_with_recording();
  const Effects effects = update(view, UiCommand(VerifyCommand(VerifyShown{})));
  ASSERT_EQ(effects.engine.size(), 1u);
  EXPECT_EQ(std::get<VerifyRecording>(effects.engine[0]).path, "/a/run.canopytrace");
  EXPECT_TRUE(update(view, UiCommand(VerifyCommand(VerifyShown{}))).engine.empty()) << "one at a time";
  update(view, Event(VerifyProgress{1, 3, 20, 128}));
  EXPECT_EQ(view.verify.progress.done, 20u);
  update(view, Event(same_text()));
  EXPECT_FALSE(view.verify.running);
  EXPECT_EQ(view.chat.note,
            "Checked here: the text is the one that plain decoding writes, 3 replies, 412 tokens. It was recorded on "
            "NVIDIA H200.");
  EXPECT_TRUE(view.cards.empty());
}

TEST(VerifyState, AnotherTextStaysOnTheScreen) {
  ViewModel view = view_with_recording();
  update(view, UiCommand(VerifyCommand(VerifyShown{})));
  RecordingVerified told = same_text();
  told.difference = "Reply 1 differs at token 3 of 24.";
  told.skipped = 1;
  update(view, Event(told));
  ASSERT_EQ(view.cards.size(), 1u);
  EXPECT_EQ(view.cards[0].title, "The recording has another text");
  EXPECT_NE(view.cards[0].detail.find("token 3 of 24. 1 reply was not checked."), std::string::npos)
      << view.cards[0].detail;
}

TEST(VerifyState, ItsResultIsToldEvenIfSomethingElseFailedMeanwhile) {
  ViewModel view = view_with_recording();
  update(view, UiCommand(VerifyCommand(VerifyShown{})));
  Failure calibration;  // that ran before it and was cancelled
  calibration.kind = ErrorKind::cancelled;
  update(view, Event(calibration));
  RecordingVerified other = same_text();
  other.path = "/b/other.canopytrace";
  update(view, Event(other));
  EXPECT_EQ(view.chat.note, "");
  update(view, Event(same_text()));
  EXPECT_NE(view.chat.note.find("Checked here"), std::string::npos);
}

TEST(VerifyState, EndsWithItsFailureAndIsCancelled) {
  ViewModel view = view_with_recording();
  EXPECT_TRUE(update(view, UiCommand(VerifyCommand(StopVerifying{}))).engine.empty()) << "nothing runs";
  update(view, UiCommand(VerifyCommand(VerifyShown{})));
  EXPECT_EQ(update(view, UiCommand(VerifyCommand(StopVerifying{}))).engine.size(), 1u);
  Failure failure;
  failure.kind = ErrorKind::cancelled;
  update(view, Event(failure));
  EXPECT_FALSE(view.verify.running);
  EXPECT_TRUE(view.cards.empty());
}

}  // namespace
}  // namespace canopy::app

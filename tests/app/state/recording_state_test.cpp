// Recording from the window: the commands to the engine, and the texts about it.

#include "app/state/recording.h"

#include <gtest/gtest.h>

#include <regex>

#include "app/state/view_model.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::app {
namespace {

ViewModel loaded_view() {
  ViewModel view;
  update(view, UiCommand(OpenModel{"/models/a.gguf"}));
  update(view, Event(test::small_model()));
  return view;
}

Effects record(ViewModel& view, const std::string& path, bool redact = false) {
  return update(view, UiCommand(RecordingCommand(StartRecording{path, redact})));
}

Recording told(bool active, uint64_t rounds = 0, const std::string& problem = "") {
  return {active, "run.canopytrace", 100 * rounds, rounds, problem};
}

TEST(RecordingState, AsksTheEngineWithTheEndingOfATrace) {
  ViewModel view = loaded_view();
  const Effects effects = record(view, "/data/run", true);
  ASSERT_EQ(effects.engine.size(), 1u);
  const auto& command = std::get<RecordTrace>(effects.engine[0]);
  EXPECT_EQ(command.path, "/data/run.canopytrace");
  EXPECT_TRUE(command.redact);
  EXPECT_EQ(view.recording.phase, RecordingPhase::asked) << "nothing is said to run before the engine says so";
  update(view, Event(told(true)));
  EXPECT_EQ(view.recording.phase, RecordingPhase::on);
  EXPECT_TRUE(record(view, "/data/other").engine.empty()) << "one at a time";
}

TEST(RecordingState, NeedsAModelAndAPath) {
  ViewModel view;
  EXPECT_TRUE(record(view, "/data/run").engine.empty());
  update(view, UiCommand(RecordingCommand(ShowRecordBox{})));
  EXPECT_FALSE(view.recording.box_shown);
  view = loaded_view();
  EXPECT_TRUE(record(view, "").engine.empty());
  EXPECT_FALSE(view.recording.running());
}

TEST(RecordingState, EndsWhenItsUserSaysSoAndCanBeOpened) {
  ViewModel view = loaded_view();
  record(view, "/data/run.canopytrace");
  update(view, Event(told(true)));
  const Effects effects = update(view, UiCommand(RecordingCommand(EndRecording{})));
  ASSERT_EQ(effects.engine.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<StopRecording>(effects.engine[0]));
  EXPECT_TRUE(update(view, UiCommand(RecordingCommand(EndRecording{}))).engine.empty()) << "asked once";
  update(view, Event(told(true, 12)));
  EXPECT_EQ(view.recording.phase, RecordingPhase::ending) << "a reply that ends meanwhile does not take it back";
  update(view, Event(told(false, 12)));
  EXPECT_FALSE(view.recording.running());
  EXPECT_TRUE(view.recording.finished());
  EXPECT_TRUE(view.cards.empty());
}

TEST(RecordingState, AFolderThatCannotBeWrittenIsACardAndNoRecording) {
  ViewModel view = loaded_view();
  record(view, "/readonly/run.canopytrace");
  Failure failure;
  failure.title = "Recording could not begin";
  failure.detail = "The trace /readonly/run.canopytrace cannot be recorded: Permission denied.";
  update(view, Event(failure));
  EXPECT_EQ(view.recording.phase, RecordingPhase::off);
  EXPECT_FALSE(view.recording.finished());
  ASSERT_EQ(view.cards.size(), 1u);
  EXPECT_EQ(view.cards[0].title, "Recording could not begin");
  EXPECT_EQ(view.cards[0].detail, failure.detail);
}

TEST(RecordingState, AFullDiskIsSaidOnceAndTheFileStays) {
  ViewModel view = loaded_view();
  record(view, "/data/run.canopytrace");
  update(view, Event(told(true)));
  const std::string problem = "Recording stopped after 40 passes: No space left on device.";
  update(view, Event(told(false, 40, problem)));
  EXPECT_EQ(view.recording.phase, RecordingPhase::off);
  ASSERT_EQ(view.cards.size(), 1u);
  EXPECT_EQ(view.cards[0].title, "The recording has stopped");
  EXPECT_EQ(view.cards[0].detail, problem);
  EXPECT_TRUE(view.recording.finished()) << "what was written can be opened";
  update(view, UiCommand(DismissCard{view.cards[0].id}));
  update(view, Event(told(false, 40, problem)));  // the engine reports it again when the recording is closed
  EXPECT_TRUE(view.cards.empty());
}

TEST(RecordingState, TheNameHasTheDate) {
  const std::string name = recording_name(1'700'000'000'000);
  EXPECT_TRUE(std::regex_match(name, std::regex("canopy-2023-11-1[45]-[0-9]{6}\\.canopytrace"))) << name;
  EXPECT_NE(recording_name(1'700'000'001'000), name);
}

}  // namespace
}  // namespace canopy::app

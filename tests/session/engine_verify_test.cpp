// Checking recordings through the engine's thread: the same, another, of another model, cancelled, and without a model.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/mapped_file.h"
#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

class EngineVerifyTest : public EngineThreadTest {
 protected:
  EngineVerifyTest() {
    start();
    engine_->post(tiny());
    await<ModelReady>();
    engine_->post(RecordTrace{path(), false});
    await<Recording>();
    answer(1);
    answer(2);
    engine_->post(StopRecording{});
    while (await<Recording>().active) {
    }
  }
  std::string path() const { return (folder_.path() / "talk.canopytrace").string(); }

  /// The recording with one word of a record of this kind replaced by another.
  std::string changed(trace::Kind kind, const std::string& from, const std::string& to) const {
    const std::string whole = read_small_file(path(), 1 << 20);
    Reader reader(std::as_bytes(std::span(whole)));
    std::string bytes(reader.text(trace::prologue_bytes, "prologue"));
    while (const auto record = trace::next_record(reader)) {
      std::string payload(record->text());
      if (const size_t at = payload.find(from); record->kind == kind && at != std::string::npos)
        payload.replace(at, from.size(), to);
      trace::append_record(bytes, record->kind, payload);
    }
    return folder_.write("changed.canopytrace", bytes).string();
  }

  TempFolder folder_;
};

TEST_F(EngineVerifyTest, FindsTheSameTextAndAnswersAsBefore) {
  engine_->post(VerifyRecording{path()});
  const std::vector<Event> events = until<RecordingVerified>();
  ASSERT_FALSE(events.empty());
  const auto told = std::get<RecordingVerified>(events.back());
  EXPECT_EQ(told.replies, 2u);
  const TraceReader trace = TraceReader::open(path());
  const uint32_t first = trace.replies()[0].end->reply_tokens, second = trace.replies()[1].end->reply_tokens;
  EXPECT_EQ(told.tokens, first + second);
  EXPECT_EQ(told.skipped, 0u);
  EXPECT_EQ(told.difference, "");
  EXPECT_EQ(told.recorded_on, "Reference");
  EXPECT_EQ(told.path, path());
  uint64_t done = 0;
  for (const Event& event : events)
    if (const auto* progress = std::get_if<VerifyProgress>(&event)) {
      EXPECT_EQ(progress->replies, 2u);
      EXPECT_LE(progress->done, progress->total);
      done = std::max(done, progress->done);
    }
  EXPECT_EQ(done, std::max(first, second));
  EXPECT_FALSE(answer(3).empty());
}

TEST_F(EngineVerifyTest, SaysWhereTheTextDiffers) {
  engine_->post(VerifyRecording{changed(trace::Kind::prefill, "\"first_token\":", "\"first_token\":1")});
  const auto told = await<RecordingVerified>();
  EXPECT_EQ(told.replies, 1u) << "the first one that differs says enough";
  EXPECT_NE(told.difference.find("Reply 1 differs at token 1 of "), std::string::npos) << told.difference;
}

TEST_F(EngineVerifyTest, RefusesRecordingsOfAnotherModelAndFilesThatAreNone) {
  engine_->post(
      VerifyRecording{changed(trace::Kind::header, "\"architecture\":\"qwen3\"", "\"architecture\":\"llama\"")});
  EXPECT_NE(await<Failure>().detail.find("architecture is 'llama'; here it is 'qwen3'"), std::string::npos);
  engine_->post(VerifyRecording{folder_.write("notes.txt", "no trace").string()});
  EXPECT_NE(await<Failure>().detail.find("notes.txt"), std::string::npos);
}

TEST_F(EngineVerifyTest, IsCancelledAndNeedsAModel) {
  engine_->post(question(3, 200));
  engine_->post(VerifyRecording{path()});
  engine_->post(CancelVerification{});  // while it waits
  engine_->post(StopReply{});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::cancelled);
  engine_->post(ReleaseModel{});
  engine_->post(VerifyRecording{path()});
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable);
}

TEST_F(EngineVerifyTest, IsCancelledWithThePassUnderWay) {
  book_.run_ms = 10;
  engine_->post(VerifyRecording{path()});
  await<VerifyProgress>();
  engine_->post(CancelVerification{});
  const int before = book_.runs;
  EXPECT_EQ(await<Failure>().kind, ErrorKind::cancelled);
  EXPECT_LE(book_.runs - before, 2);
  book_.run_ms = 0;
  EXPECT_FALSE(answer(3).empty());
}

}  // namespace
}  // namespace canopy::test

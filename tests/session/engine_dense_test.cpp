// Drafts behind every token through the engine's thread: their progress, their end by the user, and that they go on.

#include <gtest/gtest.h>

#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

class EngineDenseTest : public EngineThreadTest {
 protected:
  EngineDenseTest() {
    start();
    LoadModel load = tiny();
    load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    engine_->post(load);
    await<ModelReady>();
  }
  std::string path() const { return (folder_.path() / "talk.canopytrace").string(); }

  void record(bool dense) {
    engine_->post(RecordTrace{path(), false, dense});
    await<Recording>();
    engine_->post(question(1, 60));
    await<ReplyFinished>();
  }
  void record_plainly() {
    record(false);
    engine_->post(StopRecording{});
    while (await<Recording>().active) {
    }
  }
  bool is_dense() const { return TraceReader::open(path()).replies().at(0).dense.has_value(); }

  TempFolder folder_;
};

TEST_F(EngineDenseTest, TellsHowFarItIs) {
  record_plainly();
  engine_->post(DensifyTrace{path()});
  const std::vector<Event> events = until<TraceDensified>();
  uint64_t last = 0;
  for (const Event& event : events)
    if (const auto* progress = std::get_if<DensifyProgress>(&event)) {
      EXPECT_GT(progress->done, last);
      EXPECT_LE(progress->done, progress->total);
      last = progress->done;
    }
  EXPECT_GT(last, 0u);
  const auto done = std::get<TraceDensified>(events.back());
  EXPECT_EQ(done.problem, "");
  EXPECT_FALSE(done.cancelled);
  EXPECT_GT(done.added, 0u);
  EXPECT_TRUE(is_dense());
}

TEST_F(EngineDenseTest, IsCancelledWithThePassUnderWayAndGoesOnLater) {
  record_plainly();
  book_.run_ms = 10;
  engine_->post(DensifyTrace{path()});
  await<DensifyProgress>();
  engine_->post(CancelDensify{});
  const int before = book_.runs;
  const auto told = await<TraceDensified>();
  EXPECT_LE(book_.runs - before, 2);
  EXPECT_TRUE(told.cancelled);
  EXPECT_EQ(told.problem, "");
  EXPECT_FALSE(is_dense());
  book_.run_ms = 0;
  engine_->post(DensifyTrace{path()});
  EXPECT_EQ(await<TraceDensified>().problem, "");
  EXPECT_TRUE(is_dense());
}

TEST_F(EngineDenseTest, IsCancelledWhileItWaits) {
  record_plainly();
  engine_->post(question(2, 300));
  engine_->post(DensifyTrace{path()});
  engine_->post(CancelDensify{});
  engine_->post(StopReply{});
  EXPECT_TRUE(await<TraceDensified>().cancelled);
  EXPECT_FALSE(is_dense());
}

TEST_F(EngineDenseTest, ARecordingThatEndsTellsItsProgressAndIsCancelled) {
  record(true);
  book_.run_ms = 10;
  engine_->post(StopRecording{});
  EXPECT_GT(await<DensifyProgress>().total, 0u);
  engine_->post(CancelDensify{});
  while (await<Recording>().active) {
  }
  EXPECT_FALSE(is_dense());
  EXPECT_EQ(TraceReader::open(path()).replies().size(), 1u);
}

}  // namespace
}  // namespace canopy::test

// Replacing a model: what the new one is planned with, and what happens to the old one. Releasing it.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/trace/trace_reader.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;

/// A model whose weights and context take all memory of a small device.
class ReplacedModelTest : public EngineThreadTest {
 protected:
  LoadModel large(uint32_t seed) {
    RandomModel random;
    random.hidden = 256;
    random.ffn = 1024;
    random.heads = 8;
    random.head_dim = 32;
    random.layers = 4;
    random.context = 16384;
    random.seed = seed;
    LoadModel load;
    load.path = folder_.write("large" + std::to_string(seed) + ".gguf", random.build());
    load.draft = false;
    load.kv = CacheType::f32;  // the reference device keeps f32 in any case
    return load;
  }

  ModelReady open(const LoadModel& load) {
    engine_->post(load);
    return await<ModelReady>();
  }

  static bool brought_back(const std::vector<Event>& events) {
    return std::any_of(events.begin(), events.end(), [](const Event& event) {
      const auto* progress = std::get_if<LoadProgress>(&event);
      return progress != nullptr && progress->stage == "Bringing the previous model back";
    });
  }

  TempFolder folder_;
  std::mutex seen_mutex_;
  std::vector<Event> seen_;
};

TEST_F(ReplacedModelTest, GetsTheContextOfAFreshStart) {
  for (const uint64_t megabytes : {64, 80, 96, 144}) {
    start(megabytes << 20);
    const ModelReady first = open(large(1));
    ASSERT_GT(first.context, 0u);
    EXPECT_EQ(open(large(1)).context, first.context) << megabytes;
    EXPECT_EQ(open(large(2)).context, first.context) << megabytes;
    EXPECT_EQ(devices_opened_.exchange(0), 1);
  }
}

TEST_F(ReplacedModelTest, StaysWhileTheNextOneIsPlannedInVain) {
  start(64 << 20);
  open(large(1));
  const std::string before = answer(1);
  LoadModel too_long = large(2);
  too_long.context = 16384;
  engine_->post(too_long);
  const std::vector<Event> events = until<Failure>();
  EXPECT_EQ(std::get<Failure>(events.back()).kind, ErrorKind::out_of_memory);
  EXPECT_FALSE(brought_back(events));
  EXPECT_EQ(answer(2), before);
  engine_->post(question(3));
  EXPECT_GT(await<ReplyFinished>().reused_tokens, 1u);  // the old model still has its cache
}

TEST_F(ReplacedModelTest, ComesBackWhenALoadItMadeRoomForIsCancelled) {
  start(64 << 20);
  open(large(1));
  const std::string before = answer(1);
  // Cancels from inside the load, while weights are being copied and after the old model is gone.
  std::atomic<bool> cancelled{false};
  engine_->set_wake([&] {
    for (Event& event : engine_->poll()) {
      const auto* progress = std::get_if<LoadProgress>(&event);
      if (progress != nullptr && progress->in_bytes && !cancelled.exchange(true)) engine_->post(CancelLoad{});
      const std::lock_guard lock(seen_mutex_);
      seen_.push_back(std::move(event));
    }
  });
  engine_->post(large(2));
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  std::optional<Failure> failure;
  while (!failure && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
    const std::lock_guard lock(seen_mutex_);
    for (const Event& event : seen_) {
      if (const auto* found = std::get_if<Failure>(&event)) failure = *found;
    }
  }
  engine_->set_wake({});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, ErrorKind::cancelled);
  EXPECT_TRUE(brought_back(seen_));
  EXPECT_EQ(answer(2), before);
}

TEST_F(ReplacedModelTest, AReleasedModelGivesItsMemoryBackAndComesBackByWhatOpenedIt) {
  start();
  const LoadModel opened_by = tiny();
  engine_->post(opened_by);
  await<ModelReady>();
  const std::string before = answer(1);
  const std::filesystem::path path = folder_.path() / "talk.canopytrace";
  engine_->post(RecordTrace{path, false});
  EXPECT_TRUE(await<Recording>().active);
  engine_->post(question(2));
  engine_->post(ReleaseModel{});  // waits for the reply, and ends the recording
  EXPECT_EQ(text_of(until<ReplyFinished>()), before);
  EXPECT_FALSE(await<Recording>().active);
  const auto released = await<ModelReleased>();
  EXPECT_EQ(book_.open, 0);
  EXPECT_EQ(book_.bytes_at_close, 0u) << "all that was on the device went before it was closed";
  EXPECT_EQ(TraceReader::open(path).replies().size(), 1u);
  EXPECT_EQ(released.opened.path, opened_by.path);
  EXPECT_EQ(released.opened.context, opened_by.context);

  engine_->post(question(3));
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable);
  engine_->post(released.opened);
  EXPECT_EQ(await<ModelReady>().context, opened_by.context);
  EXPECT_EQ(book_.open, 1);
  EXPECT_EQ(answer(4), before);
}

TEST_F(ReplacedModelTest, ReleasingWithoutAModelIsAnsweredToo) {
  start();
  engine_->post(ReleaseModel{});
  EXPECT_EQ(await<ModelReleased>().opened.path, "");
}

}  // namespace
}  // namespace canopy::test

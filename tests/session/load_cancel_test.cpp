// A load can be abandoned at any moment, also where weights are quantized and kernels compiled for the first time, and
// then ends within a fifth of a second (LongestWait measures it), but for "Measuring the device", which is a second in
// one piece. What is required here is less, so that a busy machine passes: well below what the rest of a load takes.
//   CANOPY_TEST_MODEL  a model file instead of the random one

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "engine/format/model_file.h"
#include "engine/session/engine_thread.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/base/temp_folder.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/random_drafter.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double kPromptly = 1;  // seconds

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Takes some time over each weight, as a device does with a larger model: loading the random one could be over before
/// anybody hears of it.
class SlowToLoad final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<Weight> make_weight(std::span<const WeightPart> parts, WeightLayout layout,
                                      std::string_view name) override {
    std::this_thread::sleep_for(20ms);
    return ForwardingDevice::make_weight(parts, layout, name);
  }
};

class LoadCancel : public ::testing::Test {
 protected:
  LoadCancel() {
    EngineBackend backend;
    // Without a cache folder every load compiles its kernels.
    backend.open_device = [](const std::string&, uint32_t) {
      return std::make_unique<SlowToLoad>(open_vulkan_device());
    };
    backend.list_devices = [] { return std::vector<DeviceChoice>(); };
    backend.calibration_s = 2;
    setenv("CANOPY_CACHE_DIR", cache_.path().c_str(), 1);  // of the calibration
    engine_ = std::make_unique<EngineThread>(backend);
    const char* path = std::getenv("CANOPY_TEST_MODEL");
    if (path != nullptr && *path != '\0') {
      load_.path = path;
      return;
    }
    RandomModel random;
    random.hidden = 512;
    random.heads = 8;
    random.head_dim = 64;
    random.ffn = 1536;
    random.vocab = 20'000;
    load_.path = folder_.write("model.gguf", random.build());
    load_.draft = false;
  }

  /// Gives the next loads a drafter.
  void add_drafter() {
    RandomDrafter drafter;
    drafter.heads = 8;
    drafter.head_dim = 64;
    drafter.ffn = 1536;
    drafter.write(drafter_folder_, ModelFile::open(load_.path).config());
    load_.drafter = drafter_folder_.path().string();
    load_.draft = true;
  }

  /// The event that ended a load, and the seconds from cancelling to it. `cancel` is asked at each progress event.
  struct Ended {
    std::optional<Event> by;
    std::string stage;  // in which the load was cancelled
    double seconds = 0;
  };

  Ended load(const std::function<bool(const LoadProgress& newest)>& cancel) {
    engine_->post(load_);
    Ended ended;
    LoadProgress newest;
    std::optional<Clock::time_point> cancelled;
    const auto deadline = Clock::now() + 120s;
    while (Clock::now() < deadline) {
      for (const Event& event : engine_->poll()) {
        if (const auto* progress = std::get_if<LoadProgress>(&event)) newest = *progress;
        if (!std::holds_alternative<ModelReady>(event) && !std::holds_alternative<Failure>(event)) continue;
        ended.by = event;
        ended.seconds = cancelled ? seconds_since(*cancelled) : 0;
        return ended;
      }
      if (!cancelled && cancel(newest)) {
        engine_->post(CancelLoad{});
        cancelled = Clock::now();
        ended.stage = newest.stage;
      }
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "the load did not end";
    return ended;
  }

  /// The best of three cancelled loads, since a busy machine may stop any thread for longer. A stage may also be over
  /// before this thread hears of it, or before the engine hears of the cancelling: such loads are tried again.
  void expect_prompt(const std::function<bool(const LoadProgress&)>& cancel, const std::string& stage) {
    double best = 1e9;
    for (int cancelled = 0, tries = 0; cancelled < 3 && best > kPromptly; ++tries) {
      ASSERT_LT(tries, 20) << stage << " was always over too soon";
      const Ended ended = load(cancel);
      ASSERT_TRUE(ended.by) << stage;
      if (std::holds_alternative<ModelReady>(*ended.by)) continue;
      ASSERT_EQ(std::get<Failure>(*ended.by).kind, ErrorKind::cancelled) << stage;
      EXPECT_EQ(ended.stage, stage);
      best = std::min(best, ended.seconds);
      ++cancelled;
    }
    EXPECT_LE(best, kPromptly) << stage;
    RecordProperty(stage, std::to_string(best));
  }

  TempFolder folder_, drafter_folder_, cache_;
  LoadModel load_;
  std::unique_ptr<EngineThread> engine_;
};

TEST_F(LoadCancel, EndsAtOnceAtEveryStage) {
  for (const auto& [quantize, stage] : {std::pair(QuantizeOnLoad::none, "Loading weights"),
                                        std::pair(QuantizeOnLoad::q4_k, "Quantizing weights to Q4_K")}) {
    load_.quantize = quantize;
    expect_prompt([wanted = stage](const LoadProgress& p) { return p.stage == wanted && p.done > 0; }, stage);
  }
  load_.quantize = QuantizeOnLoad::none;
  expect_prompt([](const LoadProgress& p) { return p.stage == "Checking exactness"; }, "Checking exactness");
  expect_prompt([](const LoadProgress& p) { return p.stage == "Checking exactness" && p.done > 3; },
                "Checking exactness");
  // After that the same load succeeds, so nothing is left of the cancelled one.
  const Ended whole = load([](const LoadProgress&) { return false; });
  EXPECT_TRUE(whole.by && std::holds_alternative<ModelReady>(*whole.by));
}

TEST_F(LoadCancel, EndsAtOnceWhereADrafterIsLoadedMeasuredAndPrepared) {
  if (std::getenv("CANOPY_TEST_MODEL") != nullptr) GTEST_SKIP() << "for the random model";
  add_drafter();
  for (const std::string stage : {"Loading the drafter", "Measuring what passes cost"})
    expect_prompt([&](const LoadProgress& p) { return p.stage == stage; }, stage);
  const auto never = [](const LoadProgress&) { return false; };
  const Ended whole = load(never);
  ASSERT_TRUE(whole.by && std::holds_alternative<ModelReady>(*whole.by));
  EXPECT_FALSE(std::get<ModelReady>(*whole.by).drafter.empty());
  // From here on costs are known, so that drafts are only prepared.
  expect_prompt([](const LoadProgress& p) { return p.stage == "Preparing the drafter"; }, "Preparing the drafter");
  const Ended again = load(never);
  EXPECT_TRUE(again.by && std::holds_alternative<ModelReady>(*again.by));
}

/// A measurement, no test: the longest wait, with cancels spread over a whole load.
TEST_F(LoadCancel, DISABLED_LongestWait) {
  double longest = 0;
  bool ended = false;
  for (auto moment = 0ms; !ended; moment += 100ms) {
    const auto start = Clock::now();
    const Ended result = load([&](const LoadProgress&) { return Clock::now() - start >= moment; });
    ended = !result.by || std::holds_alternative<ModelReady>(*result.by);
    if (result.seconds > longest) longest = result.seconds;
    std::printf("%5ld ms  %-28s %.3f s\n", static_cast<long>(moment.count()), result.stage.c_str(), result.seconds);
  }
  std::printf("longest: %.3f s\n", longest);
}

}  // namespace
}  // namespace canopy::test

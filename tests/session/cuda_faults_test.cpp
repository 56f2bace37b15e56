// The engine on a made-up NVIDIA GPU that breaks: the failure says what happened, and the next load works.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda_backend/fake_device.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

class CudaEngineTest : public EngineThreadTest {
 protected:
  /// Its kernels do nothing, which is quick: what is written is another test's matter.
  void start_on(FakeMachine machine) {
    machine.computes = false;
    use_machine(std::move(machine));
    EngineBackend backend;
    backend.open_device = [](const std::string&, uint32_t) { return open_cuda_device(fake_device_options()); };
    backend.list_devices = [] { return std::vector<DeviceChoice>{{"cuda:0", "Made-up GPU", "discrete", true, ""}}; };
    engine_ = std::make_unique<EngineThread>(backend);
  }
  ~CudaEngineTest() override {
    engine_.reset();
    EXPECT_EQ(objects_alive(), 0u);
  }

  /// Of the calls that the engine makes for what is asked of it next; it has done all else, and stands still.
  void fail_next(const char* function, cuda::Result result) {
    engine_->post(CountTokens{1, "text"});
    await<TokensCounted>();
    fail_call(function, 1, result);
  }

  static LoadModel small_load() {
    LoadModel load = tiny();
    load.context = 64;
    return load;
  }
};

TEST_F(CudaEngineTest, AGpuThatIsLostInAReplyIsOpenedAnewByTheNextLoad) {
  start_on({});
  engine_->post(small_load());
  const auto ready = await<ModelReady>();
  EXPECT_EQ(ready.backend, "cuda");
  engine_->post(question(1, 3));
  EXPECT_EQ(await<ReplyFinished>().reply_id, 1u);
  fail_next("launch_graph", 700);
  engine_->post(question(2, 3));
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::device_lost);
  EXPECT_EQ(failure.reply_id, 2u);
  EXPECT_NE(failure.detail.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << failure.detail;
  engine_->post(question(3, 3));
  EXPECT_EQ(await<Failure>().kind, ErrorKind::unavailable) << "there is no model now";
  EXPECT_EQ(objects_alive(), 0u) << "the context was torn down";
  EXPECT_EQ(calls_of("reset_context"), 1u);
  engine_->post(small_load());
  await<ModelReady>();
  engine_->post(question(4, 3));
  EXPECT_EQ(await<ReplyFinished>().reply_id, 4u);
}

TEST_F(CudaEngineTest, AGpuThatIsLostInALoadIsOpenedAnewByTheNextOne) {
  start_on({});
  fail_call("copy_to_device", 5, 214);
  engine_->post(small_load());
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::device_lost);
  EXPECT_NE(failure.detail.find("CUDA_ERROR_ECC_UNCORRECTABLE"), std::string::npos) << failure.detail;
  engine_->post(small_load());
  await<ModelReady>();
}

TEST_F(CudaEngineTest, AModelThatDoesNotFitIsSaidWithItsBytes) {
  FakeMachine machine;
  machine.gpus[0].memory = 1 << 20;
  start_on(machine);
  engine_->post(small_load());
  const auto failure = await<Failure>();
  EXPECT_EQ(failure.kind, ErrorKind::out_of_memory);
  EXPECT_NE(failure.detail.find_first_of("0123456789"), std::string::npos) << failure.detail;
}

}  // namespace
}  // namespace canopy::test

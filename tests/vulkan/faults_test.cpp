// Vulkan calls that fail. volk's entry points are plain pointers, so a test can replace them.

#include <chrono>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using testing::error_of;

VkResult next_result = VK_SUCCESS;  // what the replaced call returns

// While it exists, one entry point fails with a given result and does nothing.
template <class Function>
class Failing;

template <class... Arguments>
class Failing<VkResult(VKAPI_PTR*)(Arguments...)> {
 public:
  using Function = VkResult(VKAPI_PTR*)(Arguments...);
  Failing(Function& entry, VkResult result) : entry_(entry), saved_(entry) {
    next_result = result;
    entry = [](Arguments...) -> VkResult { return next_result; };
  }
  ~Failing() { entry_ = saved_; }
  Failing(const Failing&) = delete;
  Failing& operator=(const Failing&) = delete;

 private:
  Function& entry_;
  Function saved_;
};
template <class Function>
Failing(Function&, VkResult) -> Failing<Function>;

struct SpinPush {
  uint32_t count;
};

class FaultsTest : public testing::DeviceTest {
 protected:
  static const ShaderCode& spin() { return find_shader(test_shaders(), "spin"); }
};
CANOPY_ON_EVERY_DEVICE(FaultsTest);

TEST_P(FaultsTest, openingADeviceReportsEachFailure) {
  const auto fail_open = [&](auto& entry, VkResult result) {
    const Failing failing(entry, result);
    return error_of([&] { open(); });
  };
  EXPECT_NE(fail_open(vkCreateDevice, VK_ERROR_OUT_OF_HOST_MEMORY).find("out of memory: Opening the Vulkan device"),
            std::string::npos);
  EXPECT_NE(fail_open(vkCreateDevice, VK_ERROR_FEATURE_NOT_PRESENT).find("unavailable"), std::string::npos);
  EXPECT_NE(fail_open(vkCreatePipelineCache, VK_ERROR_OUT_OF_DEVICE_MEMORY).find("Creating a pipeline cache"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { open(); }), "");
}

TEST_P(FaultsTest, runningOutOfMemoryNamesTheBufferAndLeavesNothingBehind) {
  const auto context = open({.memory_budget = 1u << 30});
  for (const VkResult result : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    const auto attempt = [&](auto& entry) {
      const Failing failing(entry, result);
      return error_of([&] { context->create_buffer(BufferKind::host_read, 4096, "logits"); });
    };
    EXPECT_NE(attempt(vkCreateBuffer).find("out of memory: Creating the buffer \"logits\""), std::string::npos);
    EXPECT_NE(attempt(vkAllocateMemory).find("out of memory: Allocating 4.1 kB for \"logits\""), std::string::npos);
    EXPECT_NE(attempt(vkBindBufferMemory).find("logits"), std::string::npos);
    EXPECT_NE(attempt(vkMapMemory).find("Mapping \"logits\""), std::string::npos);
  }
  EXPECT_EQ(context->memory_info().used, 0u);
  EXPECT_FALSE(context->lost());
  EXPECT_TRUE(context->create_buffer(BufferKind::host_read, 4096, "logits"));
}

TEST_P(FaultsTest, kernelsAndListsSurviveEachFailure) {
  const auto context = open();
  const auto make_kernel = [&](auto& entry) {
    const Failing failing(entry, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    return error_of([&] { context->kernel(spin()); });
  };
  EXPECT_NE(make_kernel(vkCreateShaderModule).find("Making the kernel spin: Creating a shader module"),
            std::string::npos);
  EXPECT_NE(make_kernel(vkCreateDescriptorSetLayout).find("spin"), std::string::npos);
  EXPECT_NE(make_kernel(vkCreatePipelineLayout).find("spin"), std::string::npos);
  EXPECT_NE(make_kernel(vkCreateComputePipelines).find("Compiling the pipeline"), std::string::npos);
  EXPECT_EQ(context->kernel_count(), 0u);

  const auto make_list = [&](auto& entry) {
    const Failing failing(entry, VK_ERROR_OUT_OF_HOST_MEMORY);
    return error_of([&] { CommandList list(*context, {.max_timestamps = 2}); });
  };
  EXPECT_NE(make_list(vkCreateCommandPool).find("out of memory"), std::string::npos);
  EXPECT_NE(make_list(vkAllocateCommandBuffers).find("out of memory"), std::string::npos);
  EXPECT_NE(make_list(vkBeginCommandBuffer).find("out of memory"), std::string::npos);
  if (context->limits().timestamp_valid_bits > 0) {
    EXPECT_NE(make_list(vkCreateQueryPool).find("out of memory"), std::string::npos);
  }
  const Buffer out = context->create_buffer(BufferKind::device, 4, "out");
  CommandList list(*context);
  {
    const Failing failing(vkCreateDescriptorPool, VK_ERROR_OUT_OF_HOST_MEMORY);
    EXPECT_NE(error_of([&] { list.bind(context->kernel(spin()), {out}, SpinPush{1}); }), "");
  }
  list.bind(context->kernel(spin()), {out}, SpinPush{1});
  list.dispatch(1);
  EXPECT_NO_THROW(context->run(list));
}

TEST_P(FaultsTest, aLostDeviceStaysLost) {
  const auto context = open();
  CommandList list(*context, {.name = "pass"});
  {
    const Failing failing(vkQueueSubmit2, VK_ERROR_DEVICE_LOST);
    EXPECT_NE(error_of([&] { context->run(list); }).find("device lost: Submitting the command list \"pass\""),
              std::string::npos);
  }
  EXPECT_TRUE(context->lost());
  EXPECT_NE(error_of([&] { context->run(list); }).find("was lost earlier"), std::string::npos);
  EXPECT_NE(error_of([&] { context->create_buffer(BufferKind::device, 4, "x"); }).find("device lost"),
            std::string::npos);
}

TEST_P(FaultsTest, aLossWhileWaitingIsNoticed) {
  const auto context = open();
  CommandList list(*context);
  const Submission submission = context->submit(list);
  {
    const Failing failing(vkWaitForFences, VK_ERROR_DEVICE_LOST);
    EXPECT_NE(error_of([&] { context->wait(submission); }).find("device lost: Waiting for the device"),
              std::string::npos);
  }
  EXPECT_TRUE(context->lost());
}

TEST_P(FaultsTest, aDeviceThatTakesTooLongIsGivenUp) {
  const auto context = open({.timeout = std::chrono::milliseconds(1)});
  const Buffer out = context->create_buffer(BufferKind::device, 4, "out");
  CommandList list(*context);
  list.bind(context->kernel(spin()), {out}, SpinPush{1});
  list.dispatch(1);
  {
    // A device that is really busy may be done by the time that a busy machine comes to wait for it.
    const Failing failing(vkWaitForFences, VK_TIMEOUT);
    EXPECT_NE(error_of([&] { context->run(list); }).find("did not finish within 1 ms"), std::string::npos);
  }
  EXPECT_TRUE(context->lost());
  EXPECT_NE(error_of([&] { context->run(list); }).find("was lost earlier"), std::string::npos);
  vkDeviceWaitIdle(context->device());  // so that the destructor finds it idle and frees memory instead of leaking it
}

TEST(CheckVk, wordsEveryKindOfFailure) {
  EXPECT_EQ(vk_error(VK_ERROR_OUT_OF_DEVICE_MEMORY, "x").kind(), ErrorKind::out_of_memory);
  EXPECT_EQ(vk_error(VK_ERROR_DEVICE_LOST, "x").kind(), ErrorKind::device_lost);
  EXPECT_EQ(vk_error(VK_ERROR_INCOMPATIBLE_DRIVER, "x").kind(), ErrorKind::unavailable);
  EXPECT_EQ(vk_error(VK_ERROR_FORMAT_NOT_SUPPORTED, "x").kind(), ErrorKind::bad_input);
  EXPECT_NE(std::string(vk_error(static_cast<VkResult>(-77), "Doing it").what()).find("VkResult -77"),
            std::string::npos);
  EXPECT_EQ(check_vk(VK_TIMEOUT, "waiting"), VK_TIMEOUT);
}

}  // namespace
}  // namespace canopy::vk

// A driver that announces cooperative matrices and cannot compile a shader with them: the model loads with slower
// kernels, which is said, and writes what it writes on a device without matrices.

#include <gtest/gtest.h>
#include <volk.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/session/engine.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr uint32_t kCooperativeMatrix = 6022;  // the capability's number in SPIR-V
constexpr uint32_t kOpCapability = 17;

bool uses_matrices(const VkShaderModuleCreateInfo& info) {
  constexpr size_t header = 5;
  for (size_t at = header; at + 1 < info.codeSize / 4 && (info.pCode[at] & 0xFFFFu) == kOpCapability;
       at += info.pCode[at] >> 16) {
    if (info.pCode[at + 1] == kCooperativeMatrix) return true;
  }
  return false;
}

std::set<VkShaderModule> with_matrices;
PFN_vkCreateShaderModule create_module = nullptr;
PFN_vkCreateComputePipelines create_pipelines = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL note_module(VkDevice device, const VkShaderModuleCreateInfo* info,
                                           const VkAllocationCallbacks* allocator, VkShaderModule* module) {
  const VkResult result = create_module(device, info, allocator, module);
  with_matrices.erase(*module);  // drivers use handles again
  if (result == VK_SUCCESS && uses_matrices(*info)) with_matrices.insert(*module);
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL refuse_matrices(VkDevice device, VkPipelineCache cache, uint32_t count,
                                               const VkComputePipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  if (with_matrices.contains(infos[0].stage.module)) return VK_ERROR_UNKNOWN;
  return create_pipelines(device, cache, count, infos, allocator, pipelines);
}

/// Cannot compile what has matrices, while it exists. A device must be open: volk has its entry points then.
class LyingDriver {
 public:
  LyingDriver() {
    create_module = std::exchange(vkCreateShaderModule, note_module);
    create_pipelines = std::exchange(vkCreateComputePipelines, refuse_matrices);
  }
  ~LyingDriver() {
    vkCreateShaderModule = create_module;
    vkCreateComputePipelines = create_pipelines;
  }
};

std::unique_ptr<Engine> open_engine(Device& device) {
  OpenRequest request;
  request.path = golden_folder() / "tiny-qwen3";
  request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  request.cache_type = CacheType::f32;
  request.context = 256;
  return Engine::open(device, request, {});
}

std::vector<uint32_t> write(Engine& engine) {
  ReplySettings settings;
  settings.mode = DecodeMode::tree;
  settings.budget = 12;
  settings.max_tokens = 24;
  return engine.reply(engine.text.encode_raw("for i in range(10):\n    print("), settings).ids;
}

TEST(DriverLies, OfMatricesMeansSlowerKernelsAndTheSameText) {
  std::unique_ptr<Device> device;
  try {
    device = open_vulkan_device({.family = vk::KernelFamily::matrix});
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const auto other = open_vulkan_device({.family = vk::KernelFamily::fma});
  const std::vector<uint32_t> expected = write(*open_engine(*other));
  EXPECT_NE(device->info().kernels.find("matrix"), std::string::npos);
  const LyingDriver driver;
  const auto engine = open_engine(*device);
  ASSERT_TRUE(engine->self_test);
  EXPECT_TRUE(engine->self_test->passed) << engine->self_test->sentence;
  EXPECT_NE(engine->self_test->fallback.find("cannot make its fastest kernels"), std::string::npos)
      << engine->self_test->fallback;
  EXPECT_NE(device->info().kernels.find("fma"), std::string::npos) << device->info().kernels;
  EXPECT_EQ(write(*engine), expected);
}

}  // namespace
}  // namespace canopy::test

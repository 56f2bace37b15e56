#include "engine/vulkan/kernel.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/product_config.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using testing::error_of;

class KernelTest : public testing::DeviceTest {
 protected:
  static const ShaderCode& shader(std::string_view name) { return find_shader(test_shaders(), name); }
};
CANOPY_ON_EVERY_DEVICE(KernelTest);

TEST_P(KernelTest, isMadeOnceForEachSetOfOptions) {
  const auto context = open();
  const Kernel& plain = context->kernel(shader("scale"));
  const Kernel& small = context->kernel(shader("scale"), {.spec = {{3, 1}, {0, 16}}});
  EXPECT_EQ(&context->kernel(shader("scale")), &plain);
  EXPECT_EQ(&context->kernel(shader("scale"), {.spec = {{0, 16}, {3, 1}}}), &small);
  EXPECT_NE(&plain, &small);
  EXPECT_EQ(context->kernel_count(), 2u);
  EXPECT_EQ(small.name(), "scale[0=16,3=1]");
  EXPECT_EQ(plain.local_size()[0], 64u);
  EXPECT_EQ(small.local_size()[0], 16u);
}

TEST_P(KernelTest, namesTheShaderInEveryError) {
  const auto context = open();
  const auto error = [&](const KernelOptions& options) {
    return error_of([&] { context->kernel(shader("scale"), options); });
  };
  EXPECT_NE(error({.spec = {{7, 1}}}).find("kernel scale[7=1]: The shader has no specialisation constant 7"),
            std::string::npos);
  EXPECT_NE(error({.spec = {{3, 1}, {3, 2}}}).find("given twice"), std::string::npos);
  EXPECT_NE(error({.spec = {{0, 0}}}).find("size 0 along x"), std::string::npos);
  const uint32_t too_many = context->limits().max_group_size[0] + 1;
  EXPECT_NE(error({.spec = {{0, too_many}}}).find("needs " + std::to_string(too_many) + " invocations"),
            std::string::npos);
  EXPECT_NE(error({.subgroup_size = 3}).find("subgroup size of 3 cannot be had"), std::string::npos);
  EXPECT_NE(error({.subgroup_size = 1024}).find("cannot be had"), std::string::npos);
  EXPECT_NE(error_of([&] { context->kernel("no_such_shader"); }).find("no shader \"no_such_shader\""),
            std::string::npos);
  EXPECT_EQ(context->kernel_count(), 0u);
}

// Shared memory is counted with the constants given: with the defaults, this kernel needs less than 1 KiB.
TEST_P(KernelTest, refusesMoreSharedMemoryThanTheBaselineHas) {
  const auto context = open({.baseline = true});
  const FmaConfig config{.columns = 8, .lanes = 64, .slices = 4, .rows = 2, .stage = 1};
  const std::string error = error_of([&] { context->kernel("product_add_q4_1", config.variant().options); });
  EXPECT_GT(config.shared_bytes(), context->limits().max_shared_bytes);
  EXPECT_NE(error.find(std::to_string(config.shared_bytes()) + " bytes of shared memory"), std::string::npos) << error;
}

TEST_P(KernelTest, asksForAConstantWithTwoDefaults) {
  const auto context = open();
  EXPECT_NE(error_of([&] { context->kernel(shader("ambiguous")); }).find("constant 0 has two different defaults"),
            std::string::npos);
  EXPECT_EQ(context->kernel(shader("ambiguous"), {.spec = {{0, 8}}}).local_size()[0], 8u);
}

TEST_P(KernelTest, takesTheSubgroupSizeTheDeviceHas) {
  const auto context = open();
  if (!context->features().subgroup_size_control) {
    GTEST_SKIP() << "the device offers no choice of subgroup size";
  }
  EXPECT_NO_THROW(context->kernel(shader("scale"), {.subgroup_size = context->limits().min_subgroup_size}));
}

TEST_P(KernelTest, refusesDamagedCode) {
  const auto context = open();
  const std::vector<uint32_t> garbage(40, 0x12345678);
  EXPECT_NE(error_of([&] {
              context->kernel(ShaderCode{"garbage", garbage});
            }).find("Making the kernel garbage"),
            std::string::npos);
}

class PipelineCacheOnDisk : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    path_ = std::filesystem::temp_directory_path() / ("canopy-pipelines-" + std::to_string(getpid()));
    std::filesystem::remove(path_);
  }
  void TearDown() override {
    std::filesystem::remove(path_);
    KernelTest::TearDown();
  }
  std::filesystem::path path_;
};
CANOPY_ON_EVERY_DEVICE(PipelineCacheOnDisk);

TEST_P(PipelineCacheOnDisk, isWrittenAndReadAgain) {
  { open({.pipeline_cache_file = path_})->kernel(shader("scale")); }
  ASSERT_TRUE(std::filesystem::exists(path_));
  const auto context = open({.pipeline_cache_file = path_});
  EXPECT_TRUE(context->notes().empty());
  EXPECT_NO_THROW(context->kernel(shader("scale")));
}

TEST_P(PipelineCacheOnDisk, thatIsDamagedIsIgnoredAndReplaced) {
  { open({.pipeline_cache_file = path_})->kernel(shader("scale")); }
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2);
  {
    const auto context = open({.pipeline_cache_file = path_});
    ASSERT_EQ(context->notes().size(), 1u);
    EXPECT_NE(context->notes()[0].find("was ignored"), std::string::npos) << context->notes()[0];
    EXPECT_NO_THROW(context->kernel(shader("scale")));
  }
  EXPECT_TRUE(open({.pipeline_cache_file = path_})->notes().empty());
}

}  // namespace
}  // namespace canopy::vk

// RADV with its null device: it compiles for real AMD targets and reports the result, and runs nothing.

#include <gtest/gtest.h>

#include <string>

#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/radv_null_device.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

constexpr const char* radv = CANOPY_RADV_ICD;

class RadvNullDevice : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, RadvNullDevice, ::testing::Values("NAVI21", "GFX1100"));

TEST_P(RadvNullDevice, tellsRegistersAndAssembly) {
  if (const std::string why = testing::choose_radv_null_device(radv, GetParam()); !why.empty()) GTEST_SKIP() << why;
  const Instance instance({.validation = Validation::off});
  const std::vector<DeviceReport> reports = instance.list_devices();
  ASSERT_EQ(reports.size(), 1u);
  ASSERT_TRUE(reports[0].usable) << reports[0].reason;
  Context context(instance, 0, {.pipeline_statistics = true});
  ASSERT_TRUE(context.features().pipeline_statistics);
  const Kernel& kernel = context.kernel(find_shader(test_shaders(), "scale"));
  bool has_registers = false;
  for (const KernelStatistic& statistic : kernel.statistics()) {
    has_registers = has_registers || (statistic.name == "VGPRs" && statistic.value > 0);
    if (statistic.name == "Spilled VGPRs") {
      EXPECT_EQ(statistic.value, 0);
    }
  }
  EXPECT_TRUE(has_registers);
  bool has_multiply = false;
  for (const KernelText& text : kernel.internal_texts()) {
    has_multiply = has_multiply || text.text.find("v_mul_f32") != std::string::npos;
  }
  EXPECT_TRUE(has_multiply);  // precise: a multiply and an add, not an fma
}

}  // namespace
}  // namespace canopy::vk

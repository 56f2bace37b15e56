// Synchronisation validation must report a missing barrier; otherwise runs without reported hazards would prove
// nothing.

#include <algorithm>
#include <array>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

struct ScalePush {
  uint32_t count;
  float offset;
};

class HazardTest : public testing::DeviceTest {
 protected:
  // Runs a -> b, then b -> c, which reads what the first writes. Returns whether the layer reports a hazard.
  static bool tells_of_a_hazard(Context& context, bool with_barrier) {
    constexpr uint32_t count = 64;
    std::array<Buffer, 3> values;
    for (Buffer& buffer : values) buffer = context.create_buffer(BufferKind::device, count * 4, "values");
    const Buffer factor = context.create_buffer(BufferKind::host_write, 16, "factor");
    const Kernel& scale = context.kernel(find_shader(test_shaders(), "scale"));
    CommandList list(context);
    list.fill(values[0], 0, count * 4, 0);
    list.barrier();
    list.bind(scale, {values[0], values[1], factor}, ScalePush{count, 1});
    list.dispatch(1);
    if (with_barrier) list.barrier();
    list.bind(scale, {values[1], values[2], factor}, ScalePush{count, 1});
    list.dispatch(1);
    context.run(list);
    const auto messages = testing::instance().messages();
    testing::instance().clear_messages();
    return std::any_of(messages.begin(), messages.end(),
                       [](const ValidationMessage& m) { return m.id.find("SYNC-HAZARD") != std::string::npos; });
  }
};
CANOPY_ON_EVERY_DEVICE(HazardTest);

TEST_P(HazardTest, aForgottenBarrierIsTold) {
  if (validation_from_environment() != Validation::sync) GTEST_SKIP() << "CANOPY_VALIDATION is not sync";
  const auto context = open();
  EXPECT_FALSE(tells_of_a_hazard(*context, /*with_barrier=*/true));
  EXPECT_TRUE(tells_of_a_hazard(*context, /*with_barrier=*/false));
}

}  // namespace
}  // namespace canopy::vk

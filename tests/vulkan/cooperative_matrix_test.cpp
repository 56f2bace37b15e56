// Cooperative matrices where a device has them, and their refusal where it has none.

#include <algorithm>

#include "engine/base/numbers.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/kernel.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {

std::span<const ShaderCode> test_shaders();

namespace {

using testing::error_of;

class CooperativeMatrixTest : public testing::DeviceTest {
 protected:
  static const ShaderCode& product() { return find_shader(test_shaders(), "matrix_product"); }

  static Buffer filled(Context& context, std::span<const uint16_t> halves, const char* name) {
    Buffer buffer = context.create_buffer(BufferKind::device, halves.size_bytes(), name);
    context.upload(buffer, 0, std::as_bytes(halves));
    return buffer;
  }
};
CANOPY_ON_EVERY_DEVICE(CooperativeMatrixTest);

TEST_P(CooperativeMatrixTest, isMarkedInTheTableOfShaders) {
  EXPECT_TRUE(product().cooperative_matrix);
  EXPECT_FALSE(find_shader(test_shaders(), "scale").cooperative_matrix);
}

TEST_P(CooperativeMatrixTest, isRefusedWhereTheDeviceHasNoneOrMayNotUseIt) {
  const auto baseline = open({.baseline = true});
  EXPECT_NE(error_of([&] { baseline->kernel(product(), {.spec = {{0, 8}}}); }).find("unavailable"), std::string::npos);
  const auto context = open();
  if (context->features().cooperative_matrix) return;
  EXPECT_TRUE(context->report().matrix_shapes.empty());
  const std::string error = error_of([&] { context->kernel(product(), {.spec = {{0, 8}}}); });
  EXPECT_NE(error.find("kernel matrix_product[0=8]: The shader uses "), std::string::npos) << error;
}

// Small integers, which every order of summation gives exactly.
TEST_P(CooperativeMatrixTest, multipliesHalvesIntoFloats) {
  const auto context = open();
  const std::vector<MatrixShape>& shapes = context->report().matrix_shapes;
  const auto shape = std::ranges::find_if(shapes, [](const MatrixShape& each) {
    return each.a == MatrixType::f16 && each.b == MatrixType::f16 && each.c == MatrixType::f32 &&
           each.result == MatrixType::f32 && each.scope == MatrixScope::subgroup && !each.saturating;
  });
  if (!context->features().cooperative_matrix || shape == shapes.end())
    GTEST_SKIP() << "the device has no such matrices";
  const auto [m, n, k] = std::tuple(shape->m, shape->n, shape->k);
  std::vector<uint16_t> a(m * k), b(k * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = f32_to_f16(static_cast<float>(i * 7 % 13) - 6);
  for (size_t i = 0; i < b.size(); ++i) b[i] = f32_to_f16(static_cast<float>(i * 5 % 11) - 5);
  const Buffer left = filled(*context, a, "left");
  const Buffer right = filled(*context, b, "right");
  const Buffer result = context->create_buffer(BufferKind::device, m * n * sizeof(float), "result");

  const DeviceLimits& limits = context->limits();
  const Kernel& kernel =
      context->kernel(product(), {.spec = {{0, limits.subgroup_size}, {1, m}, {2, n}, {3, k}},
                                  .subgroup_size = limits.pinned_subgroup == 0 ? 0 : limits.subgroup_size});
  CommandList list(*context);
  list.bind(kernel, {{left}, {right}, {result}});
  list.dispatch(1);
  context->run(list);
  std::vector<float> got(m * n);
  context->download(result, 0, std::as_writable_bytes(std::span(got)));
  for (uint32_t row = 0; row < m; ++row) {
    for (uint32_t col = 0; col < n; ++col) {
      float expected = 0;
      for (uint32_t i = 0; i < k; ++i) expected += f16_to_f32(a[row * k + i]) * f16_to_f32(b[i * n + col]);
      EXPECT_EQ(got[row * n + col], expected) << "row " << row << ", column " << col;
    }
  }
}

}  // namespace
}  // namespace canopy::vk

#pragma once
// The Vulkan devices for tests: every usable one, among them lavapipe and, where Chromium is installed, SwiftShader.
// Validation is on (CANOPY_VALIDATION, core if unset), and a test fails on any message of the layer.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/vulkan/context.h"
#include "engine/vulkan/instance.h"

namespace canopy::vk::testing {

/// The instance of this process, made when first used.
Instance& instance();

/// DeviceReport::index of each usable device.
std::vector<uint32_t> usable_devices();

/// A name for a test's parameter: "llvmpipe", "SwiftShader" …
std::string device_test_name(const ::testing::TestParamInfo<uint32_t>& info);

/// A test that runs once on each device. In the test file write TEST_P(MyTest, …) and CANOPY_ON_EVERY_DEVICE(MyTest);
class DeviceTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override { instance().clear_messages(); }
  void TearDown() override;

  std::unique_ptr<Context> open(const ContextOptions& options = {}) const {
    return std::make_unique<Context>(instance(), GetParam(), options);
  }
};

#define CANOPY_ON_EVERY_DEVICE(Suite)                                                             \
  INSTANTIATE_TEST_SUITE_P(, Suite, ::testing::ValuesIn(::canopy::vk::testing::usable_devices()), \
                           ::canopy::vk::testing::device_test_name)

/// Runs f, which must throw a canopy::Error, and returns "KIND: message"; empty if it does not throw.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(canopy::to_string(e.kind())) + ": " + e.what();
  }
  return "";
}

}  // namespace canopy::vk::testing

// A made-up NVIDIA GPU beside the Vulkan device that ctest chose, which stands for the same GPU's other driver.

#include <gtest/gtest.h>

#include "cuda_backend/cuda_device.h"
#include "engine/base/error.h"
#include "engine/session/devices.h"
#include "engine/vulkan/instance.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/cuda_backend/fake_device.h"

namespace canopy::test {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

/// A machine whose GPU is also the first Vulkan device.
std::vector<Backend> same_gpu(FakeMachine machine) {
  const std::vector<vk::DeviceReport> reports = vk::Instance().list_devices();
  machine.gpus[0].uuid = from_hex(gpu_of(reports.at(0).uuid));
  use_machine(std::move(machine));
  return {vulkan_backend(), cuda_backend([] { return cuda::FoundDriver{fake_driver(), "", true}; }, fake_kernels)};
}

TEST(BothBackendsTest, OneGpuIsListedTwiceAndKnownAsOne) {
  const std::vector<DeviceChoice> devices = list_devices(same_gpu({}));
  ASSERT_GE(devices.size(), 2u);
  EXPECT_EQ(devices.front().same_gpu, "cuda:0");
  EXPECT_EQ(devices.back().same_gpu, "vulkan:0");
  EXPECT_TRUE(devices.back().preferred);
}

TEST(BothBackendsTest, EitherBackendOpensIt) {
  const std::vector<Backend> source = same_gpu({});
  EXPECT_EQ(open_device("", {"auto"}, source)->info().backend, "cuda");
  EXPECT_EQ(open_device("vulkan", {"auto"}, source)->info().backend, "vulkan");
  EXPECT_EQ(open_device("vulkan:0", {"auto"}, source)->info().backend, "vulkan");
  EXPECT_EQ(open_device("0", {"auto"}, source)->info().backend, "vulkan");
}

TEST(BothBackendsTest, AGpuThatCudaDoesNotOpenIsOpenedByVulkan) {
  std::string said;
  set_log_sink([&](LogLevel, std::string_view message) { said += message; });
  constexpr cuda::Result no_binary = 209, held_by_another_program = 46, launch_failed = 719;
  for (const FakeMachine::Failure& failure : {FakeMachine::Failure{"load_module", 1, no_binary},
                                              {"retain_context", 1, held_by_another_program},
                                              {"create_stream", 1, launch_failed}}) {
    SCOPED_TRACE(failure.function);
    said.clear();
    FakeMachine machine;
    machine.failures = {failure};
    const std::unique_ptr<Device> device = open_device("", {"auto"}, same_gpu(machine));
    EXPECT_EQ(device->info().backend, "vulkan");
    EXPECT_NE(said.find("is used instead"), std::string::npos) << said;
    EXPECT_EQ(objects_alive(), 0u);
  }
  set_log_sink({});
}

}  // namespace
}  // namespace canopy::test

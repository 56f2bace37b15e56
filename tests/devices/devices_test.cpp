// Both backends' devices as one list, on machines that are made up.

#include "engine/devices/devices.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "tests/cuda_backend/fake_device.h"

namespace canopy::test {
namespace {

vk::DeviceReport vulkan_device(uint32_t index, const char* name, const std::string& gpu) {
  vk::DeviceReport report;
  report.index = index;
  report.name = name;
  report.type = vk::DeviceType::discrete;
  report.uuid = gpu + "-0123";
  report.driver_name = "driver";
  report.driver_version = "1";
  report.api_version = "1.3.280";
  report.usable = true;
  return report;
}

/// The first made-up GPU, as Vulkan's driver would tell its identity.
const std::string kFirstGpu = "00000000000000000000000000000001";

DeviceSource source(const FakeMachine& machine, const std::string& vulkan_gpu = kFirstGpu) {
  use_machine(machine);
  DeviceSource source;
  source.find_cuda = [] { return cuda::FoundDriver{fake_driver(), "", true}; };
  source.list_vulkan = [=] { return std::vector{vulkan_device(0, "Made-up GPU by Vulkan", vulkan_gpu)}; };
  source.kernels = &fake_kernels();
  return source;
}

TEST(DevicesTest, OneListHasBothBackends) {
  FakeMachine machine;
  machine.gpus = {FakeGpu{}, {"Old", 70, 1 << 30}};
  const std::vector<DeviceChoice> devices = list_devices(source(machine));
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[0].selector, "vulkan:0");
  EXPECT_EQ(devices[0].api_version, "1.3.280");
  EXPECT_EQ(devices[0].same_gpu, "cuda:0");
  EXPECT_FALSE(devices[0].preferred);
  EXPECT_EQ(devices[1].selector, "cuda:0");
  EXPECT_EQ(devices[1].backend, "cuda");
  EXPECT_EQ(devices[1].capability, "9.0");
  EXPECT_EQ(devices[1].same_gpu, "vulkan:0");
  EXPECT_EQ(devices[1].memory_bytes, uint64_t{2} << 30);
  EXPECT_TRUE(devices[1].preferred);
  EXPECT_FALSE(devices[2].usable);
  EXPECT_NE(devices[2].reason.find("7.0"), std::string::npos);
}

TEST(DevicesTest, OtherGpusAreNotTakenForTheSame) {
  for (const DeviceChoice& device : list_devices(source({}, "another"))) EXPECT_EQ(device.same_gpu, "");
}

TEST(DevicesTest, AMachineWithoutNvidiaHasNoLineOfIt) {
  DeviceSource without = source({});
  without.find_cuda = [] { return cuda::FoundDriver{std::nullopt, "There is no NVIDIA driver here.", false}; };
  const std::vector<DeviceChoice> devices = list_devices(without);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices[0].preferred);
}

TEST(DevicesTest, ADriverThatDoesNotStartIsALineWithItsReason) {
  FakeMachine machine;
  machine.init_result = 803;
  const std::vector<DeviceChoice> devices = list_devices(source(machine));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_TRUE(devices[0].preferred);
  EXPECT_EQ(devices[1].backend, "cuda");
  EXPECT_FALSE(devices[1].usable);
  EXPECT_NE(devices[1].reason.find("803"), std::string::npos);
  const auto json = devices_json(find_devices(source(machine)));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[1]["backend"], "cuda");
  EXPECT_EQ(json[1]["usable"], false);
  EXPECT_EQ(json[1]["reason"], devices[1].reason);
}

TEST(DevicesTest, CudaWorksWithoutAnyVulkan) {
  DeviceSource alone = source({});
  alone.list_vulkan = []() -> std::vector<vk::DeviceReport> {
    throw Error(ErrorKind::unavailable, "No Vulkan driver was found.");
  };
  const std::vector<DeviceChoice> devices = list_devices(alone);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices[0].preferred);
  const std::unique_ptr<Device> device = open_device("", KernelChoice::automatic, alone);
  EXPECT_EQ(device->info().backend, "cuda");
  EXPECT_EQ(gpu_of(device->info().uuid), kFirstGpu);
  alone.find_cuda = [] { return cuda::FoundDriver{}; };
  try {
    list_devices(alone);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "No Vulkan driver was found.");
  }
}

TEST(DevicesTest, AGpuThatDoesNotOpenIsSaidWhereItWasNamed) {
  FakeMachine machine;
  machine.failures = {{"retain_context", 1, 801}};
  const DeviceSource broken = source(machine);
  try {
    open_device("cuda", KernelChoice::automatic, broken);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_NE(std::string(e.what()).find("Opening the GPU"), std::string::npos);
  }
}

TEST(DevicesTest, InsteadOfAGpuThatWasNamedNoOtherIsOpened) {
  FakeMachine machine;
  machine.failures = {{"retain_context", 1, 801}};
  const DeviceSource broken = source(machine, "another");
  const std::vector<DeviceChoice> devices = list_devices(broken);
  ASSERT_EQ(devices.size(), 2u);
  ASSERT_EQ(devices[1].backend, "cuda");
  ASSERT_EQ(devices[1].same_gpu, "") << "Vulkan does not have it";
  try {
    open_device("1", KernelChoice::automatic, broken);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("Opening the GPU"), std::string::npos);
  }
}

TEST(DevicesTest, KernelsThatCudaHasNotAreSaidWhereItWasNamed) {
  try {
    open_device("cuda:0", KernelChoice::matrix_i8, source({}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    EXPECT_STREQ(e.what(), "The CUDA backend has no kernels matrix_i8.");
  }
}

// On Hopper the default is another family, which the self-test falls back from, too.
TEST(DevicesTest, KernelsForEachWarpCanBeNamed) {
  const auto family = [](KernelChoice choice) {
    const std::string kernels = open_device("cuda:0", choice, source({}))->info().kernels;
    return kernels.substr(kernels.rfind(' ') + 1);
  };
  EXPECT_EQ(family(KernelChoice::automatic), "warpgroups");
  EXPECT_EQ(family(KernelChoice::matrix), "matrix");
}

TEST(DevicesTest, JsonHasTheBackendOfEach) {
  FakeMachine machine;
  const auto json = devices_json(find_devices(source(machine)));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["backend"], "vulkan");
  EXPECT_EQ(json[0]["same_gpu"], "cuda:0");
  EXPECT_EQ(json[1]["backend"], "cuda");
  EXPECT_EQ(json[1]["index"], 1);
  EXPECT_EQ(json[1]["compute_capability"], "9.0");
  EXPECT_EQ(json[1]["usable"], true);
}

}  // namespace
}  // namespace canopy::test

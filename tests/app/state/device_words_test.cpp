#include "app/state/models.h"

#include <gtest/gtest.h>

namespace canopy::app {
namespace {

DeviceChoice by_vulkan() {
  DeviceChoice device{"vulkan:1", "NVIDIA GeForce RTX 4090", "discrete", true, ""};
  device.memory_bytes = uint64_t{24} << 30;
  device.driver = "NVIDIA 580.65.06";
  device.words = "Vulkan 1.4, NVIDIA 580.65.06";
  device.details = "NVIDIA 580.65.06, Vulkan 1.4.303";
  device.backend = "vulkan";
  device.backend_title = "Vulkan";
  device.same_gpu = "cuda:0";
  return device;
}

DeviceChoice by_cuda() {
  DeviceChoice device = by_vulkan();
  device.selector = "cuda:0";
  device.driver = "NVIDIA 580.65.06, CUDA 13.0";
  device.words = "NVIDIA 580.65.06, CUDA 13.0, compute capability 8.9";
  device.details = "NVIDIA 580.65.06, CUDA 13.0\nCompute capability 8.9";
  device.backend = "cuda";
  device.backend_title = "CUDA";
  device.same_gpu = "vulkan:1";
  return device;
}

TEST(KeptDevices, AreFoundAgainByBackendAndName) {
  DeviceChoice second = by_vulkan();
  second.selector = "vulkan:2";
  std::vector<DeviceChoice> devices = {by_vulkan(), second, by_cuda()};
  const std::string name = by_cuda().name;
  EXPECT_EQ(selector_of({"cuda:0", "cuda", name}, devices), "cuda:0");
  EXPECT_EQ(selector_of({"vulkan:2", "vulkan", name}, devices), "vulkan:2") << "of two with one name";
  EXPECT_EQ(selector_of({"vulkan:7", "vulkan", name}, devices), "vulkan:1") << "the order has changed";
  EXPECT_EQ(selector_of({}, devices), "");
  EXPECT_EQ(selector_of({"vulkan:1", "vulkan", "Radeon RX 7900 XTX"}, devices), "") << "it was taken out";
  devices[2].usable = false;
  EXPECT_EQ(selector_of({"cuda:0", "cuda", name}, devices), "") << "its driver is gone";
}

TEST(DeviceWords, TellTheTwoBackendsOfOneGpuApart) {
  EXPECT_EQ(device_words(by_cuda()), "discrete, 25.77 GB, NVIDIA 580.65.06, CUDA 13.0, compute capability 8.9");
  const std::vector<DeviceChoice> devices = {by_vulkan(), by_cuda()};
  EXPECT_EQ(backend_words(devices, "cuda"), "CUDA");
  EXPECT_EQ(backend_words(devices, "vulkan"), "Vulkan");
  EXPECT_EQ(backend_words(devices, "gone"), "gone") << "of a recording, made where there was another";
  EXPECT_EQ(backend_words(devices, ""), "");
}

TEST(DeviceWords, DetailsNameTheOtherBackend) {
  EXPECT_NE(device_details({}, by_cuda()).find("Compute capability 8.9\nThe same GPU as vulkan:1\n"),
            std::string::npos);
  EXPECT_NE(device_details({}, by_vulkan()).find("The same GPU as cuda:0\n"), std::string::npos);
  DeviceChoice alone = by_vulkan();
  alone.same_gpu = "";
  EXPECT_EQ(device_details({}, alone).find("The same GPU"), std::string::npos);
}

}  // namespace
}  // namespace canopy::app

#include "engine/compute/backend.h"

#include <gtest/gtest.h>

#include <vector>

namespace canopy {
namespace {

ListedDevice listed(uint32_t number, const char* backend, uint32_t ordinal, const char* name, const char* type,
                    const char* gpu, bool usable = true) {
  return {number, backend, ordinal, name, type, "driver 1", gpu, usable, usable ? "" : "Too old."};
}

const std::vector<ListedDevice> kMachine = {
    listed(0, "vulkan", 0, "llvmpipe", "cpu", ""),
    listed(1, "vulkan", 1, "NVIDIA GeForce RTX 4090", "discrete", "aa"),
    listed(2, "vulkan", 2, "AMD Radeon RX 7900 XTX", "discrete", "bb"),
    listed(3, "vulkan", 3, "NVIDIA GeForce GTX 1080", "discrete", "cc"),
    listed(4, "cuda", 0, "NVIDIA GeForce RTX 4090", "discrete", "aa"),
    listed(5, "cuda", 1, "NVIDIA GeForce GTX 1080", "discrete", "cc", false),
};

const std::vector<std::string> kBackends = {"vulkan", "cuda"};

size_t choose(std::span<const ListedDevice> devices, std::string_view selector) {
  return choose_device(devices, selector, kBackends);
}

std::string refusal(std::string_view selector, std::span<const ListedDevice> devices = kMachine) {
  try {
    choose(devices, selector);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    return e.what();
  }
  return "";
}

TEST(DeviceChoiceTest, CudaComesFirstWhereItCanBeUsed) {
  EXPECT_EQ(choose(kMachine, ""), 4u);
  EXPECT_EQ(choose(kMachine, "4090"), 4u);
  EXPECT_EQ(choose(kMachine, "discrete"), 4u);
  EXPECT_EQ(choose(kMachine, "1080"), 3u) << "by Vulkan, as CUDA cannot use it";
  EXPECT_EQ(choose(std::span(kMachine).first(4), ""), 1u);
  EXPECT_EQ(choose(std::span(kMachine).first(1), ""), 0u);
}

// Listed in the opposite order, so that no number decides.
const std::vector<std::string> kThreeBackends = {"vulkan", "cuda", "cpu"};
const std::vector<ListedDevice> kOneOfEach = {
    listed(0, "vulkan", 0, "llvmpipe (LLVM 19)", "software", ""),
    listed(1, "cpu", 0, "AMD EPYC 9654", "cpu", ""),
    listed(2, "vulkan", 1, "Virtio-GPU Venus", "virtual", "dd"),
    listed(3, "vulkan", 2, "AMD Radeon 780M", "integrated", "ee"),
    listed(4, "vulkan", 3, "Intel Arc B580", "discrete", "ff"),
};

TEST(DeviceChoiceTest, DiscreteComesBeforeIntegratedVirtualTheProcessorAndSoftware) {
  std::vector<ListedDevice> devices = kOneOfEach;
  for (size_t best = devices.size(); best-- > 0;) {
    EXPECT_EQ(choose_device(devices, "", kThreeBackends), best);
    EXPECT_EQ(choose_device(std::span(kOneOfEach).first(best + 1), "", kThreeBackends), best);
    devices[best].usable = false;  // then the next one is
    devices[best].reason = "Too old.";
  }
  try {
    choose_device(devices, "", kThreeBackends);
    FAIL();
  } catch (const Error& e) {
    const std::string told = e.what();
    EXPECT_NE(told.find("No device can be used."), std::string::npos) << told;
    EXPECT_NE(told.find("1: AMD EPYC 9654 (cpu, driver 1) [cpu:0] \u2014 not usable: Too old."), std::string::npos)
        << told;
    EXPECT_NE(told.find("2: Virtio-GPU Venus (virtual, driver 1) [vulkan:1] \u2014 not usable"), std::string::npos)
        << told;
  }
}

TEST(DeviceChoiceTest, WhatIsAskedForIsTakenBeforeBetterOnes) {
  for (size_t i = 0; i < kOneOfEach.size(); ++i) {
    const ListedDevice& device = kOneOfEach[i];
    for (const std::string& selector : {device.type, device.id(), device.name, std::to_string(i)})
      EXPECT_EQ(choose_device(kOneOfEach, selector, kThreeBackends), i) << selector;
  }
  EXPECT_EQ(choose_device(kOneOfEach, "CPU", kThreeBackends), 1u) << "the backend and the type";
  for (const std::string_view type : kDeviceTypes) {
    std::vector<ListedDevice> others = kOneOfEach;
    std::erase_if(others, [&](const ListedDevice& device) { return device.type == type; });
    try {
      choose_device(others, type, {});
      ADD_FAILURE() << type << ": another was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unavailable);
      EXPECT_NE(std::string(e.what()).find("There is no device of type \"" + std::string(type) + "\"."),
                std::string::npos)
          << e.what();
    }
  }
}

TEST(DeviceChoiceTest, TheLaterBackendIsPreferredWhateverItsName) {
  const std::vector<std::string> other_order = {"cuda", "vulkan"};
  EXPECT_EQ(choose_device(kMachine, "", other_order), 1u);
  EXPECT_EQ(choose_device(kMachine, "cuda", other_order), 4u);
}

TEST(DeviceChoiceTest, ABackendMayBeNamedAndADeviceOfIt) {
  EXPECT_EQ(choose(kMachine, "vulkan"), 1u);
  EXPECT_EQ(choose(kMachine, "CUDA"), 4u);
  EXPECT_EQ(choose(kMachine, "vulkan:2"), 2u);
  EXPECT_EQ(choose(kMachine, "cuda:0"), 4u);
  EXPECT_NE(refusal("cuda:1").find("not usable: Too old."), std::string::npos);
  EXPECT_NE(refusal("cuda:2").find("There is no device called \"cuda:2\""), std::string::npos);
  EXPECT_NE(refusal("cuda", std::span(kMachine).first(4)).find("of the backend \"cuda\""), std::string::npos);
}

TEST(DeviceChoiceTest, NumbersAreThoseOfTheList) {
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(choose(kMachine, std::to_string(i)), i);
  EXPECT_NE(refusal("5"), "");
  EXPECT_NE(refusal("6").find("index \"6\""), std::string::npos);
  EXPECT_NE(refusal("40").find("index \"40\""), std::string::npos) << "no part of \"4090\"";
  EXPECT_NE(refusal("4294967296"), "");
}

TEST(DeviceChoiceTest, WordsThatNameABackendAreTold) {
  for (const char* word : {"cuda", "CUDA", "vulkan", "cuda:0", "Vulkan:12"})
    EXPECT_TRUE(names_backend(word, kBackends)) << word;
  for (const char* word : {"", "0", "discrete", "cuda:", "cuda:x", "cudax", "rtx"}) {
    EXPECT_FALSE(names_backend(word, kBackends)) << word;
  }
}

TEST(DeviceChoiceTest, AGpuOfBothBackendsIsOneGpu) {
  EXPECT_EQ(other_backend_of(kMachine, kMachine[1]), "cuda:0");
  EXPECT_EQ(other_backend_of(kMachine, kMachine[4]), "vulkan:1");
  EXPECT_EQ(other_backend_of(kMachine, kMachine[0]), "");
  EXPECT_EQ(other_backend_of(kMachine, kMachine[2]), "");
  const std::string text = describe_devices(kMachine);
  EXPECT_NE(text.find("0: llvmpipe (cpu, driver 1) [vulkan:0]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("4: NVIDIA GeForce RTX 4090 (discrete, driver 1) [cuda:0, the same GPU as vulkan:1]\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace canopy

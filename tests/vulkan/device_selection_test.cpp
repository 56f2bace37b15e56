#include "engine/vulkan/vulkan_device.h"

#include <gtest/gtest.h>
#include <volk.h>

#include "engine/base/error.h"

namespace canopy::vk {
namespace {

DeviceReport device(uint32_t index, const char* name, DeviceType type, bool usable = true) {
  DeviceReport report;
  report.index = index;
  report.name = name;
  report.type = type;
  report.driver_name = "driver";
  report.driver_version = "1.2";
  report.usable = usable;
  report.reason = usable ? "" : "too old.";
  return report;
}

const std::vector<DeviceReport> machine = {
    device(0, "llvmpipe (LLVM 15.0.6)", DeviceType::cpu),
    device(1, "AMD Radeon Graphics (RADV)", DeviceType::integrated),
    device(2, "NVIDIA GeForce GTX 480", DeviceType::discrete, /*usable=*/false),
    device(3, "AMD Radeon RX 7900 XTX (RADV)", DeviceType::discrete),
    device(4, "AMD Radeon RX 6800 XT (RADV)", DeviceType::discrete),
};

std::string error_of(std::string_view selector, std::span<const DeviceReport> reports) {
  try {
    select_device(reports, selector);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unavailable);
    return e.what();
  }
  return "";
}

TEST(SelectDevice, takesTheBestUsableDeviceByDefault) {
  EXPECT_EQ(select_device(machine, ""), 3u);
  EXPECT_EQ(select_device(std::span(machine).first(3), ""), 1u);
  EXPECT_EQ(select_device(std::span(machine).first(1), ""), 0u);
}

TEST(SelectDevice, returnsThePositionNotTheIndex) {
  EXPECT_EQ(select_device(std::span(machine).subspan(3), "4"), 1u);
}

TEST(SelectDevice, takesAnIndexATypeOrAPartOfTheName) {
  EXPECT_EQ(select_device(machine, "0"), 0u);
  EXPECT_EQ(select_device(machine, "software"), 0u);
  EXPECT_EQ(select_device(machine, "Integrated"), 1u);
  EXPECT_EQ(select_device(machine, "discrete"), 3u);
  EXPECT_EQ(select_device(machine, "6800 xt"), 4u);
  EXPECT_EQ(select_device(machine, "RADEON"), 3u);
}

TEST(SelectDevice, refusesWithAListOfWhatExists) {
  const std::string unknown = error_of("Arc", machine);
  EXPECT_NE(unknown.find("with a name like \"Arc\""), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("4: AMD Radeon RX 6800 XT (RADV) (discrete, driver 1.2)"), std::string::npos) << unknown;
  const std::string old = error_of("2", machine);
  EXPECT_NE(old.find("can be used"), std::string::npos) << old;
  EXPECT_NE(old.find("not usable: too old."), std::string::npos) << old;
  EXPECT_NE(error_of("virtual", machine).find("of type \"virtual\""), std::string::npos);
  EXPECT_NE(error_of("7", machine).find("index \"7\""), std::string::npos);
  EXPECT_NE(error_of("", {}).find("No device was found"), std::string::npos);
}

TEST(SelectDevice, doesNotTakeAHugeNumberForAnIndex) {
  EXPECT_NE(error_of("4294967296", machine), "");
}

DeviceFacts good_facts() {
  DeviceFacts facts;
  facts.api_version = VK_API_VERSION_1_3;
  facts.has_compute_queue = facts.has_synchronization2 = facts.has_maintenance4 = true;
  facts.limits.max_storage_range = 128ull << 20;
  facts.limits.max_uniform_range = 65536;
  facts.limits.max_allocation = 1ull << 30;
  facts.limits.max_shared_bytes = 16384;
  facts.limits.max_invocations = 256;
  facts.limits.max_push_bytes = 128;
  facts.limits.max_storage_buffers = 13;
  facts.limits.subgroup_size = 4;
  return facts;
}

TEST(UnusableReason, acceptsExactlyTheMinimum) {
  EXPECT_EQ(unusable_reason(good_facts()), "");
}

TEST(UnusableReason, namesEachShortfallWithItsFigures) {
  const auto reason = [](auto spoil) {
    DeviceFacts facts = good_facts();
    spoil(facts);
    return unusable_reason(facts);
  };
  EXPECT_NE(reason([](DeviceFacts& f) { f.api_version = VK_MAKE_API_VERSION(0, 1, 1, 7); }).find("1.1.7"),
            std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.has_compute_queue = false; }).find("compute queue"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.has_synchronization2 = false; }).find("synchronization2"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.has_maintenance4 = false; }).find("maintenance4"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_storage_range -= 1; }).find("134217727, at least 134217728"),
            std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_uniform_range = 1; }).find("uniform"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_allocation = 1; }).find("allocation"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_shared_bytes = 1; }).find("shared"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_invocations = 128; }).find("128, at least 256"),
            std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_push_bytes = 64; }).find("push"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.max_storage_buffers = 12; }).find("storage buffers"),
            std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.subgroup_size = 2; }).find("subgroup size is 2"), std::string::npos);
  EXPECT_NE(reason([](DeviceFacts& f) { f.limits.subgroup_size = 128; }).find("subgroup size is 128"),
            std::string::npos);
  const std::string two = reason([](DeviceFacts& f) {
    f.has_maintenance4 = false;
    f.limits.max_push_bytes = 64;
  });
  EXPECT_NE(two.find("; "), std::string::npos) << two;
}

}  // namespace
}  // namespace canopy::vk

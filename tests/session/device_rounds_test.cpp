// Rounds on a Vulkan device, after warm-up: nothing is made on it, and the processor's time of the thread that asks for
// them is printed, in which the driver's part of submissions is, and waiting is not.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "engine/session/engine.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/base/processor_time.h"
#include "tests/model/golden_data.h"
#include "tests/vulkan/creation_hook.h"

namespace canopy::test {
namespace {

struct Setting {
  const char* name;
  bool behind_bus;  // as a GPU whose memory the host cannot see
  DecodeMode mode;
};

constexpr Setting kSettings[] = {{"plain", false, DecodeMode::ar},
                                 {"tree", false, DecodeMode::tree},
                                 {"bus_plain", true, DecodeMode::ar},
                                 {"bus_tree", true, DecodeMode::tree}};

class DeviceRoundsTest : public ::testing::TestWithParam<Setting> {
 protected:
  DeviceRoundsTest() {
    VulkanDeviceOptions options;
    if (GetParam().behind_bus) {
      options.context.force_staging = true;
      options.family = vk::KernelFamily::fma;
      options.as_software = false;
    }
    device_ = open_vulkan_device(options);
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
    request.context = 512;
    request.self_test = false;
    engine_ = Engine::open(*device_, request, {});
  }
  ~DeviceRoundsTest() override {
    for (const auto& message : validation_messages(*device_)) ADD_FAILURE() << message.id << ": " << message.text;
  }

  struct Rounds {
    std::string made;
    std::vector<double> host_us;
  };

  /// The rounds of a reply, the first left out: what is made in them, and the processor's time.
  Rounds rounds() {
    ReplySettings settings;
    settings.mode = GetParam().mode;
    settings.budget = 15;
    settings.max_tokens = 48;
    Rounds rounds;
    std::optional<vk::testing::CreationHook> hook;
    const ProcessorClock clock;
    double begin = 0;
    ReplyCallbacks callbacks;
    callbacks.round = [&](const RoundRecord&) {
      const double now = clock.seconds();
      if (hook) {
        rounds.host_us.push_back((now - begin) * 1e6);
        rounds.made = hook->made();
      } else {
        hook.emplace();
      }
      begin = clock.seconds();
    };
    engine_->reply(engine_->text.encode_raw("def read_file(path, mode='r'):"), settings, callbacks);
    return rounds;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(DeviceRoundsTest, MakeNothingAfterWarmUp) {
  rounds();
  engine_->resident->clear();
  Rounds measured = rounds();
  EXPECT_EQ(measured.made, "");
  ASSERT_GE(measured.host_us.size(), 5u);
  const auto middle = measured.host_us.begin() + static_cast<std::ptrdiff_t>(measured.host_us.size() / 2);
  std::nth_element(measured.host_us.begin(), middle, measured.host_us.end());
  std::printf("%s: %zu rounds, processor %.0f us\n", GetParam().name, measured.host_us.size(), *middle);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeviceRoundsTest, ::testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy::test

#include "engine/whatif/device_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/whatif/kernel_rules.h"
#include "tests/whatif/messages.h"

namespace canopy::predict {
namespace {

using test::message_of;

TEST(DeviceProfiles, HasTheDevicesThatTargetsAreSetFor) {
  std::set<std::string_view> names;
  for (const DeviceProfile& device : device_profiles()) names.insert(device.name);
  for (const std::string_view name :
       {"h100", "h200", "rtx4090", "rtx3090", "rx7900xtx", "rx9070xt", "strix-halo", "b580"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(names.size(), device_profiles().size());
}

// What people have: memory and f32 rate as their data sheets say, TFLOPS being two a multiply-add.
TEST(DeviceProfiles, HasTheDevicesThatPeopleHave) {
  const struct {
    std::string_view name;
    double gb_s, tflops;
  } known[] = {{"rtx5090", 1792, 104.8},
               {"rtx4060", 272, 15.1},
               {"rtx3060", 360, 12.7},
               {"a770", 560, 19.7},
               {"m4max", 546, 18.4}};
  for (const auto& [name, gb_s, tflops] : known) {
    const DeviceProfile& device = device_profile(name);
    EXPECT_EQ(device.memory_gb_s, gb_s) << name;
    EXPECT_NEAR(2 * device.lane_tops(), tflops, 0.01 * tflops) << name;
  }
}

TEST(DeviceProfiles, FiguresArePlausible) {
  for (const DeviceProfile& device : gpu_profiles()) {
    SCOPED_TRACE(device.name);
    EXPECT_FALSE(device.gpu.empty());
    const auto within = [](double value, double low, double high) { return value >= low && value <= high; };
    EXPECT_TRUE(within(device.memory_gb_s, 100, 10000));
    EXPECT_TRUE(within(device.memory_share, 0.7, 1));
    EXPECT_TRUE(within(device.latency_us, 0.2, 1.5));
    EXPECT_TRUE(within(device.cache_latency_us, 0.05, device.latency_us / 2));
    EXPECT_TRUE(within(device.cache_tb_s * 1e3, 2 * device.memory_gb_s * device.memory_share / 2, 10000));
    EXPECT_TRUE(within(device.cache_mb, 3, 256));
    EXPECT_TRUE(within(device.local_kb, 16, 512));
    EXPECT_TRUE(within(device.units, 8, 256));
    EXPECT_TRUE(within(device.resident_lanes, 512, 4096));
    EXPECT_TRUE(within(device.shared_kb, 48, 256));
    EXPECT_TRUE(within(device.full_registers, 16, 256));
    EXPECT_TRUE(within(device.lane_tops(), 3, 60));
    EXPECT_TRUE(within(device.matrix_tflop_s, 2 * device.lane_tops(), 1000));
    EXPECT_TRUE(within(device.integer_tops, device.matrix_tflop_s, 4.1 * device.matrix_tflop_s));
    EXPECT_TRUE(device.integer_depth == 16 || device.integer_depth == 32);
    EXPECT_TRUE(within(device.step_us, 0.5, 20));
    EXPECT_TRUE(within(device.submission_us, 1, 100));
    EXPECT_TRUE(within(device.round_trip_us, 1, 100));
    EXPECT_TRUE(within(device.bus_gb_s, 4, 500));
  }
}

TEST(OwnDevices, AreProfilesByFourFigures) {
  const OwnDevice own{"My GPU", 672, 31.5, 1.5};
  EXPECT_EQ(problem_of(own), "");
  const DeviceProfile profile = profile_of(own);
  EXPECT_EQ(profile.name, "My GPU");
  EXPECT_EQ(profile.memory_gb_s, 672);
  EXPECT_NEAR(2 * profile.lane_tops(), 31.5, 1e-9);
  EXPECT_EQ(profile.step_us, 1.5);
  EXPECT_EQ(default_kernels(profile), Kernels::fma) << "no matrix cores are known of it";
}

TEST(OwnDevices, AreRefusedWithASentence) {
  const double nan = std::nan("");
  const std::pair<OwnDevice, const char*> bad[] = {
      {{"", 672, 31, 1}, "needs a name"},
      {{"  ", 672, 31, 1}, "needs a name"},
      {{std::string(41, 'a'), 672, 31, 1}, "at most 40 bytes"},
      {{"a\nb", 672, 31, 1}, "cannot be seen"},
      {{"a", 0, 31, 1}, "Its memory is 0 GB/s; it must be 5 to 20000."},
      {{"a", nan, 31, 1}, "Its memory is no number; it must be"},
      {{"a", 672, -3, 1}, "Its arithmetic is -3 TFLOPS; it must be"},
      {{"a", 672, 31, 1e9}, "A dispatch is 1e+09 \u00b5s; it must be 0.1 to 1000."}};
  for (const auto& [device, words] : bad) EXPECT_NE(problem_of(device).find(words), std::string::npos) << words;
}

TEST(DeviceProfiles, AreChosenByNameOrAll) {
  EXPECT_EQ(chosen_profiles("b580").size(), 1u);
  EXPECT_EQ(chosen_profiles("b580")[0].name, "b580");
  EXPECT_EQ(chosen_profiles("all").size(), device_profiles().size());
  EXPECT_EQ(chosen_profiles("gpus").size() + chosen_profiles("processors").size(), device_profiles().size());
  EXPECT_FALSE(chosen_profiles("gpus").back().is_processor());
  EXPECT_TRUE(chosen_profiles("processors").front().is_processor());
  const std::string message = message_of([] { chosen_profiles("gtx\n480"); });
  for (const DeviceProfile& device : device_profiles()) EXPECT_NE(message.find(device.name), message.npos) << message;
  EXPECT_NE(message.find("all."), message.npos) << message;
  EXPECT_EQ(message.find('\n'), message.npos) << message;
}

TEST(Kernels, AreChosenByNameAndByDevice) {
  for (const Kernels kernels : {Kernels::fma, Kernels::matrix, Kernels::matrix_i8, Kernels::llama_cpp}) {
    EXPECT_EQ(kernels_named(to_string(kernels)), kernels);
    EXPECT_EQ(rules_of(kernels).kernels, kernels);
  }
  EXPECT_NE(message_of([] { kernels_named("opencl"); }).find("fma, matrix, matrix_i8, cuda, llama.cpp"),
            std::string::npos);
  EXPECT_EQ(default_kernels(device_profile("h100")), Kernels::cuda);
  EXPECT_EQ(vulkan_kernels(device_profile("h100")), Kernels::matrix);
  DeviceProfile device = device_profile("rx7900xtx");
  EXPECT_EQ(default_kernels(device), Kernels::matrix);
  device.matrix_tflop_s = 0;
  EXPECT_EQ(default_kernels(device), Kernels::fma);
}

TEST(Kernels, EveryTypeOfWeightsIsDecoded) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    for (const Kernels kernels : {Kernels::fma, Kernels::matrix, Kernels::matrix_i8, Kernels::llama_cpp}) {
      EXPECT_GT(decode_ops(kernels, static_cast<WeightType>(i)), 0);
      EXPECT_LT(decode_ops(kernels, static_cast<WeightType>(i)), 20);
    }
  }
}

TEST(Kernels, RulesCanBeAssumed) {
  KernelRules rules = rules_of(Kernels::matrix);
  assume(rules, "");
  EXPECT_EQ(rules.tile_rows, 0);
  assume(rules, "tile_rows=128,columns_in_flight=96.5");
  EXPECT_EQ(rules.tile_rows, 128);
  EXPECT_EQ(rules.columns_in_flight, 96.5);
  EXPECT_NE(message_of([&] { assume(rules, "rows=1"); }).find("tile_rows, tile_columns"), std::string::npos);
  for (const char* wrong : {"tile_rows", "tile_rows=", "tile_rows=0", "tile_rows=-1", "tile_rows=1e9", "tile_rows=nan",
                            "tile_rows=12x", "invocations=1,tile_rows=inf"}) {
    EXPECT_NE(message_of([&] { assume(rules, wrong); }).find("above 0"), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace canopy::predict

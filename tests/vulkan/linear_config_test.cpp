// The file in which the chosen variants are kept.

#include "engine/vulkan/linear_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/vulkan/shader_library.h"
#include "engine/vulkan/spirv_reflect.h"
#include "tests/base/temp_folder.h"

namespace canopy::vk {
namespace {

const LinearShapeKey kKey{WeightType::q4_1, 3072, 576, 16};

TEST(LinearChoicesTest, ComeBackFromTheirFile) {
  const test::TempFolder folder;
  LinearChoices choices(folder.path() / "linear.json", "device A");
  EXPECT_FALSE(choices.find(kKey));
  choices.set(kKey, {8, 8, 1});
  EXPECT_EQ(choices.save(), "");
  EXPECT_EQ(LinearChoices(folder.path() / "linear.json", "device A").find(kKey), (LinearConfig{8, 8, 1}));
}

TEST(LinearChoicesTest, OfAnotherDeviceAreIgnored) {
  const test::TempFolder folder;
  LinearChoices choices(folder.path() / "linear.json", "device A");
  choices.set(kKey, {8, 8, 1});
  choices.save();
  EXPECT_FALSE(LinearChoices(folder.path() / "linear.json", "device B").find(kKey));
}

TEST(LinearChoicesTest, SurviveAnyDamageToTheFile) {
  for (const std::string text :
       {"", "{", "[]", "{\"version\": 1}", "{\"version\": 1, \"identity\": \"d\", \"choices\": 3}",
        "{\"version\": 1, \"identity\": \"d\", \"choices\": [[4, 3072, 576, 16, 7, 8, 1]]}",
        "{\"version\": 1, \"identity\": \"d\", \"choices\": [[9, 3072, 576, 16, 8, 8, 1]]}",
        "{\"version\": 1, \"identity\": \"d\", \"choices\": [[4, 3072, 576, 16, 8, 8, 100000]]}",
        "{\"version\": 1, \"identity\": \"d\", \"choices\": [[4, -1, 576, 16, 8, 8, 1], 5, null, [1]]}",
        "{\"version\": \"1\", \"identity\": 4, \"choices\": []}"}) {
    const test::TempFolder folder;
    std::ofstream(folder.path() / "linear.json") << text;
    EXPECT_FALSE(LinearChoices(folder.path() / "linear.json", "d").find(kKey)) << text;
  }
}

TEST(LinearChoicesTest, SayWhyTheyCouldNotBeSaved) {
  LinearChoices choices("/proc/canopy/linear.json", "d");
  choices.set(kKey, {8, 8, 1});
  EXPECT_NE(choices.save(), "");
}

// The variants of GPUs fit what the baseline guarantees: 256 invocations and 16 KiB of shared memory, as used by the
// shader of linear_add.
TEST(LinearCandidatesTest, FitTheSmallestUsableDevice) {
  const DeviceLimits limits = baseline_limits();
  for (const uint32_t cols : {256u, 1024u, 2048u, 4096u, 16384u}) {
    for (uint32_t columns = 1; columns <= 32; columns *= 2) {
      const auto candidates = linear_candidates(false, {WeightType::q4_1, 4096, cols, columns}, limits);
      ASSERT_FALSE(candidates.empty());
      for (const LinearConfig& config : candidates) {
        const auto constants = linear_options(config, WeightType::q4_1, columns, false, true).spec;
        EXPECT_LE(config.lanes * config.split, limits.max_invocations) << columns << " columns, split " << config.split;
        EXPECT_LE(reflect(find_shader("linear_add_q4_1").words, constants).shared_bytes, limits.max_shared_bytes)
            << columns << " columns, split " << config.split;
      }
    }
  }
}

TEST(LinearCandidatesTest, UseWhatALargerDeviceHas) {
  DeviceLimits limits = baseline_limits();
  limits.max_invocations = 1024;
  limits.max_group_size = {1024, 1024, 64};
  limits.max_shared_bytes = 65536;
  const auto candidates = linear_candidates(false, {WeightType::q4_1, 4096, 4096, 1}, limits);
  EXPECT_NE(std::ranges::find(candidates, LinearConfig{4, 32, 16}), candidates.end());
}

}  // namespace
}  // namespace canopy::vk

// The file in which the chosen variants of the family that reads texels are kept.

#include "engine/vulkan/linear_config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temp_folder.h"

namespace canopy::vk {
namespace {

const LinearShapeKey kKey{WeightType::q4_1, 3072, 576, 16};

TEST(LinearChoicesTest, ComeBackFromTheirFile) {
  const test::TempFolder folder;
  LinearChoices choices(folder.path() / "linear.json", "device A");
  EXPECT_FALSE(choices.find(kKey));
  choices.set(kKey, {8, 8});
  EXPECT_EQ(choices.save(), "");
  EXPECT_EQ(LinearChoices(folder.path() / "linear.json", "device A").find(kKey), (LinearConfig{8, 8}));
}

TEST(LinearChoicesTest, OfAnotherDeviceAreIgnored) {
  const test::TempFolder folder;
  LinearChoices choices(folder.path() / "linear.json", "device A");
  choices.set(kKey, {8, 8});
  choices.save();
  EXPECT_FALSE(LinearChoices(folder.path() / "linear.json", "device B").find(kKey));
}

TEST(LinearChoicesTest, SurviveAnyDamageToTheFile) {
  for (const std::string text :
       {"", "{", "[]", "{\"version\": 2}", "{\"version\": 2, \"identity\": \"d\", \"choices\": 3}",
        "{\"version\": 2, \"identity\": \"d\", \"choices\": [[4, 3072, 576, 16, 7, 8]]}",
        "{\"version\": 2, \"identity\": \"d\", \"choices\": [[99, 3072, 576, 16, 8, 8]]}",
        "{\"version\": 2, \"identity\": \"d\", \"choices\": [[4, 3072, 576, 16, 8, 100000]]}",
        "{\"version\": 2, \"identity\": \"d\", \"choices\": [[4, -1, 576, 16, 8, 8], 5, null, [1]]}",
        "{\"version\": \"1\", \"identity\": 4, \"choices\": []}"}) {
    const test::TempFolder folder;
    std::ofstream(folder.path() / "linear.json") << text;
    EXPECT_FALSE(LinearChoices(folder.path() / "linear.json", "d").find(kKey)) << text;
  }
}

TEST(LinearChoicesTest, SayWhyTheyCouldNotBeSaved) {
  LinearChoices choices("/proc/canopy/linear.json", "d");
  choices.set(kKey, {8, 8});
  EXPECT_NE(choices.save(), "");
}

}  // namespace
}  // namespace canopy::vk

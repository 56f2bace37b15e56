// What a model that is not fetched would take and bring on a device.

#include "app/state/hub_fit.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/whatif/model_shapes.h"

namespace canopy::app {
namespace {

constexpr uint64_t kGB = 1'000'000'000;

KnownPair qwen8() {
  KnownPair pair;
  pair.target = {"Qwen3-8B", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B-GGUF", "apache-2.0", 0};
  pair.drafter = {"Qwen3-8B-DFlash-b16", "z-lab/Qwen3-8B-DFlash-b16", "", "", 0};
  return pair;
}

TEST(HubFit, KnowsTheProfileOfExactlyThatDevice) {
  const auto name = [](const char* device) {
    const predict::DeviceProfile* profile = profile_here(device);
    return profile == nullptr ? std::string() : std::string(profile->name);
  };
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090"), "rtx4090");
  EXPECT_EQ(name("NVIDIA GeForce RTX 4090 Laptop GPU"), "");
  EXPECT_EQ(name("NVIDIA GeForce RTX 3060 Ti"), "");
  EXPECT_EQ(name("AMD Radeon RX 7900 XTX (RADV NAVI31)"), "rx7900xtx");
  EXPECT_EQ(name("AMD Radeon RX 7900 XT (RADV NAVI31)"), "");
  EXPECT_EQ(name("Radeon 8060S Graphics (RADV GFX1151)"), "strix-halo");
  EXPECT_EQ(name("Intel(R) Arc(tm) B580 Graphics (BMG G21)"), "b580");
  EXPECT_EQ(name("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(name("NVIDIA H100 PCIe"), "");
  EXPECT_EQ(name("NVIDIA H200"), "h200");
  EXPECT_EQ(name("llvmpipe (LLVM 15.0.6, 256 bits)"), "");
  EXPECT_EQ(name(""), "");
}

TEST(HubFit, WeighsByThePlanAndPredictsOnlyWhatIsKnown) {
  const predict::NamedShape shape = predict::model_shape("qwen3-8b-q4_k_m");
  const HubHere here{"NVIDIA GeForce RTX 4090", 24 * kGB, false};
  const HubWeight weight = weigh(shape.config, 5 * kGB, "Q4_K_M", here);
  EXPECT_GT(weight.needed, 5 * kGB);
  EXPECT_LT(weight.needed, 7 * kGB);
  EXPECT_GT(weight.tokens_per_second, 50);
  EXPECT_LT(weight.tokens_per_second, 250);
  // Fewer bytes are read faster.
  EXPECT_LT(weigh(shape.config, 8 * kGB, "Q8_0", here).tokens_per_second, weight.tokens_per_second);
  EXPECT_EQ(weigh(shape.config, 5 * kGB, "Q5_K_M", here).tokens_per_second, 0) << "no shape has this type";
  EXPECT_EQ(weigh(shape.config, 5 * kGB, "Q4_K_M", {"llvmpipe", 24 * kGB, true}).tokens_per_second, 0);
  ModelConfig other = shape.config;
  other.layers = 35;
  EXPECT_EQ(weigh(other, 5 * kGB, "Q4_K_M", here).tokens_per_second, 0) << "its shape has no name";
  EXPECT_GT(weigh(other, 5 * kGB, "Q4_K_M", here).needed, 5 * kGB);
}

TEST(HubFit, WordsSayWhatIsPredictedAndNothingOfWhatIsNotKnown) {
  EXPECT_EQ(memory_words({}, {"x", kGB, false}), "");
  EXPECT_EQ(speed_words({}), "");
  EXPECT_TRUE(memory_words({kGB, 0}, {"x", 2 * kGB, false}).ends_with(" GB: fits")) << memory_words({kGB, 0}, {});
  EXPECT_TRUE(memory_words({kGB * 95 / 100, 0}, {"x", kGB, false}).ends_with(" GB: tight"));
  EXPECT_TRUE(memory_words({2 * kGB, 0}, {"x", kGB, false}).ends_with(": won't fit"));
  EXPECT_EQ(memory_words({uint64_t{3} << 30, 0}, {}), "takes about 3.22 GB of memory");
  EXPECT_EQ(speed_words({0, 94.6}), "predicted 95 tok/s here, without guesses");
}

TEST(HubFit, APairIsWeighedAtTheWidestTypeThatFits) {
  const PairOffer large = weigh_pair(qwen8(), {"NVIDIA GeForce RTX 4090", 24 * kGB, false});
  EXPECT_EQ(large.quantization, "Q8_0");
  EXPECT_EQ(large.target, "Qwen/Qwen3-8B-GGUF:Q8_0");
  EXPECT_GT(large.weight.needed, 8 * kGB);
  EXPECT_LT(large.weight.needed, 12 * kGB);
  EXPECT_GT(large.weight.tokens_per_second, 0);
  const PairOffer small = weigh_pair(qwen8(), {"x", 4 * kGB, false});
  EXPECT_EQ(small.quantization, "Q4_K_M") << "what fits least is told where nothing fits";
  EXPECT_GT(small.weight.needed, 4 * kGB);
  EXPECT_EQ(small.weight.tokens_per_second, 0);
  KnownPair folder = qwen8();
  folder.target.gguf.clear();
  const PairOffer published = weigh_pair(folder, {"x", 80 * kGB, false});
  EXPECT_EQ(published.quantization, "BF16");
  EXPECT_EQ(published.target, "Qwen/Qwen3-8B");
  EXPECT_GT(published.weight.needed, 16 * kGB);
  KnownPair small_file = qwen8();
  small_file.target = {"SmolLM2-135M-Instruct", "", "", "apache-2.0", 98'362'432};
  const PairOffer file = weigh_pair(small_file, {"x", 80 * kGB, false});
  EXPECT_EQ(file.quantization, "") << "its file is what it is";
  EXPECT_GT(file.weight.needed, 98'362'432u);
  EXPECT_LT(file.weight.needed, kGB);
  KnownPair unknown = qwen8();
  unknown.target = {"Something-9B", "", "", "", 0};
  unknown.memory = 7 * kGB;
  const PairOffer told = weigh_pair(unknown, {"x", 80 * kGB, false});
  EXPECT_EQ(told.quantization, "");
  EXPECT_EQ(told.target, "");
  EXPECT_EQ(told.weight.needed, 7 * kGB) << "as the list says";
}

TEST(HubFit, TheSuitingPairIsTheLargestThatFitsAndCanBeFetched) {
  PairOffer small{qwen8(), "a/b:Q8_0", "Q8_0", {4 * kGB, 0}}, large = small, tried = small, nowhere = small;
  large.weight.needed = 12 * kGB;
  tried.pair.tried = "all modes";
  nowhere.target.clear();
  nowhere.weight.needed = 14 * kGB;
  const std::vector<PairOffer> pairs = {small, tried, large, nowhere};
  EXPECT_EQ(suiting_pair(pairs, {"x", 16 * kGB, false}), &pairs[2]);
  EXPECT_EQ(suiting_pair(pairs, {"x", 8 * kGB, false}), &pairs[1]);
  EXPECT_EQ(suiting_pair(pairs, {"x", 2 * kGB, false}), nullptr);
  EXPECT_EQ(suiting_pair(pairs, {"x", 0, false}), nullptr);
  EXPECT_EQ(suiting_pair(pairs, {"a processor", 16 * kGB, true}), &pairs[1]) << "a quarter of its memory";
  EXPECT_EQ(suiting_pair({}, {"x", 16 * kGB, false}), nullptr);
}

}  // namespace
}  // namespace canopy::app

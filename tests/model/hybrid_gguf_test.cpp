// Golden hybrids as GGUF files, written by the rules of llama.cpp's converter (hybrid_gguf.h). They are the same
// models.

#include <gtest/gtest.h>

#include "engine/model/model.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/hybrid_gguf.h"
#include "tests/model/random_model.h"
#include "tests/model/same_model.h"

namespace canopy::test {
namespace {

void expect_golden_logits(const std::string& checkpoint, const ModelFile& file) {
  const GoldenTensors tensors(checkpoint + ".golden.safetensors");
  constexpr double allowed = 5e-4, allowed_of_halves = 0.4;  // as in architecture_golden_test.cpp
  EXPECT_LE(max_difference(logits_of(file, golden_text(checkpoint)), tensors["seq0.logits"]),
            tolerance(allowed, allowed_of_halves));
}

class HybridGgufGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(HybridGgufGolden, IsTheModelOfTheFolder) {
  const TempFolder folder;
  const ModelFile original = ModelFile::open(golden_folder() / GetParam());
  const ModelFile file = ModelFile::open(folder.write("model.gguf", HybridGguf(original).convert()));
  const DeltaNetConfig& net = file.config().delta_net;
  EXPECT_EQ(net.tiled, GetParam() != "tiny-qwen3_next");
  EXPECT_FALSE(net.has_joined_inputs);
  expect_golden_logits(GetParam(), file);
}

TEST(HybridGguf, OlderFilesHaveJoinedInputs) {
  const TempFolder folder;
  const std::string checkpoint = "tiny-qwen3_next";
  const ModelFile original = ModelFile::open(golden_folder() / checkpoint);
  const ModelFile file = ModelFile::open(folder.write("model.gguf", HybridGguf(original, true).convert()));
  EXPECT_TRUE(file.config().delta_net.has_joined_inputs);
  EXPECT_TRUE(file.config().delta_net.has_joined_rates);
  expect_golden_logits(checkpoint, file);
}

INSTANTIATE_TEST_SUITE_P(Hybrids, HybridGgufGolden,
                         ::testing::Values("tiny-qwen3_5", "tiny-qwen3_5-moe", "tiny-qwen3_next"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(HybridGguf, RatesThatLetStatesGrowAreRefused) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "qwen35";
  random.layers = 4;
  GgufBuilder builder = random.builder();
  for (GgufBuilder::Tensor& tensor : builder.tensors) {
    if (tensor.name == "blk.1.ssm_a") tensor.data = le(-0.5f) + le(0.25f) + le(-1.0f) + le(-1.0f);
  }
  const ModelFile file = ModelFile::open(folder.write("model.gguf", builder.build()));
  expect_error("The rates 'blk.1.ssm_a' hold 0.250000; finite numbers up to 0",
               [&] { Model::load(device_under_test(), file, {}); });
}

}  // namespace
}  // namespace canopy::test

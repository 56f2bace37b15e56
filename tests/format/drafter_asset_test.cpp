// The drafter that comes with Canopy is complete, finite, and made for the model that the set-up downloads.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "engine/base/files.h"
#include "engine/format/dequantize.h"
#include "engine/format/drafter_file.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

DrafterFile shipped() {
  return DrafterFile::open(fs::path(CANOPY_SOURCE_DIR) / "assets" / "smollm2-135m-dflash.gguf");
}

TEST(DrafterAsset, IsWhatItsCardSays) {
  const DrafterFile drafter = shipped();
  const DrafterConfig& c = drafter.config();
  EXPECT_EQ(c.dialect, "dflash (llama.cpp)");
  EXPECT_EQ(c.transformer.name, "SmolLM2 135M Instruct DFlash");
  EXPECT_EQ(c.transformer.layers, 3u);
  EXPECT_EQ(c.transformer.quantization, "Q8_0");
  EXPECT_EQ(c.transformer.parameters, 12280704u);
  EXPECT_EQ(c.block_size, 8u);
  EXPECT_EQ(c.mask_token, 4u);
  EXPECT_EQ(c.draft_token_ids.size(), 12288u);
  EXPECT_FALSE(c.own_head);
  EXPECT_EQ(c.aux_layers, (std::vector<uint32_t>{1, 8, 14, 20, 27}));
  EXPECT_EQ(c.target_layers, 30u);
  EXPECT_EQ(drafter.file().gguf()->text("general.license"), "apache-2.0");
  ASSERT_EQ(drafter.tokenizer().tokens.size(), 49152u);
  EXPECT_EQ(drafter.tokenizer().tokens[4], "<reponame>");
}

TEST(DrafterAsset, HoldsNumbersThatAreNotAllZero) {
  const DrafterFile drafter = shipped();
  for (const TensorView& tensor : drafter.tensors()) {
    std::vector<float> values(tensor.elements());
    dequantize(tensor.type, tensor.bytes, values);
    double squares = 0;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value)) << tensor.name;
      squares += double{value} * value;
    }
    EXPECT_GT(squares / static_cast<double>(values.size()), 1e-6) << tensor.name;
  }
}

TEST(DrafterAsset, FitsSmolLm2) {
  ModelConfig target;
  target.name = "SmolLM2-135M-Instruct";
  target.layers = 30;
  target.hidden = 576;
  target.vocab = 49152;
  target.max_context = 8192;
  target.rope_theta = 100000;
  target.eos = {2};
  EXPECT_EQ(check_pair(target, shipped().config()), std::vector<std::string>());
}

TEST(DrafterAsset, FitsTheDefaultModel) {
  const fs::path model = cache_dir() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!fs::exists(model)) GTEST_SKIP() << "the default model was not fetched";
  EXPECT_EQ(check_pair(ModelFile::open(model), shipped()), std::vector<std::string>());
}

}  // namespace
}  // namespace canopy

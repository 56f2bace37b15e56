// The golden drafter is the same from both formats; opened as the wrong kind, each file's message says what it is.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/format/dequantize.h"
#include "engine/format/describe.h"
#include "engine/format/drafter_file.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

using test::golden;

void expect_tiny_drafter(const DrafterConfig& c) {
  const ModelConfig& t = c.transformer;
  EXPECT_EQ(t.layers, 2u);
  EXPECT_EQ(t.hidden, 96u);
  EXPECT_EQ(t.heads, 4u);
  EXPECT_EQ(t.kv_heads, 2u);
  EXPECT_EQ(t.head_dim, 32u);
  EXPECT_EQ(t.ffn, 256u);
  EXPECT_EQ(t.max_context, 2048u);
  EXPECT_EQ(t.rms_eps, 1e-6f);
  EXPECT_EQ(t.rope_theta, 1e6);
  EXPECT_EQ(t.rope_layout, RopeLayout::half);
  EXPECT_EQ(t.rope_scaling.kind, RopeScaling::Kind::none);
  EXPECT_TRUE(t.has_qk_norm);
  EXPECT_EQ(c.block_size, 8u);
  EXPECT_EQ(c.mask_token, 1003u);
  EXPECT_EQ(c.aux_layers, (std::vector<uint32_t>{1, 3, 5}));
  EXPECT_EQ(c.vocab, 1010u);
  EXPECT_EQ(c.attention, std::vector<DrafterAttention>(2));
  EXPECT_EQ(c.input_embedding_scale, 1);
  EXPECT_EQ(c.output_multiplier, 1);
  EXPECT_EQ(c.final_logit_softcapping, 0);
  EXPECT_FALSE(c.brings_vocabulary);
}

TEST(DrafterGolden, BothFormatsGiveOneConfig) {
  const DrafterFile folder = DrafterFile::open(golden("tiny-qwen3-dflash-b8"));
  expect_tiny_drafter(folder.config());
  EXPECT_EQ(folder.config().target_layers, 8u);
  EXPECT_EQ(folder.config().dialect, "Hugging Face");
  EXPECT_EQ(folder.config().transformer.quantization, "BF16");
  EXPECT_EQ(folder.tokenizer().kind, TokenizerSource::Kind::none);

  const DrafterFile gguf = DrafterFile::open(golden("tiny-qwen3-dflash-b8-f16.gguf"));
  expect_tiny_drafter(gguf.config());
  EXPECT_EQ(gguf.config().target_layers, 0u);
  EXPECT_EQ(gguf.config().dialect, "dflash (llama.cpp)");
  EXPECT_EQ(gguf.config().transformer.quantization, "F16");
  EXPECT_EQ(gguf.config().transformer.name, "tiny-qwen3-dflash-b8");
  EXPECT_EQ(gguf.tokenizer().tokens.size(), 1010u);
  EXPECT_EQ(gguf.config().transformer.parameters, folder.config().transformer.parameters);
}

std::vector<float> floats(const TensorView& tensor) {
  std::vector<float> out(tensor.elements());
  dequantize(tensor.type, tensor.bytes, out);
  return out;
}

TEST(DrafterGolden, TheSameTensorHoldsTheSameWeightsInBothFormats) {
  const DrafterFile folder = DrafterFile::open(golden("tiny-qwen3-dflash-b8"));
  const DrafterFile gguf = DrafterFile::open(golden("tiny-qwen3-dflash-b8-f16.gguf"));
  ASSERT_EQ(folder.tensors().size(), 25u);
  ASSERT_EQ(gguf.tensors().size(), 25u);
  EXPECT_EQ(folder.require("fc", 96, 288).type, TensorType::bf16);
  for (const TensorView& tensor : folder.tensors()) {
    ASSERT_NE(gguf.find(tensor.name), nullptr) << tensor.name;
    const auto want = floats(tensor);
    const auto close = floats(*gguf.find(tensor.name));
    ASSERT_EQ(close.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(close[i], want[i], 1e-3f * std::abs(want[i]) + 1e-7f) << tensor.name << " " << i;
    }
  }
}

TEST(DrafterGolden, EachKindOfFileSaysWhatItIsWhereTheOtherIsExpected) {
  for (const char* name : {"tiny-qwen3-dflash-b8", "tiny-qwen3-dflash-b8-f16.gguf"}) {
    EXPECT_TRUE(DrafterFile::is_drafter(golden(name))) << name;
    test::expect_error("which cannot write text by itself; open it as the drafter of the model it was made for.",
                       [&] { ModelFile::open(golden(name)); });
    EXPECT_EQ(describe_json(golden(name))["tensors"].size(), 25u) << name;
  }
  for (const char* name : {"tiny-qwen3", "tiny-qwen3-f16.gguf", "forward.safetensors", "generate.json", "none"}) {
    EXPECT_FALSE(DrafterFile::is_drafter(golden(name))) << name;
  }
  test::expect_error(
      "This is a model of the class 'Qwen3ForCausalLM', not a drafter; DFlashDraftModel, DFlash2DraftModel or",
      [] { DrafterFile::open(golden("tiny-qwen3")); });
  test::expect_error("This is a model of the architecture 'qwen3', not a drafter; a DFlash drafter is expected",
                     [] { DrafterFile::open(golden("tiny-qwen3-f16.gguf")); });
}

}  // namespace
}  // namespace canopy

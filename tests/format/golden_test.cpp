// The golden checkpoints open with the values of their configs, and decode to the golden floats.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/bytes.h"
#include "engine/base/mapped_file.h"
#include "engine/format/dequantize.h"
#include "engine/format/describe.h"
#include "engine/format/json_text.h"
#include "engine/format/model_file.h"
#include "engine/format/safetensors.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

using test::golden;

void expect_tiny_qwen3(const ModelConfig& c) {
  EXPECT_EQ(c.architecture, "qwen3");
  EXPECT_EQ(c.hidden, 96u);
  EXPECT_EQ(c.layers, 8u);
  EXPECT_EQ(c.heads, 4u);
  EXPECT_EQ(c.kv_heads, 2u);
  EXPECT_EQ(c.head_dim, 32u);
  EXPECT_EQ(c.ffn, 256u);
  EXPECT_EQ(c.vocab, 1010u);
  EXPECT_EQ(c.max_context, 2048u);
  EXPECT_EQ(c.rms_eps, 1e-6f);
  EXPECT_EQ(c.rope_theta, 1e6);
  EXPECT_EQ(c.rope_layout, RopeLayout::half);
  EXPECT_TRUE(c.has_qk_norm);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(c.bos, 1000u);
  EXPECT_EQ(c.eos, (std::vector<uint32_t>{1002, 1000}));
  EXPECT_EQ(c.parameters, 983840u);
}

TEST(Golden, TinyQwen3InAllThreeFormats) {
  const ModelFile folder = ModelFile::open(golden("tiny-qwen3"));
  expect_tiny_qwen3(folder.config());
  EXPECT_EQ(folder.config().quantization, "BF16");
  EXPECT_EQ(folder.tokenizer().kind, TokenizerSource::Kind::hugging_face);
  EXPECT_FALSE(folder.tokenizer().chat_template.empty());

  const ModelFile f16 = ModelFile::open(golden("tiny-qwen3-f16.gguf"));
  expect_tiny_qwen3(f16.config());
  EXPECT_EQ(f16.config().quantization, "F16");
  EXPECT_EQ(f16.tokenizer().merges.size(), 744u);
  EXPECT_EQ(f16.tokenizer().chat_template, folder.tokenizer().chat_template);
  expect_tiny_qwen3(ModelFile::open(golden("tiny-qwen3-q8_0.gguf")).config());
}

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> out(tensor.elements());
  dequantize(tensor.type, tensor.bytes, out);
  return out;
}

TEST(Golden, TheSameTensorHoldsTheSameWeightsInEveryFormat) {
  const ModelFile folder = ModelFile::open(golden("tiny-qwen3"));
  const ModelFile f16 = ModelFile::open(golden("tiny-qwen3-f16.gguf"));
  const ModelFile q8 = ModelFile::open(golden("tiny-qwen3-q8_0.gguf"));
  for (const TensorView& tensor : folder.tensors()) {
    ASSERT_NE(f16.find(tensor.name), nullptr) << tensor.name;
    const auto want = decoded(tensor);
    const auto close = decoded(*f16.find(tensor.name));
    const auto coarse = decoded(*q8.find(tensor.name));
    float largest = 0;
    for (const float x : want) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(close[i], want[i], 1e-3f * std::abs(want[i]) + 1e-7f) << tensor.name << " " << i;
      ASSERT_NEAR(coarse[i], want[i], largest / 127) << tensor.name << " " << i;
    }
  }
}

TEST(Golden, TinyLlama3) {
  const ModelFile model = ModelFile::open(golden("tiny-llama3"));
  const ModelConfig& c = model.config();
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_FALSE(c.tied_head);
  EXPECT_EQ(c.rope_layout, RopeLayout::half);
  EXPECT_EQ(c.rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(c.rope_scaling.factor, 8);
  EXPECT_EQ(c.rope_scaling.original_context, 64u);
  EXPECT_EQ(model.require("output", 500, 64).type, TensorType::bf16);
}

TEST(Golden, TinyQwen3MoeIsDescribedWithItsExperts) {
  const nlohmann::json experts = describe_json(golden("tiny-qwen3-moe"))["config"]["experts"];
  EXPECT_EQ(experts["count"], 8);
  EXPECT_EQ(experts["used"], 2);
  EXPECT_EQ(experts["ffn"], 32);
  EXPECT_EQ(experts["layers"], 3);
}

TEST(Golden, OtherArchitecturesAreNamedAndDescribed) {
  const test::TempFolder folder;
  std::filesystem::copy(golden("tiny-llama3"), folder.path() / "m");
  std::string config = read_small_file(folder.path() / "m" / "config.json", 1 << 20);
  config.replace(config.find("LlamaForCausalLM"), 16, "Olmo2ForCausalLM");
  folder.write("m/config.json", config);
  test::expect_error("(OLMo 2) is not supported. ", [&] { ModelFile::open(folder.path() / "m"); });
  EXPECT_GT(describe_json(folder.path() / "m")["tensors"].size(), 0u);
}

TEST(Golden, DequantizedBlocksAreExact) {
  const auto index = parse_json(read_small_file(golden("dequant.json"), 1 << 20), "dequant.json");
  const SafetensorsFile data = SafetensorsFile::open(golden("dequant.safetensors"));
  const auto find = [&](const std::string& name) {
    for (const TensorView& tensor : data.tensors()) {
      if (tensor.name == name) return tensor.bytes;
    }
    ADD_FAILURE() << name << " is missing";
    return std::span<const std::byte>();
  };
  ASSERT_FALSE(index.empty());
  for (const auto& [name, entry] : index.items()) {
    const auto type = tensor_type_from_ggml(entry["ggml_type"].get<uint32_t>());
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(to_string(*type), name);
    const TensorTypeInfo& info = tensor_type_info(*type);
    EXPECT_EQ(info.block_elements, entry["block_elements"].get<uint32_t>()) << name;
    EXPECT_EQ(info.block_bytes, entry["block_bytes"].get<uint32_t>()) << name;
    if (!can_dequantize(*type)) {
      ADD_FAILURE() << name << " cannot be decoded";
      continue;
    }
    std::vector<float> out(entry["blocks"].get<size_t>() * info.block_elements);
    dequantize(*type, find(name + ".bytes"), out);
    Reader expected(find(name + ".f32"));
    ASSERT_EQ(expected.remaining(), out.size() * sizeof(float)) << name;
    // Compare bits, so that the sign of zero counts too.
    for (size_t i = 0; i < out.size(); ++i) {
      const auto bits = expected.read<uint32_t>("f32");
      ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), bits)
          << name << " " << i << ": " << out[i] << " instead of " << std::bit_cast<float>(bits);
    }
  }
}

}  // namespace
}  // namespace canopy

// gpt-oss in files: its fields, the experts of its folders as single matrices, and what is refused, by field or tensor.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/dequantize.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"
#include "tests/model/random_model.h"

namespace canopy {
namespace {

using test::expect_error;
using test::SafetensorsBuilder;
using test::TempFolder;

std::string oss_config(const std::string& extra = "") {
  return R"({"architectures":["GptOssForCausalLM"],"hidden_size":32,"num_hidden_layers":1,"num_attention_heads":2,)"
         R"("num_key_value_heads":1,"head_dim":4,"intermediate_size":32,"vocab_size":10,"max_position_embeddings":64,)"
         R"("rms_norm_eps":1e-5,"sliding_window":8,"num_experts_per_tok":1,"num_local_experts":2)" +
         extra + "}";
}

TEST(GptOss, FieldsOfConfigJson) {
  const ModelConfig config = read_hf_config(oss_config(), "");
  EXPECT_EQ(config.architecture, "gpt-oss");
  EXPECT_EQ(config.windows, std::vector<uint32_t>{8});
  EXPECT_EQ(config.expert_ffn, 32u);
  EXPECT_EQ(config.swiglu_limit, 7.0f);
  EXPECT_EQ(config.rope_theta, 150000);
  const LayerSpec spec = layer_specs(config)[0];
  EXPECT_TRUE(spec.sinks && spec.output_bias && spec.qkv_bias && spec.expert_bias && !spec.qk_norm);
  EXPECT_EQ(spec.feed_forward, FeedForward::mixture_of_experts);
  const ModelConfig other = read_hf_config(oss_config(R"(,"attention_bias":false,"swiglu_limit":3.5)"), "");
  EXPECT_FALSE(layer_specs(other)[0].output_bias || layer_specs(other)[0].qkv_bias);
  EXPECT_EQ(other.swiglu_limit, 3.5f);

  const auto refused = [](const char* message, const std::string& extra) {
    expect_error(message, [&] { read_hf_config(oss_config(extra), ""); });
  };
  refused("number of experts that a token uses is 3; 1 to 2", R"(,"num_experts_per_tok":3)");
  refused("The model's swiglu_limit is -1; a number above 0", R"(,"swiglu_limit":-1)");
  refused("The model's swiglu_limit is 0; a number above 0", R"(,"swiglu_limit":0)");
  refused("'mlp_bias' of config.json is true", R"(,"mlp_bias":true)");
  refused("'layer_types' of config.json has 2 entries", R"(,"layer_types":["full_attention","full_attention"])");
}

TEST(GptOss, WindowsAreInEveryOtherLayerOfAGgufFile) {
  const TempFolder folder;
  test::RandomModel random;
  random.architecture = "gpt-oss";
  random.layers = 3;
  const ModelConfig config = ModelFile::open(folder.write("m.gguf", random.build())).config();
  EXPECT_EQ(config.windows, (std::vector<uint32_t>{9, 0, 9}));
  EXPECT_FALSE(config.rope_scaling.truncate);
  EXPECT_TRUE(config.has_sinks && config.has_output_bias && config.has_expert_bias);
  for (const char* name : {"blk.1.attn_sinks.weight", "blk.2.attn_output.bias", "blk.0.ffn_gate_inp.bias",
                           "blk.0.ffn_up_exps.bias", "blk.1.ffn_down_exps.bias"}) {
    const std::string canonical = std::string(name).substr(0, std::string(name).find(".weight"));
    expect_error("The tensor '" + canonical + "' is missing",
                 [&] { ModelFile::open(folder.write("m.gguf", random.builder().without_tensor(name).build())); });
  }
  expect_error("The tensor 'blk.1.attn_sinks' has the shape [3]; [4] is expected.", [&] {
    ModelFile::open(folder.write(
        "m.gguf",
        random.builder().without_tensor("blk.1.attn_sinks.weight").zeros("blk.1.attn_sinks.weight", {3}).build()));
  });
}

using ChangeTensor = std::function<void(std::string& name, std::vector<uint64_t>& shape, std::string& dtype)>;

/// A folder of the model of oss_config(), whose experts are floats that count up, or codes and scales that do; `change`
/// may give each tensor another name, shape or type.
void write_folder(const TempFolder& folder, bool packed, const ChangeTensor& change = {}) {
  SafetensorsBuilder b;
  unsigned next = 0;
  const auto add = [&](std::string name, std::vector<uint64_t> shape, std::string dtype) {
    if (change) change(name, shape, dtype);
    uint64_t count = 1;
    for (const uint64_t size : shape) count *= size;
    std::string data;
    for (uint64_t i = 0; i < count; ++i) {
      const unsigned value = next++;
      if (dtype == "BF16") data += test::le(f32_to_bf16(static_cast<float>(value % 251)));
      if (dtype == "F32") data += test::le(static_cast<float>(value));
      if (dtype == "U8") data += static_cast<char>(value % 249);
    }
    if (!name.empty()) b.tensor(name, dtype, shape, data);
  };
  add("model.embed_tokens.weight", {10, 32}, "BF16");
  add("model.norm.weight", {32}, "BF16");
  add("lm_head.weight", {10, 32}, "BF16");
  const std::string layer = "model.layers.0.", attention = layer + "self_attn.", experts = layer + "mlp.experts.";
  add(layer + "input_layernorm.weight", {32}, "BF16");
  add(layer + "post_attention_layernorm.weight", {32}, "BF16");
  for (const auto& [name, rows, cols] :
       {std::tuple{"q_proj", 8u, 32u}, {"k_proj", 4u, 32u}, {"v_proj", 4u, 32u}, {"o_proj", 32u, 8u}}) {
    add(attention + name + ".weight", {rows, cols}, "BF16");
    add(attention + name + ".bias", {rows}, "BF16");
  }
  add(attention + "sinks", {2}, "BF16");
  add(layer + "mlp.router.weight", {2, 32}, "BF16");
  add(layer + "mlp.router.bias", {2}, "BF16");
  next = 0;
  for (const auto& [name, rows] : {std::pair{"gate_up_proj", 64u}, {"down_proj", 32u}}) {
    add(experts + name + "_bias", {2, rows}, "F32");
    if (packed) {
      add(experts + name + "_blocks", {2, rows, 1, 16}, "U8");
      add(experts + name + "_scales", {2, rows, 1}, "U8");
    } else {
      add(experts + name, {2, 32, rows}, "F32");
    }
  }
  folder.write("config.json", oss_config(packed ? R"(,"quantization_config":{"quant_method":"mxfp4"})" : ""));
  folder.write("model.safetensors", b.build());
}

std::vector<float> values_of(const TensorView& tensor) {
  std::vector<std::byte> made;
  std::vector<float> values(tensor.elements());
  dequantize(tensor.type, rows_of(tensor, 0, tensor.rows(), made), values);
  return values;
}

// Element (row r, column k) of expert e's gate is that of column 2 r in row k of the file's tensor.
TEST(GptOss, FloatsOfAFolderBecomeMatricesOfEachExpert) {
  const TempFolder folder;
  write_folder(folder, false);
  const ModelFile model = ModelFile::open(folder.path());
  const float first = 2 * 64;  // behind the bias
  for (uint32_t e = 0; e < 2; ++e) {
    const std::string number = "." + std::to_string(e);
    const std::vector<float> gate = values_of(model.require("blk.0.ffn_gate" + number, 32, 32)),
                             up = values_of(model.require("blk.0.ffn_up" + number, 32, 32)),
                             down = values_of(model.require("blk.0.ffn_down" + number, 32, 32));
    const float before_down = first + 2 * 64 * 32 + 2 * 32;
    for (uint32_t r = 0; r < 32; ++r) {
      for (uint32_t k = 0; k < 32; ++k) {
        const float at = first + static_cast<float>((e * 32 + k) * 64 + 2 * r);
        ASSERT_EQ(gate[r * 32 + k], at);
        ASSERT_EQ(up[r * 32 + k], at + 1);
        ASSERT_EQ(down[r * 32 + k], before_down + static_cast<float>((e * 32 + k) * 32 + r));
      }
    }
  }
  const std::vector<float> bias = values_of(model.require("blk.0.ffn_up_exps.bias", 2, 32));
  for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(bias[i], static_cast<float>(2 * i + 1));
}

TEST(GptOss, PublishedBlocksBecomeThoseOfTheType) {
  const TempFolder folder;
  write_folder(folder, true);
  const ModelFile model = ModelFile::open(folder.path());
  EXPECT_EQ(model.config().quantization, "MXFP4");
  const TensorView& up = model.require("blk.0.ffn_up.1", 32, 32);
  EXPECT_EQ(up.type, TensorType::mxfp4);
  std::vector<std::byte> made;
  const auto rows = rows_of(up, 3, 2, made);
  ASSERT_EQ(rows.size(), 2u * 17);
  for (unsigned r = 3; r < 5; ++r) {
    const unsigned row = 64 + 2 * r + 1, codes = 2 * 64 + row * 16;  // of both experts; the bias is in front
    const auto code = [&](unsigned element) { return (codes + element / 2) % 249 >> (element % 2 * 4) & 15u; };
    EXPECT_EQ(std::to_integer<unsigned>(rows[(r - 3) * 17]), (2 * 64 + 2 * 64 * 16 + row) % 249);
    for (unsigned j = 0; j < 16; ++j) {
      EXPECT_EQ(std::to_integer<unsigned>(rows[(r - 3) * 17 + 1 + j]), code(j) | code(j + 16) << 4);
    }
  }
}

TEST(GptOss, MalformedExpertsAreRefused) {
  const TempFolder folder;
  const auto refused = [&](const char* message, bool packed, const char* tensor, const ChangeTensor& change) {
    write_folder(folder, packed, [&](std::string& name, std::vector<uint64_t>& shape, std::string& dtype) {
      if (name.ends_with(tensor)) change(name, shape, dtype);
    });
    expect_error(message, [&] { ModelFile::open(folder.path()); });
  };
  const auto leave_out = [](std::string& name, auto&, auto&) { name.clear(); };
  refused("The tensor 'model.layers.0.mlp.experts.gate_up_proj' is missing; its shape should be [2, 32, 64].", false,
          "gate_up_proj", leave_out);
  refused("The tensor 'model.layers.0.mlp.experts.down_proj_bias' is missing; its shape should be [2, 32].", false,
          "down_proj_bias", leave_out);
  refused("The tensor 'model.layers.0.mlp.router.bias' is missing", false, "router.bias", leave_out);
  refused("The tensor 'model.layers.0.self_attn.sinks' is missing; its shape should be [2].", false, "sinks",
          leave_out);
  refused("The tensor 'model.layers.0.mlp.experts.down_proj_scales' is missing; its shape should be [2, 32, 1].", true,
          "down_proj_scales", leave_out);
  refused("The tensor 'model.layers.0.self_attn.sinks' has the shape [3]; [2] is expected.", false, "sinks",
          [](auto&, auto& shape, auto&) { shape = {3}; });
  refused("The tensor 'model.layers.0.mlp.experts.gate_up_proj' has the shape [2, 64, 32]; [2, 32, 64] is expected.",
          false, "gate_up_proj", [](auto&, auto& shape, auto&) {
            shape = {2, 64, 32};
          });
  refused(
      "The tensor 'model.layers.0.mlp.experts.gate_up_proj_blocks' has the shape [2, 64, 16]; [2, 64, 1, 16] is "
      "expected.",
      true, "gate_up_proj_blocks", [](auto&, auto& shape, auto&) {
        shape = {2, 64, 16};
      });
  refused("The tensor 'model.layers.0.mlp.experts.down_proj_scales' is stored as F32; U8 or F8_E8M0 is expected.", true,
          "down_proj_scales", [](auto&, auto&, auto& dtype) { dtype = "F32"; });
  refused("The tensor 'model.layers.0.mlp.experts.down_proj' is stored as U8; F32, F16 or BF16 is expected.", false,
          "down_proj", [](auto&, auto&, auto& dtype) { dtype = "U8"; });
}

}  // namespace
}  // namespace canopy

// Folders of GPTQ, AWQ and FP8: the same model as a GGUF file that has the rows which are made of them.

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/format/tensor.h"
#include "engine/model/model.h"
#include "tests/base/temp_folder.h"
#include "tests/format/quantized_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

struct PackedForm {
  const char* name;
  std::string quantization;  // quantization_config
  std::function<void(SafetensorsBuilder&, const std::string&, uint64_t, uint64_t, uint32_t)> add;  // a matrix [R, C]
  TensorType type;                                                                                 // of its rows
};

void PrintTo(const PackedForm& form, std::ostream* out) {
  *out << form.name;
}

FourBitForm symmetric_codes() {
  FourBitForm form;
  form.symmetric = true;
  return form;
}

const PackedForm packed_forms[] = {
    {"awq", R"({"quant_method":"awq","bits":4,"group_size":32,"version":"gemm"})",
     [](auto& b, const auto& name, uint64_t rows, uint64_t cols, uint32_t seed) {
       add_awq(b, name, random_four_bit(rows, cols, 32, seed));
     },
     TensorType::q4_1},
    {"gptq", R"({"quant_method":"gptq","bits":4,"group_size":32,"sym":true})",
     [](auto& b, const auto& name, uint64_t rows, uint64_t cols, uint32_t seed) {
       add_gptq(b, name, random_four_bit(rows, cols, 32, seed, symmetric_codes()));
     },
     TensorType::q4_0},
    {"gptq_act_order", R"({"quant_method":"gptq","bits":4,"group_size":32,"sym":false,"desc_act":true})",
     [](auto& b, const auto& name, uint64_t rows, uint64_t cols, uint32_t seed) {
       FourBitForm form;
       form.act_order = true;
       add_gptq(b, name, random_four_bit(rows, cols, 32, seed, form));
     },
     TensorType::f16},
    {"fp8", R"({"quant_method":"fp8","weight_block_size":[32,32]})",
     [](auto& b, const auto& name, uint64_t rows, uint64_t cols, uint32_t seed) {
       const Fp8 m = random_fp8(rows, cols, 32, 32, seed);
       b.tensor(name + ".weight", "F8_E4M3", {rows, cols}, m.elements);
       b.tensor(name + ".weight_scale_inv", "F32", {m.down(), m.across()}, stored_scales(m.scales, "F32"));
     },
     TensorType::f16},
};

constexpr uint64_t hidden = 64, heads = 4, kv_heads = 2, head_dim = 16, ffn = 96, vocab = 77;
constexpr uint32_t layers = 2;

/// A qwen3 folder whose matrices in layers are packed; the embedding, which is the head too, and the norms are F16.
void write_folder(const TempFolder& folder, const PackedForm& form) {
  folder.write(
      "config.json",
      R"({"architectures":["Qwen3ForCausalLM"],"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("num_key_value_heads":2,"head_dim":16,"intermediate_size":96,"vocab_size":77,"rms_norm_eps":1e-6,)"
      R"("max_position_embeddings":64,"rope_theta":10000.0,"tie_word_embeddings":true,"quantization_config":)" +
          form.quantization + "}");
  SafetensorsBuilder b;
  uint32_t seed = 1;
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto halves = [&](const std::string& name, const std::vector<uint64_t>& shape, float around) {
    uint64_t elements = 1;
    for (const uint64_t extent : shape) elements *= extent;
    std::string data;
    for (uint64_t i = 0; i < elements; ++i) data += le(f32_to_f16(around + 0.3f * uniform(random)));
    b.tensor(name, "F16", shape, data);
  };
  halves("model.embed_tokens.weight", {vocab, hidden}, 0);
  halves("model.norm.weight", {hidden}, 1);
  for (uint32_t n = 0; n < layers; ++n) {
    const std::string layer = "model.layers." + std::to_string(n) + ".";
    const auto matrix = [&](const char* name, uint64_t rows, uint64_t cols) {
      form.add(b, layer + name, rows, cols, seed++);
    };
    halves(layer + "input_layernorm.weight", {hidden}, 1);
    halves(layer + "post_attention_layernorm.weight", {hidden}, 1);
    halves(layer + "self_attn.q_norm.weight", {head_dim}, 1);
    halves(layer + "self_attn.k_norm.weight", {head_dim}, 1);
    matrix("self_attn.q_proj", heads * head_dim, hidden);
    matrix("self_attn.k_proj", kv_heads * head_dim, hidden);
    matrix("self_attn.v_proj", kv_heads * head_dim, hidden);
    matrix("self_attn.o_proj", hidden, heads * head_dim);
    matrix("mlp.gate_proj", ffn, hidden);
    matrix("mlp.up_proj", ffn, hidden);
    matrix("mlp.down_proj", hidden, ffn);
  }
  folder.write("model.safetensors", b.build());
}

/// The same tensors as blocks in a GGUF file.
std::string as_gguf(const ModelFile& packed) {
  GgufBuilder b;
  b.text("general.architecture", "qwen3").text("general.name", "blocks");
  const auto number = [&](const char* key, uint64_t value) {
    b.value<uint32_t>(std::string("qwen3.") + key, static_cast<uint32_t>(value));
  };
  number("block_count", layers);
  number("context_length", 64);
  number("embedding_length", hidden);
  number("feed_forward_length", ffn);
  number("attention.head_count", heads);
  number("attention.head_count_kv", kv_heads);
  number("attention.key_length", head_dim);
  b.value<float>("qwen3.attention.layer_norm_rms_epsilon", 1e-6f).value<float>("qwen3.rope.freq_base", 10000.0f);
  std::vector<std::byte> scratch;
  for (const TensorView& tensor : packed.tensors()) {
    const std::span<const std::byte> rows = rows_of(tensor, 0, tensor.rows(), scratch);
    std::vector<uint64_t> dimensions = {tensor.cols()};
    if (tensor.rank == 2) dimensions.push_back(tensor.rows());
    b.tensor(tensor.name + ".weight", dimensions, tensor.type,
             std::string(reinterpret_cast<const char*>(rows.data()), rows.size()));
  }
  return b.build();
}

std::unique_ptr<Model> load_packed(const ModelFile& file, QuantizeOnLoad quantize) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  options.max_width = 8;
  options.quantize = quantize;
  return Model::load(device_under_test(), file, options);
}

std::vector<float> some_logits(Model& model) {
  RowBatch batch;
  for (uint32_t i = 0; i < 5; ++i) batch.add_text((i * 31 + 7) % vocab, i);
  return logits_of(model, batch, all_rows(batch));
}

class PackedModel : public ::testing::TestWithParam<PackedForm> {};

TEST_P(PackedModel, GivesTheBitsOfItsRowsInAGguf) {
  const TempFolder folder, blocks;
  write_folder(folder, GetParam());
  const ModelFile packed = ModelFile::open(folder.path());
  const ModelFile plain = ModelFile::open(blocks.write("blocks.gguf", as_gguf(packed)));
  EXPECT_EQ(packed.require("blk.1.ffn_down", hidden, ffn).type, GetParam().type);
  for (const QuantizeOnLoad quantize : {QuantizeOnLoad::none, QuantizeOnLoad::q8_0}) {
    const auto a = load_packed(packed, quantize), b = load_packed(plain, quantize);
    EXPECT_EQ(a->memory().weights, b->memory().weights);
    const std::vector<float> logits = some_logits(*a);
    EXPECT_TRUE(same_bits(logits, some_logits(*b)));
    for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST_P(PackedModel, SaysWhatIsKeptWider) {
  const TempFolder folder;
  write_folder(folder, GetParam());
  const ModelFile packed = ModelFile::open(folder.path());
  const bool is_wide = GetParam().type == TensorType::f16;
  const auto warnings = load_packed(packed, QuantizeOnLoad::none)->warnings();
  ASSERT_EQ(warnings.size(), is_wide ? 1u : 0u);
  if (!is_wide) return;
  EXPECT_EQ(warnings[0].find("14 matrices are in a form that no kernel reads ("), 0u) << warnings[0];
  EXPECT_TRUE(load_packed(packed, QuantizeOnLoad::q8_0)->warnings().empty());
}

INSTANTIATE_TEST_SUITE_P(Forms, PackedModel, ::testing::ValuesIn(packed_forms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy::test

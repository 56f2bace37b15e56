// The same model in every form of file gives the same bits; also files that mix types, some of which no device has a
// kernel for.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/format/safetensors.h"
#include "engine/model/model.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

struct Loaded {
  std::vector<float> logits;
  std::vector<std::string> warnings;
};

Loaded load(const fs::path& path) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  options.max_width = 8;
  const auto model = Model::load(device_under_test(), ModelFile::open(path), options);
  RowBatch batch;
  for (uint32_t i = 0; i < 5; ++i) batch.add_text((i * 31 + 7) % 77, i);
  return {logits_of(*model, batch, {0, 1, 2, 3, 4}), model->warnings()};
}

bool all_finite(const std::vector<float>& values) {
  return !values.empty() && std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

TEST(ModelFormats, GgufOfVersion2IsReadAsVersion3) {
  const TempFolder folder;
  RandomModel random;
  random.type = TensorType::q8_0;
  const Loaded three = load(folder.write("v3.gguf", random.build()));
  random.version = 2;
  EXPECT_TRUE(same_bits(load(folder.write("v2.gguf", random.build())).logits, three.logits));
  random.seed = 2;
  EXPECT_FALSE(same_bits(load(folder.write("other.gguf", random.build())).logits, three.logits));
}

/// Writes the golden checkpoint as three files with an index.
fs::path write_shards(const TempFolder& folder) {
  const fs::path from = golden_folder() / "tiny-qwen3";
  const SafetensorsFile whole = SafetensorsFile::open(from / "model.safetensors");
  SafetensorsBuilder shards[3];
  nlohmann::json index = {{"metadata", {{"total_size", 0}}}, {"weight_map", nlohmann::json::object()}};
  const auto name_of = [](size_t shard) { return "model-0000" + std::to_string(shard + 1) + "-of-00003.safetensors"; };
  size_t next = 0;
  for (const TensorView& tensor : whole.tensors()) {
    const size_t shard = next++ % 3;
    const std::vector<uint64_t> shape(tensor.shape.begin(), tensor.shape.begin() + tensor.rank);
    const std::string_view data(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    shards[shard].tensor(tensor.name, to_string(tensor.type), shape, data);
    index["weight_map"][tensor.name] = name_of(shard);
  }
  for (size_t shard = 0; shard < 3; ++shard) folder.write(name_of(shard), shards[shard].build());
  folder.write("model.safetensors.index.json", index.dump());
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}) {
    fs::copy_file(from / name, folder.path() / name);
  }
  return folder.path();
}

TEST(ModelFormats, ACheckpointInSeveralFilesIsTheOneInOne) {
  const TempFolder folder;
  EXPECT_TRUE(same_bits(load(write_shards(folder)).logits, load(golden_folder() / "tiny-qwen3").logits));
}

/// The model of a GGUF file as a folder in which each expert has tensors of its own.
fs::path write_folder_of_experts(const TempFolder& folder, const RandomModel& random) {
  const ModelFile gguf = ModelFile::open(folder.write("whole.gguf", random.build()));
  const std::pair<std::string_view, std::string_view> names[] = {{"attn_norm", "input_layernorm"},
                                                                 {"attn_q", "self_attn.q_proj"},
                                                                 {"attn_k", "self_attn.k_proj"},
                                                                 {"attn_v", "self_attn.v_proj"},
                                                                 {"attn_output", "self_attn.o_proj"},
                                                                 {"attn_q_norm", "self_attn.q_norm"},
                                                                 {"attn_k_norm", "self_attn.k_norm"},
                                                                 {"ffn_norm", "post_attention_layernorm"},
                                                                 {"ffn_gate_inp", "mlp.gate"},
                                                                 {"ffn_gate", "gate_proj"},
                                                                 {"ffn_up", "up_proj"},
                                                                 {"ffn_down", "down_proj"}};
  SafetensorsBuilder weights;
  for (const TensorView& tensor : gguf.tensors()) {
    std::string name = tensor.name == "token_embd" ? "model.embed_tokens" : "model.norm";
    if (tensor.name.starts_with("blk.")) {
      const size_t kind = tensor.name.find('.', 4) + 1, dot = tensor.name.find('.', kind);
      const std::string_view ours = std::string_view(tensor.name).substr(kind, dot - kind);
      const auto found = std::ranges::find(names, ours, [](const auto& pair) { return pair.first; });
      name = "model.layers." + tensor.name.substr(4, kind - 4);
      if (dot != std::string::npos) name += "mlp.experts" + tensor.name.substr(dot) + ".";
      name += found->second;
    }
    const std::vector<uint64_t> shape(tensor.shape.begin(), tensor.shape.begin() + tensor.rank);
    const std::string_view data(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    weights.tensor(name + ".weight", to_string(tensor.type), shape, data);
  }
  folder.write("model.safetensors", weights.build());
  const nlohmann::json config = {{"architectures", {"Qwen3MoeForCausalLM"}},
                                 {"hidden_size", random.hidden},
                                 {"num_hidden_layers", random.layers},
                                 {"num_attention_heads", random.heads},
                                 {"num_key_value_heads", random.kv_heads},
                                 {"head_dim", random.head_dim},
                                 {"intermediate_size", random.ffn},
                                 {"vocab_size", random.vocab},
                                 {"max_position_embeddings", random.context},
                                 {"rms_norm_eps", 1e-5f},
                                 {"rope_theta", 10000.0},
                                 {"tie_word_embeddings", true},
                                 {"num_experts", random.experts},
                                 {"num_experts_per_tok", random.experts_used},
                                 {"moe_intermediate_size", random.expert_ffn},
                                 {"norm_topk_prob", true}};
  folder.write("config.json", config.dump());
  return folder.path();
}

TEST(ModelFormats, ExpertsInOneTensorAreThoseInManyOfTheirOwn) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "qwen3moe";
  random.type = TensorType::f16;
  const Loaded one = load(folder.write("one.gguf", random.build()));
  EXPECT_TRUE(all_finite(one.logits));
  const TempFolder many;
  EXPECT_TRUE(same_bits(load(write_folder_of_experts(many, random)).logits, one.logits));
  random.seed = 2;
  EXPECT_FALSE(same_bits(load(folder.write("other.gguf", random.build())).logits, one.logits));
}

TEST(ModelFormats, ExpertsMayHaveOtherTypesThanTheRest) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "qwen3moe";
  random.type = TensorType::q4_k;
  random.finer = TensorType::q6_k;
  random.hidden = random.expert_ffn = 256;
  random.head_dim = 64;
  const Loaded mixed = load(folder.write("mixed.gguf", random.build()));
  EXPECT_TRUE(mixed.warnings.empty());
  EXPECT_TRUE(all_finite(mixed.logits));
}

/// The counts of a pass over rows at the beginning of a text, each by itself.
std::vector<uint32_t> distinct_experts(Model& model, const std::vector<uint32_t>& tokens) {
  RowBatch batch;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    batch.add_node(tokens[i], model.limits().first_tree_slot() + i, 0, -1);
  }
  const ForwardOutput output = model.forward({batch, HeadOutput::argmax, all_rows(batch)});
  return {output.distinct_experts().begin(), output.distinct_experts().end()};
}

// On GPUs the rows that fill a pass up choose experts too; they do not count.
TEST(ModelFormats, APassCountsTheExpertsThatItsRowsGoThrough) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "qwen3moe";
  random.experts = 40;
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  options.max_width = 8;
  const auto model = Model::load(device_under_test(), ModelFile::open(folder.write("m.gguf", random.build())), options);
  const std::vector<uint32_t> of_one(2, random.experts_used);  // in each of two layers
  EXPECT_EQ(distinct_experts(*model, {7}), of_one);
  EXPECT_EQ(distinct_experts(*model, {7, 7, 7, 7, 7}), of_one);
  const std::vector<uint32_t> of_six = distinct_experts(*model, {7, 20, 33, 46, 59, 72});
  for (const uint32_t count : of_six) {
    EXPECT_GT(count, 2 * random.experts_used);
    EXPECT_LE(count, 6 * random.experts_used);
  }
  EXPECT_EQ(distinct_experts(*model, {7, 20, 33, 46, 59, 72}), of_six) << "what a pass leaves is gone";
  EXPECT_EQ(distinct_experts(*model, {7}), of_one);
  EXPECT_EQ(model->pass_bytes(random.experts_used), static_cast<double>(model->pass_bytes()));
  const double one_expert =
      2.0 * 3 * random.hidden * random.expert_ffn * sizeof(float);  // gate, up, down of two layers
  EXPECT_GE(model->pass_bytes(random.experts_used + 1.0) - static_cast<double>(model->pass_bytes()), one_expert);
  EXPECT_LE(model->pass_bytes(random.experts), static_cast<double>(model->memory().weights));
  const auto dense =
      Model::load(device_under_test(), ModelFile::open(folder.write("d.gguf", RandomModel{}.build())), options);
  EXPECT_TRUE(distinct_experts(*dense, {7}).empty());
}

TEST(ModelFormats, TypesMayDifferFromTensorToTensor) {
  // As in files named Q4_K_M, with other types for head and embedding.
  const TempFolder folder;
  RandomModel random;
  random.type = TensorType::q4_k;
  random.finer = TensorType::q6_k;
  random.hidden = 256;
  random.head_dim = 64;
  random.ffn = 256;
  random.tied = false;
  const Loaded mixed = load(folder.write("mixed.gguf", random.build()));
  EXPECT_TRUE(mixed.warnings.empty());
  EXPECT_TRUE(all_finite(mixed.logits));
  RandomModel plain;
  plain.tied = false;
  plain.requantize = [](const std::string& name, uint64_t) -> std::optional<TensorType> {
    if (name == "output" || name == "blk.1.attn_v") return TensorType::q8_0;
    return std::nullopt;
  };
  EXPECT_TRUE(all_finite(load(folder.write("head.gguf", plain.build())).logits));
}

TEST(ModelFormats, PartsOfOneMatrixInTwoTypesAreWidenedWithoutLoss) {
  // Gate in f16 and up in bf16 become one matrix of f32.
  const TempFolder folder;
  RandomModel random;
  random.type = TensorType::f16;
  random.mixed = true;
  random.v_type = TensorType::bf16;
  const Loaded mixed = load(folder.write("mixed.gguf", random.build()));
  ASSERT_EQ(mixed.warnings.size(), 1u);
  EXPECT_NE(mixed.warnings[0].find("kept as F32"), std::string::npos) << mixed.warnings[0];
  random.requantize = [](const std::string& name, uint64_t) -> std::optional<TensorType> {
    if (name.ends_with("ffn_gate") || name.ends_with("ffn_up")) return TensorType::f32;
    return std::nullopt;
  };
  const Loaded widened = load(folder.write("widened.gguf", random.build()));
  EXPECT_TRUE(widened.warnings.empty());
  EXPECT_TRUE(all_finite(widened.logits));
  EXPECT_TRUE(same_bits(mixed.logits, widened.logits));
}

TEST(ModelFormats, TypesWithoutAKernelAreWidenedWithoutLoss) {
  const TempFolder folder;
  RandomModel random;
  random.type = TensorType::tq2_0;
  random.hidden = 256;
  random.head_dim = 64;
  random.ffn = 256;
  const Loaded ternary = load(folder.write("ternary.gguf", random.build()));
  ASSERT_EQ(ternary.warnings.size(), 1u);
  EXPECT_NE(ternary.warnings[0].find("TQ2_0"), std::string::npos) << ternary.warnings[0];
  random.requantize = [](const std::string&, uint64_t) { return TensorType::f32; };
  const Loaded widened = load(folder.write("f32.gguf", random.build()));
  EXPECT_TRUE(widened.warnings.empty());
  EXPECT_TRUE(all_finite(widened.logits));
  EXPECT_TRUE(same_bits(ternary.logits, widened.logits));
}

}  // namespace
}  // namespace canopy::test

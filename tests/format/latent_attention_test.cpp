// Latent attention in files: the sizes of folders and of GGUF files, the matrices of heads, and what is refused.

#include "engine/format/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using nlohmann::json;

json latent_config(const char* class_name = "DeepseekV3ForCausalLM") {
  return {{"architectures", json::array({class_name})},
          {"hidden_size", 36},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 5},
          {"num_key_value_heads", 5},
          {"intermediate_size", 96},
          {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-6},
          {"vocab_size", 100},
          {"kv_lora_rank", 40},
          {"q_lora_rank", 20},
          {"qk_nope_head_dim", 16},
          {"qk_rope_head_dim", 8},
          {"v_head_dim", 12},
          {"n_routed_experts", 8},
          {"num_experts_per_tok", 3},
          {"n_group", 4},
          {"topk_group", 2},
          {"moe_intermediate_size", 24},
          {"n_shared_experts", 2},
          {"first_k_dense_replace", 1},
          {"routed_scaling_factor", 2.5}};
}

template <class F>
void expect_says(const std::vector<std::string>& parts, F&& f) {
  const std::string message = error_of(std::forward<F>(f));
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

ModelConfig read(const json& config) {
  return read_hf_config(config.dump(), "");
}

TEST(LatentAttention, AllHeadsOfAFolderReadOneKey) {
  const ModelConfig config = read(latent_config());
  EXPECT_EQ(config.architecture, "deepseek2");
  EXPECT_EQ(config.latent, (LatentAttention{40, 20, 16, 12}));
  EXPECT_EQ(config.head_dim, 48u) << "a latent, and what is turned";
  EXPECT_EQ(config.kv_heads, 1u);
  EXPECT_EQ(config.rotary_dim, 8u);
  EXPECT_EQ(config.rope_layout, RopeLayout::interleaved);
  EXPECT_DOUBLE_EQ(config.query_scale(), 1 / std::sqrt(24.0));
  EXPECT_EQ(config.has_experts, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(config.shared_ffn, 48u);
  EXPECT_TRUE(config.router_has_sigmoid && config.has_choice_bias && config.shares_among_chosen);
  EXPECT_FALSE(config.gates_shared_expert);
  EXPECT_EQ(config.expert_groups, 4u);
  EXPECT_EQ(config.expert_groups_used, 2u);
  EXPECT_EQ(config.share_factor, 2.5f);
}

TEST(LatentAttention, QueriesNeedNoLatentAndRoutersNoSigmoid) {
  json plain = latent_config("DeepseekV2ForCausalLM");
  plain["q_lora_rank"] = nullptr;
  plain["topk_method"] = "greedy";
  const ModelConfig config = read(plain);
  EXPECT_EQ(config.latent.query_rank, 0u);
  EXPECT_FALSE(config.router_has_sigmoid || config.has_choice_bias || config.shares_among_chosen);
  EXPECT_EQ(config.expert_groups, 1u);
  bool has_queries = false;
  for (const RequiredTensor& tensor : required_tensors(config)) has_queries |= tensor.name == "blk.2.attn_q";
  EXPECT_TRUE(has_queries);
  json listed = latent_config("Glm4MoeLiteForCausalLM");
  listed["mlp_layer_types"] = {"sparse", "dense", "sparse"};
  EXPECT_EQ(read(listed).has_experts, (std::vector<bool>{true, false, true}));
}

TEST(LatentAttention, ProductsOfQueriesAndKeysGrowByYarn) {
  json scaled = latent_config();
  scaled["rope_scaling"] = {{"type", "yarn"},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 128},
                            {"mscale", 0.707},
                            {"mscale_all_dim", 0.707}};
  const ModelConfig config = read(scaled);
  const double m = 1 + 0.0707 * std::log(4.0);
  EXPECT_NEAR(config.query_scale(), m * m / std::sqrt(24.0), 1e-12);
  EXPECT_EQ(config.rope_scaling.magnitude, 1);
}

TEST(LatentAttention, FoldersAreRefusedByField) {
  const auto refused = [](const std::vector<std::string>& says, const std::function<void(json&)>& change) {
    json config = latent_config();
    change(config);
    expect_says(says, [&] { read(config); });
  };
  for (const char* field : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "num_experts_per_tok",
                            "moe_intermediate_size"}) {
    refused({field}, [&](json& config) { config.erase(field); });
  }
  refused({"kv_lora_rank", "0"}, [](json& config) { config["kv_lora_rank"] = 0; });
  refused({"kv_lora_rank", "42", "multiples of 4"}, [](json& config) { config["kv_lora_rank"] = 42; });
  refused({"qk_nope_head_dim", "0"}, [](json& config) { config["qk_nope_head_dim"] = 0; });
  refused({"v_head_dim", "0"}, [](json& config) { config["v_head_dim"] = 0; });
  refused({"head_dim", "whole number"}, [](json& config) { config["kv_lora_rank"] = 4294967295u; });
  refused({"rope_interleave"}, [](json& config) { config["rope_interleave"] = false; });
  refused({"scoring_func", "tanh"}, [](json& config) { config["scoring_func"] = "tanh"; });
  refused({"topk_method", "group_limited_greedy"},
          [](json& config) { config["topk_method"] = "group_limited_greedy"; });
  refused({"moe_layer_freq", "2"}, [](json& config) { config["moe_layer_freq"] = 2; });
  refused({"8 experts", "3 groups"}, [](json& config) { config["n_group"] = 3; });
  refused({"groups of experts that a token uses", "5"}, [](json& config) { config["topk_group"] = 5; });
  refused({"uses 3 experts", "1 groups of 2"}, [](json& config) { config["topk_group"] = 1; });
  refused({"factor of the experts' shares"}, [](json& config) { config["routed_scaling_factor"] = 0; });
  refused({"mlp_layer_types", "moe"}, [](json& config) { config["mlp_layer_types"] = {"dense", "moe", "sparse"}; });
  refused({"mlp_layer_types", "2 entries"}, [](json& config) { config["mlp_layer_types"] = {"dense", "sparse"}; });
}

RandomModel latent_model() {
  RandomModel model;
  model.architecture = "deepseek2";
  model.layers = 2;
  model.head_dim = 48;
  return model;
}

/// The file with another value of a key.
void expect_refused(const std::string& key, uint32_t value, const std::vector<std::string>& says) {
  std::string file = latent_model().builder().value<uint32_t>("deepseek2.nextn_predict_layers", 0).build();
  const std::string full = "deepseek2." + key, stored = le(uint64_t{full.size()}) + full;
  const size_t at = file.find(stored);
  ASSERT_NE(at, std::string::npos) << key;
  file.replace(at + stored.size() + sizeof(uint32_t), sizeof(uint32_t), le(value));
  const TempFolder folder;
  const auto path = folder.write("model.gguf", file);
  expect_says(says, [&] { ModelFile::open(path); });
}

TEST(LatentAttention, KeysOfHeadsEndWithRowsOfZeros) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", latent_model().build()));
  EXPECT_EQ(file.config().latent, (LatentAttention{40, 24, 12, 16}));
  const TensorView& keys = file.require("blk.1.attn_k_b", 4 * 48, 12);
  std::vector<std::byte> all, some;
  const std::vector<std::byte> rows = [&] {
    const auto made = rows_of(keys, 0, 4 * 48, all);
    return std::vector<std::byte>(made.begin(), made.end());
  }();
  for (uint32_t r = 0; r < 4 * 48; ++r) {
    const auto row = std::span(rows).subspan(r * row_bytes(keys), row_bytes(keys));
    const bool is_zero = std::ranges::all_of(row, [](std::byte byte) { return byte == std::byte{0}; });
    EXPECT_EQ(is_zero, r % 48 >= 40) << r;
  }
  // Rows in the middle are those of the whole.
  const auto middle = rows_of(keys, 37, 60, some);
  EXPECT_EQ(std::memcmp(middle.data(), rows.data() + 37 * row_bytes(keys), middle.size()), 0);
  EXPECT_NO_THROW(file.require("blk.1.attn_v_b", 4 * 16, 40));
}

TEST(LatentAttention, GgufFilesAreRefusedByKey) {
  expect_refused("attention.kv_lora_rank", 0, {"attention.kv_lora_rank", "0"});
  expect_refused("attention.key_length_mla", 8, {"attention.key_length_mla", "8"});
  expect_refused("attention.key_length", 52, {"attention.key_length", "52"});
  expect_refused("attention.head_count_kv", 4, {"attention.head_count_kv", "4"});
  expect_refused("expert_gating_func", 3, {"expert_gating_func", "3"});
  expect_refused("nextn_predict_layers", 2, {"nextn_predict_layers", "2"});
  expect_refused("expert_group_count", 4, {"6 experts", "4 groups"});
}

}  // namespace
}  // namespace canopy::test

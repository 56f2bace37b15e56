// Granite 4 in files: kinds of layers, scans and factors of folders and of GGUF files, and what is refused.

#include "engine/format/hybrids.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using nlohmann::json;

json granite_config() {
  return {{"architectures", json::array({"GraniteMoeHybridForCausalLM"})},
          {"hidden_size", 32},
          {"num_hidden_layers", 3},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"intermediate_size", 16},
          {"shared_intermediate_size", 48},
          {"num_local_experts", 4},
          {"num_experts_per_tok", 2},
          {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-5},
          {"vocab_size", 100},
          {"layer_types", {"mamba", "attention", "mamba"}},
          {"mamba_d_conv", 4},
          {"mamba_d_head", 16},
          {"mamba_d_state", 24},
          {"mamba_expand", 2},
          {"mamba_n_groups", 1},
          {"mamba_n_heads", 4},
          {"position_embedding_type", "nope"},
          {"attention_multiplier", 0.0625},
          {"embedding_multiplier", 12.0},
          {"residual_multiplier", 0.25},
          {"logits_scaling", 8.0}};
}

ModelConfig read_granite(const json& config) {
  return read_hf_config(config.dump(), "");
}

TEST(Granite, FoldersSayWhichLayersScan) {
  const ModelConfig config = read_granite(granite_config());
  EXPECT_EQ(config.architecture, "granitehybrid");
  EXPECT_EQ(config.recurrent, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(config.delta_net, (DeltaNetConfig{.key_heads = 1,
                                              .value_heads = 4,
                                              .key_dim = 24,
                                              .value_dim = 16,
                                              .taps = 4,
                                              .scans = true,
                                              .has_conv_bias = true,
                                              .has_log_rates = true}));
  EXPECT_FALSE(config.has_trained_form) << "norms are whole";
  EXPECT_EQ(config.embedding_scale, 12);
  EXPECT_EQ(config.residual_scale, 4) << "what is added counts a quarter";
  EXPECT_EQ(config.logit_divisor, 8);
  EXPECT_DOUBLE_EQ(config.query_scale(), 0.0625);
  EXPECT_EQ(config.experts, 4u);
  EXPECT_EQ(config.expert_ffn, 16u);
  EXPECT_EQ(config.shared_ffn, 48u);
  EXPECT_TRUE(config.shares_among_chosen);
  const std::vector<LayerSpec> layers = layer_specs(config);
  EXPECT_EQ(layers[0].mixer, Mixer::scan);
  EXPECT_EQ(layers[1].mixer, Mixer::attention);
  for (const LayerSpec& layer : layers) {
    EXPECT_FALSE(layer.rotates);
    EXPECT_EQ(layer.feed_forward, FeedForward::mixture_of_experts);
    EXPECT_TRUE(layer.shared_expert);
    EXPECT_FALSE(layer.shared_gate);
  }
}

TEST(Granite, SmallSizesHaveNoExpertsAndSomeTurnTheirHeads) {
  json dense = granite_config();
  dense["num_local_experts"] = 0;
  dense["mamba_conv_bias"] = false;
  const ModelConfig config = read_granite(dense);
  EXPECT_EQ(config.ffn, 48u) << "of what is called shared";
  EXPECT_EQ(config.layers_with_experts(), 0u);
  EXPECT_FALSE(config.delta_net.has_conv_bias);
  dense["layer_types"] = {"attention", "attention", "attention"};
  dense["position_embedding_type"] = "rope";
  const ModelConfig attentive = read_granite(dense);
  EXPECT_EQ(attentive.recurrent_layers(), 0u);
  EXPECT_TRUE(layer_specs(attentive)[2].rotates);
}

TEST(Granite, ThirdGenerationHasTheFactorsAlone) {
  json older = granite_config();
  older["architectures"] = json::array({"GraniteForCausalLM"});
  for (const char* field :
       {"layer_types", "shared_intermediate_size", "num_local_experts", "position_embedding_type"}) {
    older.erase(field);
  }
  const ModelConfig config = read_granite(older);
  EXPECT_EQ(config.architecture, "granite");
  EXPECT_EQ(config.ffn, 16u);
  EXPECT_EQ(config.embedding_scale, 12);
  EXPECT_EQ(config.residual_scale, 4);
  EXPECT_EQ(config.logit_divisor, 8);
  EXPECT_DOUBLE_EQ(config.query_scale(), 0.0625);
  for (const LayerSpec& layer : layer_specs(config)) {
    EXPECT_EQ(layer.mixer, Mixer::attention);
    EXPECT_EQ(layer.feed_forward, FeedForward::swiglu);
    EXPECT_TRUE(layer.rotates);
  }
  older["residual_multiplier"] = 0.0;
  expect_error("'residual_multiplier' of config.json is 0.0", [&] { read_granite(older); });
  const TempFolder folder;
  RandomModel model;
  model.architecture = "granite";
  const ModelFile file = ModelFile::open(folder.write("model.gguf", model.build()));
  EXPECT_EQ(file.config().embedding_scale, 3);
  EXPECT_EQ(file.config().rope_layout, RopeLayout::interleaved);
  EXPECT_EQ(file.config().recurrent_layers() + file.config().layers_with_experts(), 0u);
  EXPECT_TRUE(layer_specs(file.config())[0].rotates);
}

TEST(Granite, StepsMayHaveNoLimits) {
  json config = granite_config();
  config["time_step_limit"] = json::array({0.0, 1.0});
  expect_error("'time_step_limit' of config.json is [0.0,1.0]; only [0.0, Infinity]", [&] { read_granite(config); });
  std::string text = granite_config().dump();
  text.insert(1, "\"time_step_limit\": [0.0, Infinity], ");
  EXPECT_NO_THROW(read_hf_config(text, ""));
}

TEST(Granite, FoldersAreRefusedByField) {
  const auto refused = [](const char* message, const std::function<void(json&)>& change) {
    json config = granite_config();
    change(config);
    expect_error(message, [&] { read_granite(config); });
  };
  for (const char* field : {"layer_types", "mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_d_conv",
                            "mamba_n_groups", "shared_intermediate_size", "num_experts_per_tok"}) {
    refused(field, [&](json& config) { config.erase(field); });
  }
  refused("'layer_types' of config.json has 2 entries; the model has 3", [](json& config) {
    config["layer_types"] = {"mamba", "attention"};
  });
  refused("'layer_types' of config.json holds \"mamba2\"", [](json& config) {
    config["layer_types"] = {"mamba", "attention", "mamba2"};
  });
  refused("has recurrent layers only", [](json& config) { config["layer_types"] = {"mamba", "mamba", "mamba"}; });
  refused("'mamba_n_groups' of config.json is 2; only 1", [](json& config) { config["mamba_n_groups"] = 2; });
  refused("'mamba_n_heads' of config.json is 3, and 'mamba_d_head' 16; their product must be",
          [](json& config) { config["mamba_n_heads"] = 3; });
  refused("recurrent key head dimension is 132", [](json& config) { config["mamba_d_state"] = 132; });
  refused("recurrent key head dimension is 18; multiples of 4", [](json& config) { config["mamba_d_state"] = 18; });
  refused("length of the recurrent convolution is 9", [](json& config) { config["mamba_d_conv"] = 9; });
  refused("'mamba_proj_bias' of config.json is true", [](json& config) { config["mamba_proj_bias"] = true; });
  for (const char* factor : {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"}) {
    for (const double value : {0.0, -1.0, 1e9}) {
      const std::string message = "The field '" + std::string(factor) + "' of config.json is ";
      refused(message.c_str(), [&](json& config) { config[factor] = value; });
    }
  }
  refused("number of experts that a token uses is 5", [](json& config) { config["num_experts_per_tok"] = 5; });
  refused("feed-forward size of the shared expert",
          [](json& config) { config["shared_intermediate_size"] = 4294967295u; });
}

TEST(Granite, TensorsOfFoldersAreNamedAsTheyAre) {
  const ModelConfig config = read_granite(granite_config());
  const FolderNames names{.is_granite = true, .recurrent = config.recurrent};
  for (const auto& [theirs, ours] : {std::pair{"mamba.in_proj.weight", "ssm_in"},
                                     {"mamba.conv1d.weight", "ssm_conv1d"},
                                     {"mamba.conv1d.bias", "ssm_conv1d.bias"},
                                     {"mamba.A_log", "ssm_a"},
                                     {"mamba.D", "ssm_d"},
                                     {"mamba.dt_bias", "ssm_dt.bias"},
                                     {"mamba.norm.weight", "ssm_norm"},
                                     {"mamba.out_proj.weight", "ssm_out"},
                                     {"shared_mlp.input_linear.weight", "ffn_gate_up_shexp"},
                                     {"shared_mlp.output_linear.weight", "ffn_down_shexp"},
                                     {"block_sparse_moe.input_linear.weight", "ffn_gate_up_exps"},
                                     {"block_sparse_moe.output_linear.weight", "ffn_down_exps"},
                                     {"block_sparse_moe.router.layer.weight", "ffn_gate_inp"},
                                     {"input_layernorm.weight", "attn_norm"},
                                     {"post_attention_layernorm.weight", "ffn_norm"},
                                     {"self_attn.q_proj.weight", "attn_q"}}) {
    const std::string whole = "model.layers.2." + std::string(theirs), own = "blk.2." + std::string(ours);
    EXPECT_EQ(canonical_name_from_hugging_face(whole), own);
    EXPECT_EQ(hugging_face_name(own, names), whole);
  }
}

TEST(Granite, FoldersWithoutATensorAreRefusedByItsName) {
  const TempFolder folder;
  folder.write("config.json", granite_config().dump());
  SafetensorsBuilder tensors;
  tensors.zeros("model.embed_tokens.weight", {100, 32});
  folder.write("model.safetensors", tensors.build());
  expect_error("The tensor 'model.layers.0.shared_mlp.input_linear.weight' is missing; its shape should be [96, 32]",
               [&] { ModelFile::open(folder.path()); });
}

RandomModel granite_model() {
  RandomModel model;
  model.architecture = "granitehybrid";
  model.layers = 4;
  return model;
}

TEST(Granite, LayersWithoutKeysScanInGguf) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", granite_model().build()));
  const ModelConfig& config = file.config();
  EXPECT_EQ(config.recurrent, (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(config.kv_heads, 2u);
  EXPECT_TRUE(config.layer_kv_heads.empty()) << "where a layer has any, it is as many";
  EXPECT_TRUE(config.delta_net.scans && config.delta_net.has_conv_bias);
  EXPECT_FALSE(config.delta_net.has_log_rates);
  EXPECT_FLOAT_EQ(config.residual_scale, 2.5f);
  EXPECT_EQ(config.shared_ffn, 48u);
  EXPECT_FALSE(layer_specs(config)[3].rotates);
}

/// The file with another value of a key, of four bytes.
template <class T>
void expect_key_refused(const std::string& key, T value, const char* says) {
  std::string file = granite_model().build();
  const std::string full = "granitehybrid." + key, stored = le(uint64_t{full.size()}) + full;
  const size_t at = file.find(stored);
  ASSERT_NE(at, std::string::npos) << key;
  file.replace(at + stored.size() + sizeof(uint32_t), sizeof(T), le(value));
  const TempFolder folder;
  const auto path = folder.write("model.gguf", file);
  expect_error(says, [&] { ModelFile::open(path); });
}

TEST(Granite, GgufFilesAreRefusedByKey) {
  expect_key_refused("ssm.group_count", 2u, "'granitehybrid.ssm.group_count' is 2; only 1");
  expect_key_refused("ssm.inner_size", 66u, "'granitehybrid.ssm.inner_size' is 66, no multiple of");
  expect_key_refused("ssm.time_step_rank", 0u, "'granitehybrid.ssm.time_step_rank', 0");
  expect_key_refused("ssm.state_size", 0u, "recurrent key head dimension is 0");
  expect_key_refused("residual_scale", 0.0f, "'granitehybrid.residual_scale' is 0.0");
  expect_key_refused("embedding_scale", -1.0f, "'granitehybrid.embedding_scale' is -1.0");
  expect_key_refused("logit_scale", 1e6f, "'granitehybrid.logit_scale' is 1000000.0");
  expect_key_refused("attention.scale", -0.5f, "'granitehybrid.attention.scale' is -0.5");
  expect_key_refused("ssm.state_size", 20u, "The tensor 'blk.0.ssm_in'");
}

TEST(Granite, NumbersOfHeadsMayStandBelowEachOther) {
  const TempFolder folder;
  GgufBuilder builder = granite_model().builder();
  for (GgufBuilder::Tensor& tensor : builder.tensors) {
    if (tensor.name.ends_with(".ssm_a") || tensor.name.ends_with(".ssm_d")) tensor.dimensions = {1, 4};
    if (tensor.name.ends_with(".ssm_norm.weight")) tensor.dimensions = {64, 1};
  }
  EXPECT_NO_THROW(ModelFile::open(folder.write("model.gguf", builder.build())));
  for (GgufBuilder::Tensor& tensor : builder.tensors) {
    if (tensor.name != "blk.1.ssm_d") continue;
    tensor.dimensions = {2, 3};
    tensor.data.resize(6 * sizeof(float));
  }
  expect_error("The tensor 'blk.1.ssm_d' has the shape [3, 2]; [4] is expected",
               [&] { ModelFile::open(folder.write("model.gguf", builder.build())); });
}

}  // namespace
}  // namespace canopy::test

// Nemotron-H in files: kinds of layers, scans and experts of folders and of GGUF files, and what is refused.

#include "engine/format/hybrids.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor_names.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using nlohmann::json;

json nemotron_config() {
  return {{"architectures", json::array({"NemotronHForCausalLM"})},
          {"hidden_size", 32},
          {"num_hidden_layers", 5},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"intermediate_size", 48},
          {"moe_intermediate_size", 24},
          {"moe_shared_expert_intermediate_size", 40},
          {"n_routed_experts", 8},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 2},
          {"n_group", 2},
          {"topk_group", 1},
          {"routed_scaling_factor", 2.5},
          {"max_position_embeddings", 512},
          {"layer_norm_epsilon", 1e-5},
          {"vocab_size", 100},
          {"hybrid_override_pattern", "ME*-M"},
          {"mlp_hidden_act", "relu2"},
          {"n_groups", 2},
          {"mamba_num_heads", 8},
          {"mamba_head_dim", 12},
          {"ssm_state_size", 16},
          {"conv_kernel", 4}};
}

ModelConfig read_nemotron(const json& config) {
  return read_hf_config(config.dump(), "");
}

TEST(Nemotron, EachLayerOfAFolderIsOneThing) {
  const ModelConfig config = read_nemotron(nemotron_config());
  EXPECT_EQ(config.architecture, "nemotron_h_moe");
  EXPECT_FLOAT_EQ(config.rms_eps, 1e-5f);
  EXPECT_EQ(config.delta_net, (DeltaNetConfig{.key_heads = 2,
                                              .value_heads = 8,
                                              .key_dim = 16,
                                              .value_dim = 12,
                                              .taps = 4,
                                              .scans = true,
                                              .has_conv_bias = true,
                                              .has_log_rates = true}));
  EXPECT_EQ(config.recurrent_layers(), 2u);
  EXPECT_EQ(config.attention_layers(), 1u);
  EXPECT_EQ(config.layers_with_experts(), 1u);
  EXPECT_EQ(config.ffn, 48u);
  EXPECT_EQ(config.expert_ffn, 24u);
  EXPECT_EQ(config.shared_ffn, 40u);
  EXPECT_TRUE(config.router_has_sigmoid && config.has_choice_bias && config.shares_among_chosen);
  EXPECT_EQ(config.expert_groups, 2u);
  EXPECT_EQ(config.share_factor, 2.5f);
  const std::vector<LayerSpec> layers = layer_specs(config);
  const Mixer mixers[] = {Mixer::scan, Mixer::none, Mixer::attention, Mixer::none, Mixer::scan};
  const FeedForward others[] = {FeedForward::none, FeedForward::mixture_of_experts, FeedForward::none,
                                FeedForward::swiglu, FeedForward::none};
  for (size_t n = 0; n < layers.size(); ++n) {
    EXPECT_EQ(layers[n].mixer, mixers[n]) << n;
    EXPECT_EQ(layers[n].feed_forward, others[n]) << n;
    EXPECT_EQ(layers[n].square_relu, others[n] != FeedForward::none) << n;
    EXPECT_FALSE(layers[n].rotates);
  }
  EXPECT_TRUE(layers[1].choice_bias && layers[1].shared_expert && !layers[1].shared_gate);
  for (const RequiredTensor& tensor : required_tensors(config)) {
    EXPECT_EQ(tensor.name.find("ffn_gate."), std::string::npos) << tensor.name;
    EXPECT_EQ(tensor.name.find("ffn_norm"), std::string::npos) << tensor.name;
  }
}

TEST(Nemotron, SmallModelsHaveNoExperts) {
  json dense = nemotron_config();
  dense["hybrid_override_pattern"] = "M-*-M";
  for (const char* field : {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size"}) dense.erase(field);
  const ModelConfig config = read_nemotron(dense);
  EXPECT_TRUE(config.has_experts.empty());
  EXPECT_EQ(config.attention_layers(), 1u);
}

TEST(Nemotron, FoldersAreRefusedByField) {
  const auto refused = [](const char* message, const std::function<void(json&)>& change) {
    json config = nemotron_config();
    change(config);
    expect_error(message, [&] { read_nemotron(config); });
  };
  for (const char* field :
       {"hybrid_override_pattern", "n_groups", "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "conv_kernel",
        "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "layer_norm_epsilon"}) {
    refused(field, [&](json& config) { config.erase(field); });
  }
  refused("'hybrid_override_pattern' of config.json has 4 letters; the model has 5",
          [](json& config) { config["hybrid_override_pattern"] = "ME*M"; });
  refused("has 'X'; M, *, E and - are supported", [](json& config) { config["hybrid_override_pattern"] = "ME*XM"; });
  refused("has recurrent layers only", [](json& config) { config["hybrid_override_pattern"] = "MEM-M"; });
  refused("'mlp_hidden_act' of config.json is 'silu'; only relu2",
          [](json& config) { config["mlp_hidden_act"] = "silu"; });
  refused("'mamba_hidden_act' of config.json is 'gelu'", [](json& config) { config["mamba_hidden_act"] = "gelu"; });
  refused("'use_bias' of config.json is true", [](json& config) { config["use_bias"] = true; });
  refused("'mlp_bias' of config.json is true", [](json& config) { config["mlp_bias"] = true; });
  refused("'moe_latent_size' of config.json is 64", [](json& config) { config["moe_latent_size"] = 64; });
  refused("'time_step_limit'", [](json& config) { config["time_step_limit"] = json::array({0.5, 1.0}); });
  refused("value heads 8 is no multiple", [](json& config) { config["n_groups"] = 3; });
  refused("feed-forward size of the shared expert",
          [](json& config) { config["moe_shared_expert_intermediate_size"] = 4294967295u; });
  refused("groups of experts that a token uses", [](json& config) { config["topk_group"] = 3; });
}

TEST(Nemotron, TensorsOfFoldersAreNamedAsTheyAre) {
  const FolderNames names{.is_nemotron = true, .recurrent = {}};
  for (const auto& [theirs, ours] : {std::pair{"norm.weight", "attn_norm"},
                                     {"mixer.in_proj.weight", "ssm_in"},
                                     {"mixer.conv1d.weight", "ssm_conv1d"},
                                     {"mixer.conv1d.bias", "ssm_conv1d.bias"},
                                     {"mixer.A_log", "ssm_a"},
                                     {"mixer.D", "ssm_d"},
                                     {"mixer.dt_bias", "ssm_dt.bias"},
                                     {"mixer.norm.weight", "ssm_norm"},
                                     {"mixer.out_proj.weight", "ssm_out"},
                                     {"mixer.q_proj.weight", "attn_q"},
                                     {"mixer.o_proj.weight", "attn_output"},
                                     {"mixer.up_proj.weight", "ffn_up"},
                                     {"mixer.down_proj.weight", "ffn_down"},
                                     {"mixer.gate.weight", "ffn_gate_inp"},
                                     {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                     {"mixer.experts.7.up_proj.weight", "ffn_up.7"},
                                     {"mixer.experts.7.down_proj.weight", "ffn_down.7"},
                                     {"mixer.shared_experts.up_proj.weight", "ffn_up_shexp"},
                                     {"mixer.shared_experts.down_proj.weight", "ffn_down_shexp"}}) {
    const std::string own = "blk.2." + std::string(ours);
    EXPECT_EQ(canonical_name_from_hugging_face("backbone.layers.2." + std::string(theirs)), own);
    EXPECT_EQ(hugging_face_name(own, names), "model.layers.2." + std::string(theirs)) << "before the folder's prefix";
  }
  EXPECT_EQ(canonical_name_from_hugging_face("backbone.embeddings.weight"), "token_embd");
  EXPECT_EQ(canonical_name_from_hugging_face("backbone.norm_f.weight"), "output_norm");
}

RandomModel nemotron_model() {
  RandomModel model;
  model.architecture = "nemotron_h_moe";
  model.layers = 6;
  return model;
}

TEST(Nemotron, GgufSaysWhatALayerIsByItsNumbers) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", nemotron_model().build()));
  const ModelConfig& config = file.config();
  EXPECT_EQ(config.recurrent, (std::vector<bool>{true, false, false, true, false, true}));
  EXPECT_EQ(config.has_experts, (std::vector<bool>{false, true, false, false, false, false}));
  EXPECT_TRUE(config.is_attention(2) && !config.is_attention(4));
  EXPECT_EQ(config.ffn_of(4), 96u);
  EXPECT_EQ(config.delta_net.key_heads, 2u);
  EXPECT_FLOAT_EQ(config.rms_eps, 1e-5f);
}

TEST(Nemotron, GgufFilesAreRefusedByKey) {
  const TempFolder folder;
  const auto refused = [&](const char* says, const std::function<void(GgufBuilder&)>& change) {
    GgufBuilder builder = nemotron_model().builder();
    change(builder);
    const auto path = folder.write("model.gguf", builder.build());
    expect_error(says, [&] { ModelFile::open(path); });
  };
  refused("'nemotron_h_moe.expert_gating_func' is 1; only 2 (sigmoid)",
          [](GgufBuilder& builder) { builder.value<uint32_t>("nemotron_h_moe.expert_gating_func", 1); });
  refused("blk.1.ffn_up_exps", [](GgufBuilder& builder) {
    std::erase_if(builder.tensors, [](const auto& tensor) { return tensor.name == "blk.1.ffn_up_exps.weight"; });
  });
  RandomModel both = nemotron_model();
  both.layer_kv_heads = {};
  std::string file = both.build();
  const std::string key = "nemotron_h_moe.attention.head_count_kv", stored = le(uint64_t{key.size()}) + key;
  const size_t at = file.find(stored) + stored.size() + 2 * sizeof(uint32_t) + sizeof(uint64_t);
  file.replace(at + sizeof(uint32_t), sizeof(uint32_t), le(2u));  // of layer 1, which has experts
  const auto path = folder.write("model.gguf", file);
  expect_error("Layer 1 has heads in the metadata 'nemotron_h_moe.attention.head_count_kv' and a width in",
               [&] { ModelFile::open(path); });
}

}  // namespace
}  // namespace canopy::test

// Configurations of hybrids of attention and recurrences.

#include "engine/format/hybrids.h"
#include "engine/format/model_families.h"

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

json hybrid_config() {
  return {{"hidden_size", 64},
          {"num_hidden_layers", 8},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 32},
          {"intermediate_size", 96},
          {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-6},
          {"vocab_size", 100},
          {"linear_num_key_heads", 2},
          {"linear_num_value_heads", 4},
          {"linear_key_head_dim", 16},
          {"linear_value_head_dim", 12},
          {"linear_conv_kernel_dim", 4},
          {"rope_parameters", {{"rope_theta", 1e7}, {"rope_type", "default"}, {"partial_rotary_factor", 0.25}}}};
}

ModelConfig read_hybrid(json config, const char* class_name = "Qwen3_5ForCausalLM") {
  config["architectures"] = {class_name};
  return read_hf_config(config.dump(), "");
}

ModelConfig hybrid_with(const char* field, const json& value) {
  json config = hybrid_config();
  config[field] = value;
  return read_hybrid(config);
}

TEST(HybridConfig, ReadsAllFields) {
  const ModelConfig c = read_hybrid(hybrid_config());
  EXPECT_EQ(c.architecture, "qwen35");
  EXPECT_EQ(c.delta_net,
            (DeltaNetConfig{
                .key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 12, .taps = 4, .has_log_rates = true}));
  EXPECT_EQ(c.rotary_dim, 8u);
  EXPECT_TRUE(c.has_output_gate);
  EXPECT_TRUE(c.has_qk_norm);
  EXPECT_TRUE(c.has_trained_form);
  EXPECT_FALSE(c.tied_head);
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, true, false, true, true, true, false}));
  EXPECT_EQ(c.attention_layers(), 2u);
  const std::vector<LayerSpec> layers = layer_specs(c);
  EXPECT_EQ(layers[2].mixer, Mixer::gated_delta_net);
  EXPECT_FALSE(layers[2].output_gate);
  EXPECT_EQ(layers[3].mixer, Mixer::attention);
  EXPECT_TRUE(layers[3].output_gate);
}

json hybrid_config_with_experts() {
  json config = hybrid_config();
  config.erase("intermediate_size");  // no layer is dense
  config["num_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  config["moe_intermediate_size"] = 24;
  config["shared_expert_intermediate_size"] = 40;
  return config;
}

TEST(HybridConfig, ReadsExpertsAndTheOneOfAllRows) {
  const ModelConfig c = read_hybrid(hybrid_config_with_experts(), "Qwen3_5MoeForCausalLM");
  EXPECT_EQ(c.architecture, "qwen35moe");
  EXPECT_EQ(c.layers_with_experts(), 8u);
  EXPECT_EQ(c.shared_ffn, 40u);
  EXPECT_TRUE(c.shares_among_chosen);
  const LayerSpec recurrent = layer_specs(c)[0], attentive = layer_specs(c)[3];
  EXPECT_EQ(recurrent.mixer, Mixer::gated_delta_net);
  EXPECT_EQ(recurrent.feed_forward, FeedForward::mixture_of_experts);
  EXPECT_TRUE(recurrent.shared_expert);
  EXPECT_TRUE(attentive.shared_expert);
  json missing = hybrid_config_with_experts();
  missing.erase("shared_expert_intermediate_size");
  expect_error("lacks the field 'shared_expert_intermediate_size'",
               [&] { read_hybrid(missing, "Qwen3_5MoeForCausalLM"); });
  json used = hybrid_config_with_experts();
  used["num_experts_per_tok"] = 9;
  expect_error("number of experts that a token uses is 9; 1 to 8", [&] { read_hybrid(used, "Qwen3_5MoeForCausalLM"); });
}

TEST(HybridConfig, ReadsTheTextPartOfAModelThatSeesPictures) {
  json whole = {{"text_config", hybrid_config()}, {"tie_word_embeddings", true}, {"vision_config", {{"depth", 2}}}};
  const ModelConfig c = read_hybrid(whole, "Qwen3_5ForConditionalGeneration");
  EXPECT_EQ(c.hidden, 64u);
  EXPECT_TRUE(c.tied_head);
  whole["text_config"]["tie_word_embeddings"] = false;
  EXPECT_FALSE(read_hybrid(whole, "Qwen3_5ForConditionalGeneration").tied_head);
}

TEST(HybridConfig, ReadsTheKindsOfLayers) {
  const json kinds = {"full_attention",   "linear_attention", "linear_attention", "full_attention",
                      "linear_attention", "linear_attention", "linear_attention", "full_attention"};
  EXPECT_EQ(hybrid_with("layer_types", kinds).recurrent,
            (std::vector<bool>{false, true, true, false, true, true, true, false}));
  EXPECT_EQ(hybrid_with("full_attention_interval", 2).attention_layers(), 4u);
  EXPECT_FALSE(hybrid_with("attn_output_gate", false).has_output_gate);
}

TEST(HybridConfig, RefusesWhatDoesNotFit) {
  const auto refused = [](const char* message, const char* field, const json& value) {
    SCOPED_TRACE(field);
    expect_error(message, [&] { hybrid_with(field, value); });
  };
  refused("'layer_types' of config.json has 1 entries; the model has 8", "layer_types", {"full_attention"});
  refused("holds \"sliding_attention\"; \"linear_attention\" and \"full_attention\"", "layer_types",
          {"sliding_attention"});
  refused("'full_attention_interval' of config.json is 0", "full_attention_interval", 0);
  refused("layer count is 4294967295", "num_hidden_layers", UINT32_MAX);
  refused("has recurrent layers only", "full_attention_interval", 9);
  refused("number of recurrent value heads 5 is no multiple", "linear_num_value_heads", 5);
  refused("number of recurrent key heads is 0", "linear_num_key_heads", 0);
  refused("recurrent key head dimension is 18; multiples of 4", "linear_key_head_dim", 18);
  refused("recurrent key head dimension is 256; 1 to 128", "linear_key_head_dim", 256);
  refused("recurrent value head dimension is 0", "linear_value_head_dim", 0);
  refused("length of the recurrent convolution is 9", "linear_conv_kernel_dim", 9);
  refused("length of the recurrent convolution is 1", "linear_conv_kernel_dim", 1);
  refused("'linear_num_key_heads' of config.json is \"x\"", "linear_num_key_heads", "x");
  refused("'partial_rotary_factor' of config.json's rope scaling is 1.5", "rope_parameters",
          {{"partial_rotary_factor", 1.5}});
  refused("less than an element", "rope_parameters", {{"partial_rotary_factor", 0.01}});
  refused("turns 9 elements of each head; even numbers", "rope_parameters", {{"partial_rotary_factor", 9.0 / 32}});
  json missing = hybrid_config();
  missing.erase("linear_conv_kernel_dim");
  expect_error("config.json lacks the field 'linear_conv_kernel_dim'", [&] { read_hybrid(missing); });
}

TEST(HybridConfig, NamesOfTensors) {
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.2.linear_attn.in_proj_qkv.weight"), "blk.2.attn_qkv");
  EXPECT_EQ(canonical_name_from_hugging_face("model.language_model.layers.2.linear_attn.A_log"), "blk.2.ssm_a");
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.2.linear_attn.dt_bias"), "blk.2.ssm_dt.bias");
  EXPECT_EQ(canonical_name_from_hugging_face("model.language_model.embed_tokens.weight"), "token_embd");
  EXPECT_EQ(canonical_name_from_gguf("blk.7.post_attention_norm.weight"), "blk.7.ffn_norm");
  EXPECT_EQ(canonical_name_from_gguf("blk.7.ssm_a"), "blk.7.ssm_a");
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.2.mlp.shared_expert_gate.weight"),
            "blk.2.ffn_gate_inp_shexp");
  EXPECT_EQ(canonical_name_from_hugging_face("model.language_model.layers.2.mlp.experts.gate_up_proj"),
            "blk.2.ffn_gate_up_exps");
}

RandomModel random_hybrid() {
  RandomModel random;
  random.architecture = "qwen35";
  random.layers = 8;
  return random;
}

ModelConfig gguf_config_of(const GgufBuilder& builder) {
  const TempFolder folder;
  return ModelFile::open(folder.write("model.gguf", builder.build())).config();
}

TEST(HybridConfig, ReadsGguf) {
  const ModelConfig c = gguf_config_of(random_hybrid().builder());
  EXPECT_EQ(c.delta_net, (DeltaNetConfig{2, 4, 16, 16, 4, true}));
  EXPECT_EQ(c.recurrent, (std::vector<bool>{true, true, true, false, true, true, true, false}));
  EXPECT_EQ(c.rotary_dim, 8u);
  EXPECT_TRUE(c.has_output_gate);
  EXPECT_FALSE(c.has_trained_form);
}

TEST(HybridConfig, OllamasNameOfTheBiasIsTheSameTensor) {
  GgufBuilder builder = random_hybrid().builder();
  for (GgufBuilder::Tensor& tensor : builder.tensors) {
    if (tensor.name == "blk.0.ssm_dt.bias") tensor.name = "blk.0.ssm_dt";
    if (tensor.name == "blk.1.ssm_dt.bias") tensor.name = "blk.1.ssm_dt.weight";
  }
  EXPECT_EQ(gguf_config_of(builder).layers, 8u);
  EXPECT_EQ(canonical_name_from_gguf("blk.0.ssm_dt"), "blk.0.ssm_dt.bias");
  EXPECT_EQ(canonical_name_from_gguf("blk.0.attn_out.weight"), "blk.0.attn_output");
  EXPECT_EQ(canonical_name_from_gguf("blk.0.attn_out.bias"), "blk.0.attn_output.bias");
}

// Layers that predict further tokens stand behind the others, and their tensors are left alone.
TEST(HybridConfig, LeavesLayersThatPredictFurtherTokens) {
  GgufBuilder builder = random_hybrid().builder();
  builder.value<uint32_t>("qwen35.nextn_predict_layers", 1);
  const ModelConfig c = gguf_config_of(builder);
  EXPECT_EQ(c.layers, 7u);
  EXPECT_EQ(c.unread_layers, 1u);
}

// Newer files list the kinds of all layers, those included that predict further tokens.
TEST(HybridConfig, ReadsKindsOfGguf) {
  GgufBuilder builder = random_hybrid().builder();
  const std::string kinds("\1\1\1\0\1\1\1\0", 8);
  builder.array("qwen35.attention.recurrent_layers", GgufType::boolean, 8, kinds);
  builder.without("qwen35.full_attention_interval").value<uint32_t>("qwen35.full_attention_interval", 7);
  EXPECT_EQ(gguf_config_of(builder).recurrent, (std::vector<bool>{true, true, true, false, true, true, true, false}));
  builder.value<uint32_t>("qwen35.nextn_predict_layers", 1);
  EXPECT_EQ(gguf_config_of(builder).recurrent, (std::vector<bool>{true, true, true, false, true, true, true}));
  builder.without("qwen35.attention.recurrent_layers");
  builder.array("qwen35.attention.recurrent_layers", GgufType::boolean, 7, kinds.substr(0, 7));
  expect_error("The metadata 'qwen35.attention.recurrent_layers' has 7 elements; 8 are expected, one a layer.",
               [&] { gguf_config_of(builder); });
}

TEST(HybridConfig, ReadsExpertsOfGguf) {
  RandomModel random = random_hybrid();
  random.architecture = "qwen35moe";
  const ModelConfig c = gguf_config_of(random.builder());
  EXPECT_EQ(c.shared_ffn, 48u);
  EXPECT_EQ(c.layers_with_experts(), 8u);
  EXPECT_TRUE(layer_specs(c)[3].shared_expert);
  const auto refused = [&](const char* message, const std::function<void(GgufBuilder&)>& change) {
    GgufBuilder builder = random.builder();
    change(builder);
    expect_error(message, [&] { gguf_config_of(builder); });
  };
  refused("'qwen35moe.expert_shared_feed_forward_length' is missing",
          [](GgufBuilder& b) { b.without("qwen35moe.expert_shared_feed_forward_length"); });
  refused("'qwen35moe.expert_shared_count' is 2; only 1 is supported",
          [](GgufBuilder& b) { b.value<uint32_t>("qwen35moe.expert_shared_count", 2); });
  refused("The tensor 'blk.5.ffn_gate_inp_shexp' is missing; its shape should be [64].",
          [](GgufBuilder& b) { b.without_tensor("blk.5.ffn_gate_inp_shexp.weight"); });
  refused("The tensor 'blk.0.ffn_up_shexp' has the shape [40, 64]; [48, 64] is expected.", [](GgufBuilder& b) {
    b.without_tensor("blk.0.ffn_up_shexp.weight").zeros("blk.0.ffn_up_shexp.weight", {64, 40});
  });
}

TEST(HybridConfig, RefusesGgufThatDoesNotFit) {
  const auto refused = [](const char* message, const char* key, uint32_t value) {
    SCOPED_TRACE(key);
    GgufBuilder builder = random_hybrid().builder();
    builder.without(key).value<uint32_t>(key, value);
    expect_error(message, [&] { gguf_config_of(builder); });
  };
  refused("'qwen35.nextn_predict_layers' is 8; less than 'qwen35.block_count', 8,", "qwen35.nextn_predict_layers", 8);
  refused("'qwen35.ssm.inner_size' is 65, no multiple", "qwen35.ssm.inner_size", 65);
  refused("'qwen35.ssm.inner_size' is 64, no multiple of 'qwen35.ssm.time_step_rank', 0", "qwen35.ssm.time_step_rank",
          0);
  refused("'qwen35.full_attention_interval' is 0", "qwen35.full_attention_interval", 0);
  refused("turns 18 elements of each head", "qwen35.rope.dimension_count", 18);
}

}  // namespace
}  // namespace canopy::test

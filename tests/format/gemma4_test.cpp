// Gemma 4 in files: both sizes of its heads, values that are keys, the part of a head that turns, and what is refused.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TempFolder;

std::string gemma4_config(const std::string& extra = "") {
  return R"({"architectures":["Gemma4ForCausalLM"],"hidden_size":64,"num_hidden_layers":8,"num_attention_heads":4,)"
         R"("num_key_value_heads":2,"num_global_key_value_heads":1,"head_dim":16,"global_head_dim":32,)"
         R"("attention_k_eq_v":true,"intermediate_size":48,"vocab_size":10,"rms_norm_eps":1e-6,)"
         R"("max_position_embeddings":128,"sliding_window":8,"final_logit_softcapping":30.0)" +
         extra + "}";
}

TEST(Gemma4, LayersThatSeeTheWholeTextHaveLongerHeadsAndTakeTheirValuesFromKeys) {
  const ModelConfig config = read_hf_config(gemma4_config(), "");
  EXPECT_EQ(config.architecture, "gemma4");
  // Each sixth, and the last.
  EXPECT_EQ(config.windows, (std::vector<uint32_t>{8, 8, 8, 8, 8, 0, 8, 0}));
  EXPECT_EQ(config.head_dim, 32u);
  EXPECT_EQ(config.head_dim_of(0), 16u);
  EXPECT_EQ(config.head_dim_of(5), 32u);
  EXPECT_EQ(config.q_width_of(0), 64u);
  EXPECT_EQ(config.q_width(), 128u);
  EXPECT_EQ(config.kv_width(), 32u);  // two heads of 16, or one of 32
  EXPECT_EQ(config.layer_kv_heads, (std::vector<uint32_t>{2, 2, 2, 2, 2, 1, 2, 1}));
  EXPECT_EQ(config.query_scale(), 1.0);
  EXPECT_EQ(config.logit_softcap, 30.0f);
  EXPECT_FALSE(config.has_trained_form) << "norms are stored as they are";
  const std::vector<LayerSpec> specs = layer_specs(config);
  EXPECT_TRUE(specs[5].values_of_keys && specs[7].values_of_keys);
  EXPECT_FALSE(specs[0].values_of_keys);
  EXPECT_TRUE(specs[0].local_rope && specs[0].v_norm && specs[0].layer_scale && specs[0].post_norms && specs[0].gelu);
  for (const RequiredTensor& tensor : required_tensors(config)) EXPECT_NE(tensor.name, "blk.5.attn_v");
}

TEST(Gemma4, APartOfAHeadTurnsByFrequenciesOfTheWhole) {
  const ModelConfig config = read_hf_config(gemma4_config(), "");
  const std::vector<double> frequencies = rope_frequencies(config);
  ASSERT_EQ(frequencies.size(), 16u);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(frequencies[i], i < 4 ? std::pow(1e6, -2.0 * static_cast<double>(i) / 32) : 0.0) << i;
  }
  EXPECT_EQ(local_rope_frequencies(config).size(), 8u);
  EXPECT_EQ(local_rope_frequencies(config)[1], std::pow(1e4, -2.0 / 16));
  const ModelConfig other = read_hf_config(
      gemma4_config(
          R"(,"rope_parameters":{"full_attention":{"rope_type":"proportional","rope_theta":500000.0,"factor":2.0,)"
          R"("partial_rotary_factor":0.5},"sliding_attention":{"rope_type":"default","rope_theta":20000.0}})"),
      "");
  EXPECT_EQ(rope_frequencies(other)[1], std::pow(5e5, -2.0 / 32) / 2);
  EXPECT_EQ(rope_frequencies(other)[7], std::pow(5e5, -14.0 / 32) / 2);
  EXPECT_EQ(rope_frequencies(other)[8], 0.0);
  EXPECT_EQ(other.local_rope_theta, 2e4);
}

// The text part of google/gemma-4-12B-it.
TEST(Gemma4, ReadsTheTextPartOfPublishedModels) {
  const ModelConfig config = read_hf_config(
      R"({"architectures":["Gemma4UnifiedForConditionalGeneration"],"eos_token_id":[1,106],"text_config":{)"
      R"("attention_k_eq_v":true,"enable_moe_block":false,"final_logit_softcapping":30.0,"global_head_dim":512,)"
      R"("head_dim":256,"hidden_activation":"gelu_pytorch_tanh","hidden_size":3840,"hidden_size_per_layer_input":0,)"
      R"("intermediate_size":15360,"max_position_embeddings":262144,"num_attention_heads":16,)"
      R"("num_global_key_value_heads":1,"num_hidden_layers":48,"num_key_value_heads":8,"num_kv_shared_layers":0,)"
      R"("rms_norm_eps":1e-6,"sliding_window":1024,"use_bidirectional_attention":"vision","vocab_size":262144}})",
      "");
  EXPECT_EQ(config.windows[4], 1024u);
  EXPECT_EQ(config.windows[5], 0u);
  EXPECT_EQ(config.q_width_of(5), 8192u);
  EXPECT_EQ(config.kv_width_of(5), 512u);
  EXPECT_EQ(config.kv_width(), 2048u);
  EXPECT_TRUE(config.tied_head);
  EXPECT_EQ(config.eos, (std::vector<uint32_t>{1, 106}));
}

TEST(Gemma4, WhatDoesNotRunIsRefusedByName) {
  const auto refused = [](const char* message, const std::string& extra) {
    expect_error(message, [&] { read_hf_config(gemma4_config(extra), ""); });
  };
  refused("it cannot write one", R"(,"use_bidirectional_attention":"all")");
  refused("'hidden_activation' of config.json is 'relu'; only gelu_pytorch_tanh", R"(,"hidden_activation":"relu")");
  refused("'rope_type' of config.json's rope_parameters of full_attention is 'yarn'; default and proportional",
          R"(,"rope_parameters":{"full_attention":{"rope_type":"yarn"}})");
  refused("'partial_rotary_factor' of config.json's rope_parameters of full_attention is 1.5",
          R"(,"rope_parameters":{"full_attention":{"rope_type":"proportional","partial_rotary_factor":1.5}})");
  refused("number of pairs of a head that turn is 0; 1 to 16",
          R"(,"rope_parameters":{"full_attention":{"rope_type":"proportional","partial_rotary_factor":0.01}})");
  refused("'rope_type' of config.json's rope_parameters of sliding_attention is 'linear'; default is supported",
          R"(,"rope_parameters":{"sliding_attention":{"rope_type":"linear"}})");
  refused("'rope_theta' of config.json's rope_parameters of sliding_attention is 0.5; a number above 1",
          R"(,"rope_parameters":{"sliding_attention":{"rope_theta":0.5}})");
  refused("'layer_types' of config.json has 1 entries", R"(,"layer_types":["full_attention"])");
  refused("head dimension is 7; it must be even", R"(,"global_head_dim":7)");
  refused("head dimension of layers with a window is 2048", R"(,"head_dim":2048)");
  refused("head count 4 in layer 5 is no multiple of its key/value head count 3", R"(,"num_global_key_value_heads":3)");
}

// The form of E2B and E4B: the last layers read the keys and values of the last layer of their kind that has them.
TEST(Gemma4, LayersMayReadTheKeysOfOthersAndHaveInputsOfTheirOwn) {
  const auto config_of = [](const std::string& extra) {
    return read_hf_config(gemma4_config(R"(,"attention_k_eq_v":false,"hidden_size_per_layer_input":12)" + extra), "");
  };
  const ModelConfig config = config_of(R"(,"num_kv_shared_layers":2,"use_double_wide_mlp":true)");
  for (uint32_t n = 0; n < 6; ++n) EXPECT_EQ(config.kv_layer_of(n), n);
  EXPECT_EQ(config.kv_layer_of(6), 4u);
  EXPECT_EQ(config.kv_layer_of(7), 5u);
  EXPECT_EQ(config.layer_ffn, (std::vector<uint32_t>{48, 48, 48, 48, 48, 48, 96, 96}));
  EXPECT_TRUE(config.values_of_keys.empty() && config.layer_kv_heads.empty());
  EXPECT_EQ(config.layer_inputs, 12u);
  EXPECT_TRUE(layer_specs(config)[0].own_kv && layer_specs(config)[0].layer_input);
  EXPECT_FALSE(layer_specs(config)[6].own_kv);
  for (const RequiredTensor& tensor : required_tensors(config)) {
    EXPECT_NE(tensor.name, "blk.6.attn_k");
    if (tensor.name == "per_layer_token_embd") {
      EXPECT_EQ(tensor.cols, 8u * 12);
    }
  }
  expect_error("has 8 layers without keys and values of their own; fewer than its 8",
               [&] { config_of(R"(,"num_kv_shared_layers":8)"); });
  expect_error("Layer 5 of the model has no keys and values, and no layer that sees the whole text before it has any",
               [&] { config_of(R"(,"num_kv_shared_layers":3)"); });
  expect_error("'vocab_size_per_layer_input' of config.json is 7; only 10",
               [&] { config_of(R"(,"vocab_size_per_layer_input":7)"); });
}

// The form of 26B-A4B.
TEST(Gemma4, ExpertsStandBesideTheFeedForward) {
  const auto config_of = [](const std::string& extra) {
    return read_hf_config(gemma4_config(R"(,"enable_moe_block":true,"num_experts":6,"top_k_experts":2)" + extra), "");
  };
  const ModelConfig config = config_of(R"(,"moe_intermediate_size":16)");
  EXPECT_EQ(layer_specs(config)[3].feed_forward, FeedForward::both);
  EXPECT_TRUE(config.has_experts_beside);
  EXPECT_EQ(config.expert_ffn, 16u);
  size_t found = 0;
  for (const RequiredTensor& tensor : required_tensors(config)) {
    if (tensor.name == "blk.3.ffn_gate" || tensor.name == "blk.3.ffn_down.5" ||
        tensor.name == "blk.3.post_ffw_norm_2" || tensor.name == "blk.3.ffn_down_exps.scale" ||
        tensor.name == "blk.3.ffn_gate_inp.scale")
      ++found;
  }
  EXPECT_EQ(found, 5u);
  expect_error("'moe_intermediate_size'", [&] { config_of(""); });
  expect_error("number of experts that a token uses is 7; 1 to 6", [&] {
    read_hf_config(gemma4_config(R"(,"enable_moe_block":true,"num_experts":6,"top_k_experts":7,)"
                                 R"("moe_intermediate_size":16)"),
                   "");
  });
}

class Gemma4Gguf : public ::testing::Test {
 protected:
  Gemma4Gguf() { random_.architecture = "gemma4", random_.layers = 4; }

  ModelFile open(const test::GgufBuilder& builder) { return ModelFile::open(folder_.write("m.gguf", builder.build())); }
  void refused(const char* message, const test::GgufBuilder& builder) {
    expect_error(message, [&] { open(builder); });
  }

  TempFolder folder_;
  test::RandomModel random_;
};

TEST_F(Gemma4Gguf, HasTheLayersOfItsLists) {
  const ModelFile file = open(random_.builder());
  const ModelConfig& config = file.config();
  EXPECT_EQ(config.windows, (std::vector<uint32_t>{9, 0, 9, 0}));
  EXPECT_EQ(config.turns_locally, (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(config.values_of_keys, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(config.head_dim_of(0), 8u);
  EXPECT_EQ(config.head_dim_of(1), 16u);
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::proportional);
  EXPECT_EQ(config.rope_scaling.turned_pairs, 2u);
  EXPECT_NE(file.find("blk.1.layer_output_scale"), nullptr);
  // A file may have values of their own in all layers.
  random_.type = TensorType::f32;
  test::GgufBuilder all = random_.builder();
  all.zeros("blk.1.attn_v.weight", {64, 32}).zeros("blk.3.attn_v.weight", {64, 32});
  EXPECT_TRUE(open(all).config().values_of_keys.empty());
}

TEST_F(Gemma4Gguf, BadFilesAreRefusedByName) {
  const auto builder = [&] { return random_.builder(); };
  const std::string pattern = "gemma4.attention.sliding_window_pattern";
  refused("'gemma4.attention.sliding_window_pattern' has 0 entries; the model has 4 layers",
          builder().without(pattern));
  refused("'gemma4.attention.sliding_window_pattern' has 2 entries",
          builder().without(pattern).array(pattern, GgufType::boolean, 2, std::string("\1\0", 2)));
  refused("'gemma4.attention.sliding_window' is 0",
          builder().without("gemma4.attention.sliding_window").value<uint32_t>("gemma4.attention.sliding_window", 0));
  refused("The tensor 'rope_freqs.weight' is missing", builder().without_tensor("rope_freqs.weight"));
  refused("first some of 1, then some of 1e30",
          builder().without_tensor("rope_freqs.weight").tensor("rope_freqs.weight", {8}, TensorType::f32, [] {
            std::string data;
            for (int i = 0; i < 8; ++i) data += test::le(i < 2 ? 1.0f : 4.0f);
            return data;
          }()));
  refused(
      "'gemma4.attention.value_length_swa' is 16; only 'gemma4.attention.key_length_swa', 8, is supported",
      builder().without("gemma4.attention.value_length_swa").value<uint32_t>("gemma4.attention.value_length_swa", 16));
  refused("'gemma4.rope.freq_base_swa' is 0",
          builder().without("gemma4.rope.freq_base_swa").value<float>("gemma4.rope.freq_base_swa", 0));
  refused("The tensor 'blk.2.layer_output_scale' is missing",
          builder().without_tensor("blk.2.layer_output_scale.weight"));
  random_.layer_inputs = 8, random_.shared_kv = 1;
  refused("The tensor 'per_layer_token_embd' is missing", builder().without_tensor("per_layer_token_embd.weight"));
  refused("The tensor 'blk.3.proj' is missing", builder().without_tensor("blk.3.proj.weight"));
  refused("The tensor 'blk.2.inp_gate' has the shape [9, 64]; [8, 64] is expected",
          builder().without_tensor("blk.2.inp_gate.weight").zeros("blk.2.inp_gate.weight", {64, 9}));
  EXPECT_NO_THROW(open(builder().zeros("blk.3.attn_k.weight", {64, 32}))) << "that nothing reads";
  random_.layer_inputs = random_.shared_kv = 0;
  random_.experts_beside = true;
  for (const char* name : {"ffn_gate_inp.scale", "ffn_down_exps.scale"}) {
    refused(("The tensor 'blk.1." + std::string(name) + "' is missing").c_str(),
            builder().without_tensor("blk.1." + std::string(name)));
  }
  refused("The tensor 'blk.1.post_ffw_norm_1' is missing", builder().without_tensor("blk.1.post_ffw_norm_1.weight"));
  refused("The tensor 'blk.1.ffn_gate' is missing", builder().without_tensor("blk.1.ffn_gate.weight"));
  random_.experts_beside = false;
  refused("The tensor 'blk.2.attn_v' is missing", builder().without_tensor("blk.2.attn_v.weight"));
  refused("The tensor 'blk.1.attn_k_norm'",
          builder().without_tensor("blk.1.attn_k_norm.weight").zeros("blk.1.attn_k_norm.weight", {8}));
}

}  // namespace
}  // namespace canopy

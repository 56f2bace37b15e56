// Gemma in files: what its configurations leave out, both forms of its rotations, its layers, and what is refused.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor_names.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/random_model.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TempFolder;

std::string gemma_config(const std::string& extra = "", const std::string& name = "Gemma3ForCausalLM") {
  return R"({"architectures":[")" + name + R"("],"hidden_size":64,"num_hidden_layers":7,"num_attention_heads":2,)" +
         R"("num_key_value_heads":1,"head_dim":16,"intermediate_size":32,"vocab_size":10,)" +
         R"("max_position_embeddings":128,"sliding_window":8)" + extra + "}";
}

TEST(Gemma, LayersOfTheThirdSeeTheWholeTextInEachSixth) {
  const ModelConfig config = read_hf_config(gemma_config(), "");
  EXPECT_EQ(config.architecture, "gemma3");
  EXPECT_EQ(config.windows, (std::vector<uint32_t>{8, 8, 8, 8, 8, 0, 8}));
  EXPECT_EQ(config.turns_locally, (std::vector<bool>{true, true, true, true, true, false, true}));
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.local_rope_theta, 1e4);
  EXPECT_EQ(config.query_width, 256);
  EXPECT_EQ(config.embedding_scale, 8.0f);
  EXPECT_EQ(config.attention_softcap, 0);
  EXPECT_TRUE(config.tied_head && config.has_trained_form);
  const std::vector<LayerSpec> specs = layer_specs(config);
  EXPECT_TRUE(specs[0].post_norms && specs[0].gelu && specs[0].qk_norm && specs[0].local_rope);
  EXPECT_FALSE(specs[5].local_rope);
  const ModelConfig other = read_hf_config(gemma_config(R"(,"sliding_window_pattern":2)"), "");
  EXPECT_EQ(other.windows, (std::vector<uint32_t>{8, 0, 8, 0, 8, 0, 8}));
  // A window as long as the context cuts nothing, and its layers turn as they did.
  const ModelConfig wide = read_hf_config(gemma_config(R"(,"sliding_window":128)"), "");
  EXPECT_TRUE(wide.windows.empty());
  EXPECT_TRUE(layer_specs(wide)[0].local_rope);
}

TEST(Gemma, NewerFilesHaveARotationForEachKindOfLayer) {
  const ModelConfig config = read_hf_config(
      gemma_config(R"(,"rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":2000000.0},)"
                   R"("sliding_attention":{"rope_type":"default","rope_theta":30000.0}})"),
      "");
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(config.rope_scaling.factor, 8);
  EXPECT_EQ(config.rope_theta, 2e6);
  EXPECT_EQ(config.local_rope_theta, 3e4);
  EXPECT_EQ(local_rope_frequencies(config)[1], std::pow(3e4, -2.0 / 16));
  const ModelConfig empty =
      read_hf_config(gemma_config(R"(,"rope_parameters":{"full_attention":null,"sliding_attention":null})"), "");
  EXPECT_EQ(empty.rope_theta, 1e6);
  EXPECT_EQ(empty.local_rope_theta, 1e4);
  expect_error("'rope_type' of config.json's rope_parameters of sliding_attention is 'yarn'; default is supported", [] {
    read_hf_config(gemma_config(R"(,"rope_parameters":{"full_attention":{},"sliding_attention":{"rope_type":"yarn"}})"),
                   "");
  });
}

// The text part of google/gemma-3-4b-it, in full.
TEST(Gemma, ModelsThatSeePicturesLeaveOutWhatIsUsual) {
  const ModelConfig config = read_hf_config(
      R"({"architectures":["Gemma3ForConditionalGeneration"],"eos_token_id":[1,106],"text_config":{"hidden_size":2560,)"
      R"("intermediate_size":10240,"model_type":"gemma3_text","num_hidden_layers":34,"rope_scaling":{"factor":8.0,)"
      R"("rope_type":"linear"},"sliding_window":1024}})",
      "");
  EXPECT_EQ(config.heads, 8u);
  EXPECT_EQ(config.kv_heads, 4u);
  EXPECT_EQ(config.head_dim, 256u);
  EXPECT_EQ(config.vocab, 262208u);
  EXPECT_EQ(config.max_context, 131072u);
  EXPECT_EQ(config.windows[4], 1024u);
  EXPECT_EQ(config.windows[5], 0u);
  EXPECT_EQ(config.eos, (std::vector<uint32_t>{1, 106}));
}

TEST(Gemma, TheSecondHasCapsAndAWindowInEveryOtherLayer) {
  const ModelConfig config = read_hf_config(gemma_config("", "Gemma2ForCausalLM"), "");
  EXPECT_EQ(config.windows, (std::vector<uint32_t>{8, 0, 8, 0, 8, 0, 8}));
  EXPECT_EQ(config.attention_softcap, 50);
  EXPECT_EQ(config.logit_softcap, 30);
  EXPECT_FALSE(layer_specs(config)[0].local_rope || layer_specs(config)[0].qk_norm);
  const ModelConfig without =
      read_hf_config(gemma_config(R"(,"attn_logit_softcapping":null)", "Gemma2ForCausalLM"), "");
  EXPECT_EQ(without.attention_softcap, 0);
}

TEST(Gemma, WhatNoneHasIsRefused) {
  const auto refused = [](const char* message, const std::string& extra) {
    expect_error(message, [&] { read_hf_config(gemma_config(extra), ""); });
  };
  refused("'hidden_activation' of config.json is 'relu'; only gelu_pytorch_tanh", R"(,"hidden_activation":"relu")");
  refused("it cannot write one", R"(,"use_bidirectional_attention":true)");
  refused("query_pre_attn_scalar is -1; a number above 0", R"(,"query_pre_attn_scalar":-1)");
  refused("final_logit_softcapping is -2; a number above 0", R"(,"final_logit_softcapping":-2)");
  refused("attn_logit_softcapping is -2; a number above 0", R"(,"attn_logit_softcapping":-2)");
  refused("'rope_local_base_freq' of config.json is 0.0; a number above 1", R"(,"rope_local_base_freq":0)");
  refused("'sliding_window_pattern' of config.json is 0", R"(,"sliding_window_pattern":0)");
  refused("'layer_types' of config.json has 1 entries", R"(,"layer_types":["full_attention"])");
  refused("'layer_types' of config.json holds", R"(,"layer_types":["x","x","x","x","x","x","x"])");
}

TEST(Gemma, PostNormsOfAGgufFile) {
  const TempFolder folder;
  test::RandomModel random;
  random.architecture = "gemma3";
  random.layers = 3;
  const ModelFile file = ModelFile::open(folder.write("m.gguf", random.build()));
  EXPECT_EQ(file.config().windows, (std::vector<uint32_t>{9, 0, 9}));
  EXPECT_EQ(file.config().query_width, 0);
  EXPECT_FALSE(file.config().has_trained_form);
  EXPECT_NE(file.find("blk.1.attn_post_norm"), nullptr);
  for (const auto& [name, canonical] : {std::pair{"post_attention_norm", "attn_post_norm"},
                                        {"post_ffw_norm", "ffn_post_norm"},
                                        {"ffn_norm", "ffn_norm"}}) {
    expect_error("The tensor 'blk.1." + std::string(canonical) + "' is missing", [&] {
      const std::string tensor = std::string("blk.1.") + name + ".weight";
      ModelFile::open(folder.write("m.gguf", random.builder().without_tensor(tensor).build()));
    });
  }
}

TEST(Gemma, WindowsOfAGgufFileMayBeAListOrNone) {
  const TempFolder folder;
  test::RandomModel random;
  random.architecture = "gemma3";
  random.layers = 3;
  const std::string key = "gemma3.attention.sliding_window_pattern";
  const auto open = [&](const test::GgufBuilder& builder) {
    return ModelFile::open(folder.write("m.gguf", builder.build())).config();
  };
  const auto list = [&](const std::string& bytes) {
    return open(random.builder().without(key).array(key, GgufType::boolean, bytes.size(), bytes));
  };
  EXPECT_EQ(list(std::string("\0\1\0", 3)).windows, (std::vector<uint32_t>{0, 9, 0}));
  expect_error("'gemma3.attention.sliding_window_pattern' has 2 entries; the model has 3 layers",
               [&] { list(std::string("\0\1", 2)); });
  expect_error("'gemma3.attention.sliding_window_pattern' is 0",
               [&] { open(random.builder().without(key).value<uint32_t>(key, 0)); });
  expect_error("local rope theta is 0; a number above 1",
               [&] { open(random.builder().value<float>("gemma3.rope.freq_base_swa", 0)); });
  const ModelConfig none = open(random.builder().without("gemma3.attention.sliding_window"));
  EXPECT_TRUE(none.windows.empty() && none.turns_locally.empty());
}

// The largest of each generation, which GGUF files do not tell from others but by its layers.
TEST(Gemma, TheLargestDividesItsQueriesByAnotherWidth) {
  const TempFolder folder;
  for (const auto& [architecture, layers] : {std::pair{"gemma3", 62u}, {"gemma2", 46u}}) {
    test::RandomModel random;
    random.architecture = architecture;
    random.layers = layers;
    random.ffn = 32;
    EXPECT_EQ(ModelFile::open(folder.write("m.gguf", random.build())).config().query_width, 16);
  }
}

TEST(Gemma, NamesOfNormsDependOnTheArchitecture) {
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.2.post_attention_layernorm.weight"), "blk.2.ffn_norm");
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.2.post_attention_layernorm.weight", true),
            "blk.2.attn_post_norm");
  EXPECT_EQ(canonical_name_from_hugging_face("model.language_model.layers.2.post_feedforward_layernorm.weight", true),
            "blk.2.ffn_post_norm");
  EXPECT_EQ(canonical_name_from_hugging_face("language_model.model.layers.2.pre_feedforward_layernorm.weight", true),
            "blk.2.ffn_norm");
  EXPECT_EQ(canonical_name_from_gguf("blk.7.post_attention_norm.weight", true), "blk.7.attn_post_norm");
}

}  // namespace
}  // namespace canopy

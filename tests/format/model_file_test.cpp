#include "engine/format/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <ostream>

#include "engine/base/error.h"
#include "engine/format/tensor_names.h"
#include "tests/base/expect_error.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::expect_error;
using test::GgufBuilder;
using test::SafetensorsBuilder;
using test::TempFolder;
using test::tiny_config;
using test::tiny_gguf;
using test::tiny_safetensors;

TEST(ModelFile, OpensAGguf) {
  const TempFolder folder;
  const ModelFile model = ModelFile::open(folder.write("m.gguf", tiny_gguf().build()));
  const ModelConfig& c = model.config();
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.name, "tiny");
  EXPECT_EQ(c.head_dim, 4u);
  EXPECT_EQ(c.rope_layout, RopeLayout::interleaved);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(c.quantization, "F32");
  EXPECT_EQ(c.parameters, 80u + 8 + 8 + 64 + 32 + 32 + 64 + 8 + 3 * 128);
  EXPECT_EQ(c.eos, std::vector<uint32_t>{9});
  EXPECT_EQ(model.tokenizer().tokens.size(), 10u);
  EXPECT_EQ(model.tokenizer().pre, "smollm");
  EXPECT_EQ(model.require("blk.0.ffn_down", 8, 16).bytes.size(), 512u);
  EXPECT_EQ(model.find("output"), nullptr);
  EXPECT_NO_THROW(model.check_unchanged());
}

TEST(ModelFile, OpensAQwen3Gguf) {
  const TempFolder folder;
  const ModelFile model = ModelFile::open(folder.write("m.gguf", tiny_gguf("qwen3").build()));
  EXPECT_TRUE(model.config().has_qk_norm);
  EXPECT_EQ(model.config().rope_layout, RopeLayout::half);
  EXPECT_EQ(model.require("blk.0.attn_q_norm", 1, 4).rank, 1u);
}

TEST(ModelFile, OpensAQwen2GgufAndFolder) {
  const TempFolder folder;
  const ModelFile gguf = ModelFile::open(folder.write("m.gguf", tiny_gguf("qwen2").build()));
  EXPECT_TRUE(gguf.config().has_qkv_bias);
  EXPECT_EQ(gguf.config().rope_layout, RopeLayout::half);
  std::string config = tiny_config();
  folder.write("config.json", config.replace(config.find("Llama"), 5, "Qwen2"));
  const std::string attention = "model.layers.0.self_attn.";
  SafetensorsBuilder weights = tiny_safetensors();
  weights.zeros(attention + "q_proj.bias", {8}).zeros(attention + "k_proj.bias", {4});
  weights.zeros(attention + "v_proj.bias", {4});
  folder.write("model.safetensors", weights.build());
  const ModelFile model = ModelFile::open(folder.path());
  for (const ModelFile* file : {&gguf, &model}) {
    EXPECT_NO_THROW(file->require("blk.0.attn_q.bias", 1, 8));
    EXPECT_NO_THROW(file->require("blk.0.attn_v.bias", 1, 4));
  }
}

/// The matrices of a phi3 GGUF in the place of those of llama; all elements are their row's number.
GgufBuilder tiny_phi3() {
  GgufBuilder b = tiny_gguf("phi3");
  for (const char* name : {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"}) {
    b.without_tensor(std::string("blk.0.") + name + ".weight");
  }
  const auto numbered = [&](const char* name, uint64_t rows) {
    std::string data;
    for (uint64_t i = 0; i < rows * 8; ++i) data += test::le(static_cast<float>(i / 8));
    b.tensor(name, {8, rows}, TensorType::f32, data);
  };
  numbered("blk.0.attn_qkv.weight", 16);
  numbered("blk.0.ffn_up.weight", 32);
  return b;
}

TEST(ModelFile, TakesFusedMatricesApart) {
  const TempFolder folder;
  const ModelFile model = ModelFile::open(folder.write("m.gguf", tiny_phi3().build()));
  const auto first_of = [&](const char* name, uint64_t rows) {
    const TensorView& tensor = model.require(name, rows, 8);
    EXPECT_EQ(tensor.bytes.size(), rows * 8 * 4);
    float value = 0;
    std::memcpy(&value, tensor.bytes.data(), sizeof value);
    return value;
  };
  EXPECT_EQ(first_of("blk.0.attn_q", 8), 0);
  EXPECT_EQ(first_of("blk.0.attn_k", 4), 8);
  EXPECT_EQ(first_of("blk.0.attn_v", 4), 12);
  EXPECT_EQ(first_of("blk.0.ffn_gate", 16), 0);
  EXPECT_EQ(first_of("blk.0.ffn_up", 16), 16);
}

/// tiny_gguf with queries, keys and values of its layer in one tensor, which a converter may be told to make.
GgufBuilder with_joined_heads(GgufBuilder builder, const std::string& suffix) {
  std::string data;
  uint64_t rows = 0;
  GgufBuilder::Tensor joined;
  for (const char* part : {"q", "k", "v"}) {
    const std::string name = std::string("blk.0.attn_") + part + suffix;
    const auto found = std::ranges::find(builder.tensors, name, &GgufBuilder::Tensor::name);
    EXPECT_NE(found, builder.tensors.end()) << name;
    joined = *found;
    // Values that tell the parts apart.
    for (uint64_t i = 0; i < found->data.size() / 4; ++i) data += test::le(static_cast<float>(1000 * part[0] + i));
    rows += found->dimensions.back();
    builder.without_tensor(name);
  }
  joined.name = "blk.0.attn_qkv" + suffix;
  joined.dimensions.back() = rows;
  joined.data = data;
  builder.tensors.push_back(joined);
  return builder;
}

TEST(ModelFile, TakesJoinedHeadsOfAnyArchitectureApart) {
  const TempFolder folder;
  GgufBuilder builder = with_joined_heads(with_joined_heads(tiny_gguf("qwen2"), ".weight"), ".bias");
  const ModelFile model = ModelFile::open(folder.write("m.gguf", builder.build()));
  EXPECT_EQ(model.find("blk.0.attn_qkv"), nullptr);
  const auto first = [&](const char* name, uint64_t rows, uint64_t cols) {
    float value = 0;
    std::memcpy(&value, model.require(name, rows, cols).bytes.data(), sizeof(value));
    return value;
  };
  EXPECT_EQ(first("blk.0.attn_q", 8, 8), 1000 * 'q');
  EXPECT_EQ(first("blk.0.attn_k", 4, 8), 1000 * 'k');
  EXPECT_EQ(first("blk.0.attn_v.bias", 1, 4), 1000 * 'v');
  builder.tensors.back().dimensions = {15};
  builder.tensors.back().data.resize(60);
  expect_error("'blk.0.attn_qkv.bias' has the shape [15]; [16] is expected",
               [&] { ModelFile::open(folder.write("m.gguf", builder.build())); });
}

TEST(ModelFile, OfAFileThatSeesPicturesTheTextPartIsUsedAndThatIsSaid) {
  const TempFolder folder;
  EXPECT_TRUE(ModelFile::open(folder.write("t.gguf", tiny_gguf().build())).config().notes.empty());
  GgufBuilder b = tiny_gguf();
  b.zeros("v.patch_embd.weight", {14, 14, 3, 8}).zeros("v.blk.0.attn_q.bias", {64}).zeros("mm.0.weight", {64, 64});
  b.zeros("a.blk.0.ln1.weight", {64}).value<uint32_t>("llama.vision.block_count", 1);
  const ModelFile model = ModelFile::open(folder.write("m.gguf", b.build()));
  ASSERT_EQ(model.config().notes.size(), 1u);
  EXPECT_NE(model.config().notes.front().find("for text alone"), std::string::npos);
}

TEST(ModelFile, FoldersAreSpokenOfByTheirOwnNames) {
  const TempFolder folder;
  const auto refused = [&](const char* message, const std::string& config, SafetensorsBuilder weights) {
    folder.write("config.json", config);
    folder.write("model.safetensors", weights.build());
    expect_error(message, [&] { ModelFile::open(folder.path()); });
  };
  const auto untied = [] {
    std::string config = tiny_config();
    return config.replace(config.find("\"tie_word_embeddings\":true"), 26, "\"tie_word_embeddings\":false");
  }();
  refused("The tensor 'lm_head.weight' is missing; its shape should be [10, 8].", untied, tiny_safetensors());
  const std::string layer = "model.layers.1.";
  refused("The tensor 'model.layers.1.self_attn.q_proj.weight' has no place in the architecture llama", tiny_config(),
          tiny_safetensors().zeros(layer + "self_attn.q_proj.weight", {8, 8}));
  refused("two tensors that stand for 'output_norm', 'model.norm.weight' and '_orig_mod.model.norm.weight'",
          tiny_config(), tiny_safetensors().zeros("_orig_mod.model.norm.weight", {8}));
  refused("'model.layers.0.self_attn.q_proj.lora_A.weight' belongs to a LoRA adapter that was not merged",
          tiny_config(), tiny_safetensors().zeros("model.layers.0.self_attn.q_proj.lora_A.weight", {2, 8}));
  std::string more = tiny_config();
  more.replace(more.find("\"num_hidden_layers\":1"), 21, "\"num_hidden_layers\":2");
  refused("The tensor 'model.layers.1.input_layernorm.weight' is missing", more, tiny_safetensors());
  refused("The folder has 'student.embed_tokens.weight': a tool has left a prefix", tiny_config(),
          SafetensorsBuilder().zeros("student.embed_tokens.weight", {10, 8}));
}

TEST(ModelFile, NamesThatToolsHaveWrappedAreRead) {
  EXPECT_EQ(without_wrappers("base_model.model.model.layers.0.self_attn.q_proj.base_layer.weight"),
            "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(without_wrappers("module._orig_mod.model.layers.0._fsdp_wrapped_module.mlp.up_proj.weight"),
            "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(without_wrappers("model.model.norm.weight"), "model.norm.weight");
  EXPECT_EQ(without_wrappers("model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(without_wrappers("model.language_model.layers.0.mlp.gate.weight"),
            "model.language_model.layers.0.mlp.gate.weight");
  EXPECT_EQ(canonical_name_from_hugging_face("_orig_mod.model.layers.3.self_attn.q_proj.bias"), "blk.3.attn_q.bias");
  EXPECT_EQ(canonical_name_from_hugging_face("layers.3.mlp.experts.7.up_proj.weight"), "blk.3.ffn_up.7");
}

TEST(ModelFile, NamesOfFoldersGoBothWays) {
  FolderNames plain, gemma, phi, hybrid, gpt_oss;
  gemma.has_post_norms = phi.has_fused_tensors = gpt_oss.is_gpt_oss = true;
  hybrid.recurrent = {true, false};
  const auto both = [](const char* theirs, const FolderNames& names) {
    const std::string ours = canonical_name_from_hugging_face(theirs, names.has_post_norms);
    EXPECT_EQ(hugging_face_name(ours, names), theirs);
  };
  for (const char* name : {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
                           "model.layers.12.input_layernorm.weight", "model.layers.0.self_attn.k_proj.bias",
                           "model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.up_proj.weight",
                           "model.layers.0.mlp.gate.weight", "model.layers.0.mlp.experts.7.down_proj.weight"})
    both(name, plain);
  for (const char* norm : {"post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"})
    both((std::string("model.layers.0.") + norm + ".weight").c_str(), gemma);
  both("model.layers.0.mlp.gate_up_proj.weight", phi);
  both("model.layers.0.self_attn.qkv_proj.weight", phi);
  both("model.layers.0.linear_attn.in_proj_qkv.weight", hybrid);
  both("model.layers.0.linear_attn.dt_bias", hybrid);
  both("model.layers.0.mlp.router.bias", gpt_oss);
  both("model.layers.0.mlp.experts.gate_up_proj_blocks", gpt_oss);
  EXPECT_EQ(hugging_face_name("unknown", plain), "unknown");
}

TEST(ModelFile, FaultsOfFusedMatricesAreNamed) {
  const TempFolder folder;
  const auto refused = [&](const char* message, GgufBuilder& b) {
    expect_error(message, [&] { ModelFile::open(folder.write("m.gguf", b.build())); });
  };
  GgufBuilder missing = tiny_phi3();
  refused("The tensor 'blk.0.attn_qkv' is missing; its shape should be [16, 8].",
          missing.without_tensor("blk.0.attn_qkv.weight"));
  GgufBuilder small = tiny_phi3();
  small.without_tensor("blk.0.ffn_up.weight");
  refused("The tensor 'blk.0.ffn_up' has the shape [16, 8]; [32, 8] is expected.",
          small.zeros("blk.0.ffn_up.weight", {8, 16}));
  GgufBuilder twice = tiny_phi3();
  refused("There are two tensors that stand for 'blk.0.attn_k'.", twice.zeros("blk.0.attn_k.weight", {8, 4}));
}

TEST(ModelFile, ReadsYarnAndLongRopeOfAGguf) {
  const TempFolder folder;
  const auto scaling_of = [&](GgufBuilder& b) {
    return ModelFile::open(folder.write("m.gguf", b.build())).config().rope_scaling;
  };
  const std::string key = "llama.rope.scaling.";
  GgufBuilder yarn = tiny_gguf();
  yarn.text(key + "type", "yarn").value<float>(key + "factor", 4.0f);
  yarn.value<uint32_t>(key + "original_context_length", 16).value<float>(key + "yarn_beta_fast", 8.0f);
  const RopeScaling found = scaling_of(yarn);
  EXPECT_EQ(found.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(found.factor, 4);
  EXPECT_EQ(found.original_context, 16u);
  EXPECT_EQ(found.beta_fast, 8);
  EXPECT_EQ(found.magnitude, yarn_magnitude(4));
  yarn.value<float>(key + "attn_factor", 0.5f);
  EXPECT_EQ(scaling_of(yarn).magnitude, yarn_magnitude(4) / 2);
  yarn.value<float>(key + "yarn_ext_factor", 0.5f);
  expect_error("The metadata 'llama.rope.scaling.yarn_ext_factor' is 0.5", [&] { scaling_of(yarn); });

  GgufBuilder longrope = tiny_gguf();
  longrope.value<uint32_t>(key + "original_context_length", 16).value<float>(key + "attn_factor", 1.25f);
  longrope.tensor("rope_factors_long.weight", {2}, TensorType::f32, test::le(2.0f) + test::le(3.0f));
  expect_error("has 0 rope frequency factors; 2 are expected", [&] { scaling_of(longrope); });
  longrope.tensor("rope_factors_short.weight", {2}, TensorType::f32, test::le(1.0f) + test::le(1.5f));
  const RopeScaling both = scaling_of(longrope);
  EXPECT_EQ(both.kind, RopeScaling::Kind::longrope);
  EXPECT_EQ(both.divisors, (std::vector<float>{1, 1.5f}));
  EXPECT_EQ(both.long_divisors, (std::vector<float>{2, 3}));
  EXPECT_EQ(both.magnitude, 1.25);
  EXPECT_EQ(scaling_of(longrope.text(key + "type", "su")).kind, RopeScaling::Kind::longrope) << "its older name";
  expect_error("supported are none, linear, dynamic, yarn, longrope and", [&] {
    GgufBuilder b = tiny_gguf();
    scaling_of(b.text(key + "type", "ntk"));
  });
  GgufBuilder dynamic = tiny_gguf();
  dynamic.text(key + "type", "dynamic").value<uint32_t>(key + "original_context_length", 16);
  const ModelConfig config = ModelFile::open(folder.write("m.gguf", dynamic.build())).config();
  EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::none);
  EXPECT_EQ(config.max_context, 16u);
  EXPECT_EQ(config.notes.size(), 1u);
}

TEST(ModelFile, ReadsTheGrowingQueriesOfAGguf) {
  const TempFolder folder;
  const auto config_of = [&](GgufBuilder& b) { return ModelFile::open(folder.write("m.gguf", b.build())).config(); };
  const std::string key = "mistral3.rope.scaling.";
  GgufBuilder b = tiny_gguf("mistral3");
  EXPECT_EQ(config_of(b).rope_scaling.query_growth, 0);
  EXPECT_EQ(config_of(b).rope_layout, RopeLayout::interleaved);
  b.text(key + "type", "yarn").value<float>(key + "factor", 4.0f).value<float>(key + "yarn_log_multiplier", 1.0f);
  EXPECT_EQ(config_of(b).rope_scaling.magnitude, 1) << "as config.json's 'mscale_all_dim'";
  b.value<float>("mistral3.attention.temperature_scale", 0.25f);
  expect_error("'mistral3.rope.scaling.original_context_length'", [&] { config_of(b); });
  GgufBuilder short_step = b, other_step = b, shrinking = tiny_gguf("mistral3");
  b.value<uint32_t>(key + "original_context_length", 16);
  const RopeScaling scaling = config_of(b).rope_scaling;
  EXPECT_EQ(scaling.query_growth, 0.25);
  EXPECT_EQ(scaling.original_context, 16u);
  EXPECT_EQ(scaling.magnitude, 1);
  short_step.value<uint32_t>(key + "original_context_length", 0);
  expect_error("original_max_position_embeddings is 0; 1 to", [&] { config_of(short_step); });
  other_step.value<uint32_t>(key + "original_context_length", 16);
  other_step.value<uint32_t>("mistral3.attention.temperature_length", 8);
  expect_error("The metadata 'mistral3.attention.temperature_length' is 8; only the original context, 16",
               [&] { config_of(other_step); });
  shrinking.value<uint32_t>(key + "original_context_length", 16);
  shrinking.value<float>("mistral3.attention.temperature_scale", -0.5f);
  expect_error("growth of queries (llama_4_scaling_beta) is -0.5", [&] { config_of(shrinking); });
}

TEST(ModelFile, AWindowOfAGgufIsOfAllLayersWhereTheArchitectureSaysSo) {
  const TempFolder folder;
  const auto config_of = [&](const std::string& architecture, uint32_t window) {
    GgufBuilder b = tiny_gguf(architecture);
    b.value<uint32_t>(architecture + ".attention.sliding_window", window);
    return ModelFile::open(folder.write("m.gguf", b.build())).config();
  };
  const uint32_t context = config_of("llama", 0).max_context;
  EXPECT_EQ(config_of("llama", 32).windows, (std::vector<uint32_t>{32})) << "it has one layer";
  EXPECT_EQ(config_of("llama", 32).max_context, context);
  EXPECT_TRUE(config_of("llama", 0).windows.empty());
  EXPECT_TRUE(config_of("llama", context).windows.empty()) << "no text is longer";
  EXPECT_TRUE(config_of("qwen3", 32).windows.empty());
  EXPECT_EQ(config_of("qwen3", 32).max_context, 32u) << "where the windows differ, nobody knows the layers";
}

TEST(ModelFile, AFactorWithoutAKindScalesLinearly) {
  const TempFolder folder;
  const auto scaling_of = [&](const std::string& key, float factor) {
    GgufBuilder b = tiny_gguf();
    b.value<float>("llama." + key, factor);
    return ModelFile::open(folder.write("m.gguf", b.build())).config().rope_scaling;
  };
  for (const char* key : {"rope.scaling.factor", "rope.scale_linear"}) {
    EXPECT_EQ(scaling_of(key, 4).kind, RopeScaling::Kind::linear);
    EXPECT_EQ(scaling_of(key, 4).factor, 4);
    EXPECT_EQ(scaling_of(key, 1).kind, RopeScaling::Kind::none);
    EXPECT_EQ(scaling_of(key, 0).kind, RopeScaling::Kind::none);
  }
}

TEST(ModelFile, FaultsOfBiasesAreNamed) {
  const auto refused = [](const char* message, const char* name, uint64_t size) {
    SCOPED_TRACE(message);
    GgufBuilder b = tiny_gguf("qwen2");
    b.without_tensor(name);
    if (size > 0) b.zeros(name, {size});
    const TempFolder folder;
    const auto path = folder.write("m.gguf", b.build());
    expect_error(message, [&] { ModelFile::open(path); });
  };
  refused("The tensor 'blk.0.attn_k.bias' is missing; its shape should be [4].", "blk.0.attn_k.bias", 0);
  refused("The tensor 'blk.0.attn_v.bias' has the shape [8]; [4] is expected.", "blk.0.attn_v.bias", 8);
}

TEST(ModelFile, OpensAHuggingFaceFolderUnderTheSameNames) {
  const TempFolder folder;
  folder.write("config.json", tiny_config());
  const auto weights = folder.write("model.safetensors", tiny_safetensors().build());
  for (const auto& path : {folder.path(), weights, folder.path() / ""}) {
    const ModelFile model = ModelFile::open(path);
    EXPECT_EQ(model.config().name, folder.path().filename().string());
    EXPECT_EQ(model.config().rope_layout, RopeLayout::half);
    EXPECT_EQ(model.tensors().size(), 11u);
    EXPECT_NO_THROW(model.require("blk.0.attn_output", 8, 8));
  }
}

TEST(ModelFile, ReadsFrequencyFactorsOfLlama3) {
  const TempFolder folder;
  GgufBuilder b = tiny_gguf();
  b.tensor("rope_freqs.weight", {2}, TensorType::f32, test::le(1.0f) + test::le(8.0f));
  const ModelFile model = ModelFile::open(folder.write("m.gguf", b.build()));
  EXPECT_EQ(model.config().rope_scaling.kind, RopeScaling::Kind::factors);
  EXPECT_EQ(model.config().rope_scaling.divisors, (std::vector<float>{1, 8}));
}

TEST(ModelFile, AControlTokenThatEndsATurnIsAStopToken) {
  const TempFolder folder;
  GgufBuilder b = tiny_gguf();
  b.without("tokenizer.ggml.eos_token_id").value<uint32_t>("tokenizer.ggml.eos_token_id", 8);
  EXPECT_EQ(ModelFile::open(folder.write("m.gguf", b.build())).config().eos, (std::vector<uint32_t>{8, 9}));
}

// Older converters write 4294967295 or -1 where there is none.
TEST(ModelFile, IdsOfSpecialTokensThatNameNoneAreIgnoredWithAWarning) {
  const TempFolder folder;
  for (const char* name : {"bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask", "cls", "fim_pre",
                           "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix", "middle"}) {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    std::vector<std::string> warnings;
    set_log_sink([&](LogLevel, std::string_view text) { warnings.emplace_back(text); }, LogLevel::warning);
    GgufBuilder b = tiny_gguf();
    b.without(key).value<uint32_t>(key, UINT32_MAX);
    const ModelFile large = ModelFile::open(folder.write("m.gguf", b.build()));
    EXPECT_EQ(large.config().bos, std::string(name) == "bos" ? std::nullopt : std::optional(8u)) << key;
    EXPECT_EQ(large.config().eos, (std::vector<uint32_t>{9})) << key << ", by its name where not by its id";
    ASSERT_EQ(warnings.size(), 1u) << key;
    EXPECT_NE(warnings[0].find("'" + key + "' is 4294967295"), std::string::npos) << warnings[0];
    GgufBuilder negative = tiny_gguf();
    negative.without(key).value<int32_t>(key, -1);
    EXPECT_NO_THROW(ModelFile::open(folder.write("m.gguf", negative.build()))) << key;
    EXPECT_EQ(warnings.size(), 2u) << key;
    set_log_sink({});
  }
}

TEST(ModelFile, InAListOfIdsThoseThatNameATokenCount) {
  const TempFolder folder;
  GgufBuilder b = tiny_gguf();
  b.without("tokenizer.ggml.eos_token_id").numbers<uint32_t>("tokenizer.ggml.eos_token_id", {10, 7, UINT32_MAX});
  EXPECT_EQ(ModelFile::open(folder.write("m.gguf", b.build())).config().eos, (std::vector<uint32_t>{7, 9}));
}

TEST(ModelFile, TemplatesOfAFolderAreTakenAsTransformersTakesThem) {
  const TempFolder folder;
  folder.write("config.json", tiny_config());
  folder.write("model.safetensors", tiny_safetensors().build());
  const auto source = [&] { return ModelFile::open(folder.path()).tokenizer(); };
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "config"},
                                                              {"name": "tool_use", "template": "config tools"}]})");
  EXPECT_EQ(source().chat_template, "config");
  EXPECT_EQ(source().tool_template, "config tools");
  folder.write("tokenizer_config.json", R"({"chat_template": {"default": "config"}})");
  EXPECT_EQ(source().chat_template, "config");
  folder.write("chat_template.json", R"({"chat_template": "json"})");
  EXPECT_EQ(source().chat_template, "json");
  folder.write("chat_template.json",
               R"({"chat_template": {"default": "named", "tool_use": "named tools", "rag": "r"}})");
  EXPECT_EQ(source().chat_template, "named");
  EXPECT_EQ(source().tool_template, "named tools");
  folder.write("chat_template.json", R"({"chat_template": [{"name": "default", "template": "listed"}]})");
  EXPECT_EQ(source().chat_template, "listed");
  folder.write("chat_template.jinja", "jinja");
  EXPECT_EQ(source().chat_template, "jinja");
  folder.write("preprocessor_config.json", "{}");
  EXPECT_EQ(source().chat_template, "listed") << "of a processor the older file comes first";
  std::filesystem::create_directory(folder.path() / "additional_chat_templates");
  folder.write("additional_chat_templates/tool_use.jinja", "tools beside it");
  EXPECT_EQ(source().tool_template, "tools beside it");
  folder.write("chat_template.json", R"({"chat_template": 3})");
  expect_error("The chat template of chat_template.json is 3", source);
}

TEST(ModelFile, ATiedHeadIgnoresASpareOneAsTransformersDoes) {
  const TempFolder folder;
  folder.write("config.json", tiny_config());
  folder.write("model.safetensors", tiny_safetensors().zeros("lm_head.weight", {10, 8}).build());
  EXPECT_TRUE(ModelFile::open(folder.path()).config().tied_head);
}

TEST(ModelFile, ABiasOfZerosChangesNothing) {
  const TempFolder folder;
  folder.write("config.json", tiny_config());
  folder.write("model.safetensors", tiny_safetensors().zeros("model.layers.0.self_attn.q_proj.bias", {8}).build());
  EXPECT_NO_THROW(ModelFile::open(folder.path()));
}

TEST(ModelFile, NoticesChangesAfterOpening) {
  const TempFolder folder;
  const auto path = folder.write("m.gguf", tiny_gguf().build());
  const ModelFile model = ModelFile::open(path);
  std::filesystem::resize_file(path, 100);
  expect_error("now has 100", [&] { model.check_unchanged(); });
}

TEST(ModelFile, RefusesPathsThatAreNoModel) {
  const TempFolder folder;
  expect_error("does not exist", [&] { ModelFile::open(folder.path() / "missing.gguf"); });
  expect_error("The folder has no config.json", [&] { ModelFile::open(folder.path()); });
  expect_error("is empty", [&] { ModelFile::open(folder.write("e.gguf", "")); });
  expect_error("This is no GGUF file: it begins with 'PK",
               [&] { ModelFile::open(folder.write("m.bin", "PK\3\4....")); });
  folder.write("config.json", tiny_config());
  expect_error("has neither model.safetensors nor", [&] { ModelFile::open(folder.path()); });
  folder.write("config.json", tiny_config(R"(,"tie_word_embeddings":false)"));
  folder.write("model.safetensors", tiny_safetensors().build());
  expect_error("The tensor 'lm_head.weight' is missing; its shape should be [10, 8].",
               [&] { ModelFile::open(folder.path()); });
}

struct ModelCase {
  const char* name;
  const char* message;
  std::function<void(GgufBuilder&)> change;
};

void PrintTo(const ModelCase& c, std::ostream* out) {
  *out << c.name;
}

template <class T>
std::function<void(GgufBuilder&)> with_key(const char* key, T value) {
  return [key, value](GgufBuilder& b) { b.without(key).value<T>(key, value); };
}

const ModelCase model_cases[] = {
    {"ArchitectureUnknown", "The model's architecture 'nobody' is not supported; supported are: llama (Llama 2 and 3,",
     [](auto& b) { b.without("general.architecture").text("general.architecture", "nobody"); }},
    {"ArchitectureMissing", "The metadata 'general.architecture' is missing.",
     [](auto& b) { b.without("general.architecture"); }},
    {"ArchitectureNumber", "'general.architecture' is of type u32; string is expected",
     [](auto& b) { b.without("general.architecture").template value<uint32_t>("general.architecture", 1); }},
    {"LayersMissing", "The metadata 'llama.block_count' is missing.", [](auto& b) { b.without("llama.block_count"); }},
    {"LayersZero", "layer count is 0", with_key<uint32_t>("llama.block_count", 0)},
    {"LayersMany", "layer count is 513", with_key<uint32_t>("llama.block_count", 513)},
    {"LayersAbsurd", "layer count is 4294967295; 1 to 512",
     [](auto& b) {
       b.template value<uint32_t>("llama.attention.sliding_window", 8);
       b.without("llama.block_count").template value<uint32_t>("llama.block_count", UINT32_MAX);
     }},
    {"LayersNegative", "'llama.block_count' is -1; a whole number", with_key<int32_t>("llama.block_count", -1)},
    {"LayersMore", "The tensor 'blk.1.attn_norm' is missing; its shape should be [8].",
     with_key<uint32_t>("llama.block_count", 2)},
    {"LayersArray", "'llama.block_count' is of type an array of u32; a whole number",
     [](auto& b) { b.without("llama.block_count").template numbers<uint32_t>("llama.block_count", {1}); }},
    {"HeadsZero", "head count is 0", with_key<uint32_t>("llama.attention.head_count", 0)},
    {"HeadsNotDivisible", "no multiple of its head count 3", with_key<uint32_t>("llama.attention.head_count", 3)},
    {"KvHeadsZero", "key/value head count is 0", with_key<uint32_t>("llama.attention.head_count_kv", 0)},
    {"ValueLength", "'llama.attention.value_length' is 8; only the head dimension, 4",
     with_key<uint32_t>("llama.attention.value_length", 8)},
    {"TurnedZero", "'llama.rope.dimension_count' is 0; 2 to the head dimension, 4",
     with_key<uint32_t>("llama.rope.dimension_count", 0)},
    {"TurnedOdd", "turns 3 elements of each head; even numbers up to 4",
     with_key<uint32_t>("llama.rope.dimension_count", 3)},
    {"TurnedBeyond", "turns 6 elements of each head; even numbers up to 4",
     with_key<uint32_t>("llama.rope.dimension_count", 6)},
    {"EpsNan", "RMS norm epsilon is nan", with_key<float>("llama.attention.layer_norm_rms_epsilon", NAN)},
    {"ThetaNan", "rope theta is nan", with_key<float>("llama.rope.freq_base", NAN)},
    {"VocabAbsurd", "vocabulary size is 4294967295", with_key<uint32_t>("llama.vocab_size", UINT32_MAX)},
    {"VocabTooSmall", "'tokenizer.ggml.tokens' has 10 tokens, more than the 9",
     [](auto& b) {
       b.without("tokenizer.ggml.eos_token_id").without("tokenizer.ggml.token_type");
       b.template value<uint32_t>("llama.vocab_size", 9);
     }},
    {"VocabTooLarge", "The tensor 'token_embd' has the shape [10, 8]; [11, 8] is expected.",
     with_key<uint32_t>("llama.vocab_size", 11)},
    {"Experts", "The model has 8 experts; mixtures", with_key<uint32_t>("llama.expert_count", 8)},
    {"Split", "The metadata 'split.no' is missing.", with_key<uint16_t>("split.count", 3)},
    {"Scaling", "'llama.rope.scaling.type' is 'ntk'; supported are none, linear",
     [](auto& b) { b.text("llama.rope.scaling.type", "ntk"); }},
    {"LinearWithoutFactor", "'llama.rope.scaling.factor' is missing",
     [](auto& b) { b.text("llama.rope.scaling.type", "linear"); }},
    {"RopeFactorsShort", "has 1 rope frequency factors; 2 are expected",
     [](auto& b) { b.tensor("rope_freqs.weight", {1}, TensorType::f32, test::le(1.0f)); }},
    {"RopeFactorsType", "'rope_freqs.weight' must be a vector of F32",
     [](auto& b) { b.zeros("rope_freqs.weight", {2}, TensorType::f16); }},
    {"EosText", "'tokenizer.ggml.eot_token_id' is of type string; a whole number is expected",
     [](auto& b) { b.text("tokenizer.ggml.eot_token_id", "x"); }},
    {"TokenTypesShort", "'tokenizer.ggml.token_type' has 1 elements; 10 are expected",
     [](auto& b) {
       b.without("tokenizer.ggml.token_type").template numbers<int32_t>("tokenizer.ggml.token_type", {1});
     }},
    {"TokensWrongType", "'tokenizer.ggml.tokens' is of type an array of i32; an array of string",
     [](auto& b) { b.without("tokenizer.ggml.tokens").template numbers<int32_t>("tokenizer.ggml.tokens", {1}); }},
    {"TensorMissing", "The tensor 'blk.0.attn_v' is missing; its shape should be [4, 8].",
     [](auto& b) { b.without_tensor("blk.0.attn_v.weight"); }},
    {"TensorTransposed", "The tensor 'blk.0.ffn_down' has the shape [16, 8]; [8, 16] is expected.",
     [](auto& b) {
       b.without_tensor("blk.0.ffn_down.weight").zeros("blk.0.ffn_down.weight", {8, 16});
     }},
    {"TensorRank", "The tensor 'blk.0.attn_norm' has the shape [1, 8]; [8] is expected.",
     [](auto& b) {
       b.without_tensor("blk.0.attn_norm.weight").zeros("blk.0.attn_norm.weight", {8, 1});
     }},
    {"EmbeddingMissing", "The tensor 'token_embd.weight' is missing.",
     [](auto& b) { b.without_tensor("token_embd.weight"); }},
    {"TensorType", "The tensor 'blk.0.attn_v' is stored as I32; supported types: F32, F16, BF16, Q4_0",
     [](auto& b) {
       b.without_tensor("blk.0.attn_v.weight").zeros("blk.0.attn_v.weight", {8, 4}, TensorType::i32);
     }},
    {"TensorNameStandsTwice", "There are two tensors that stand for 'output_norm'.",
     [](auto& b) { b.zeros("output_norm", {8}); }},
    {"Bias", "The tensor 'blk.0.attn_q.bias' has no place in the architecture llama",
     [](auto& b) { b.tensor("blk.0.attn_q.bias", {8}, TensorType::f32, test::le(0.5f) + std::string(28, '\0')); }},
    {"LayersFewer", "The tensor 'blk.1.attn_norm' has no place in the architecture llama",
     [](auto& b) { b.zeros("blk.1.attn_norm.weight", {8}); }},
};

class ModelRefused : public testing::TestWithParam<ModelCase> {};

TEST_P(ModelRefused, SaysWhy) {
  const TempFolder folder;
  GgufBuilder builder = tiny_gguf();
  GetParam().change(builder);
  const auto path = folder.write("m.gguf", builder.build());
  const std::string message = test::error_of([&] { ModelFile::open(path); });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with(path.string())) << "the path is named: " << message;
}

INSTANTIATE_TEST_SUITE_P(Cases, ModelRefused, testing::ValuesIn(model_cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy

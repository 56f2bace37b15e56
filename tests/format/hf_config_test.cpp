#include <gtest/gtest.h>

#include <cmath>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/tensor_names.h"
#include "tests/base/expect_error.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TempFolder;
using test::tiny_config;

/// tiny_config with one field's text replaced.
std::string replaced(const std::string& from, const std::string& to) {
  std::string text = tiny_config();
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(HfConfig, ReadsAllFields) {
  const ModelConfig c = read_hf_config(tiny_config(), "");
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.layers, 1u);
  EXPECT_EQ(c.hidden, 8u);
  EXPECT_EQ(c.heads, 2u);
  EXPECT_EQ(c.kv_heads, 1u);
  EXPECT_EQ(c.head_dim, 4u);
  EXPECT_EQ(c.ffn, 16u);
  EXPECT_EQ(c.vocab, 10u);
  EXPECT_EQ(c.max_context, 64u);
  EXPECT_EQ(c.rms_eps, 1e-5f);
  EXPECT_EQ(c.rope_theta, 10000);
  EXPECT_EQ(c.rope_layout, RopeLayout::half);
  EXPECT_TRUE(c.tied_head);
  EXPECT_FALSE(c.has_qk_norm);
  EXPECT_EQ(c.bos, 8u);
  EXPECT_EQ(c.eos, std::vector<uint32_t>{9});
}

TEST(HfConfig, GenerationConfigAddsStopTokensAndComesFirst) {
  EXPECT_EQ(read_hf_config(tiny_config(), R"({"eos_token_id":[7,9]})").eos, (std::vector<uint32_t>{7, 9}));
  EXPECT_EQ(read_hf_config(tiny_config(), R"({"eos_token_id":3,"bos_token_id":2})").bos, 2u);
  EXPECT_EQ(read_hf_config(tiny_config(), R"({"eos_token_id":[10,-1,7],"bos_token_id":4294967295})").eos,
            (std::vector<uint32_t>{7, 9}))
      << "ids that name no token are ignored";
  EXPECT_EQ(read_hf_config(tiny_config(R"(,"bos_token_id":-1)"), "").bos, std::nullopt);
  expect_error("generation_config.json is not valid JSON", [] { read_hf_config(tiny_config(), "{"); });
  expect_error("'eos_token_id' of generation_config.json is \"x\"",
               [] { read_hf_config(tiny_config(), R"({"eos_token_id":"x"})"); });
}

TEST(HfConfig, TakesInfinitiesWhereNoFieldNeedsANumber) {
  EXPECT_EQ(read_hf_config(tiny_config(R"(,"time_step_limit":[0.0,Infinity])"), "").hidden, 8u);
  expect_error("The field 'rope_theta' of config.json is Infinity; a number is expected.",
               [] { read_hf_config(tiny_config(R"(,"rope_theta":Infinity)"), ""); });
  expect_error("The model's architecture 'BambaForCausalLM' is not supported", [] {
    read_hf_config(R"({"architectures":["BambaForCausalLM"],"time_step_limit":[0.0,Infinity]})", "");
  });
}

TEST(HfConfig, ReadsBothSpellingsOfRopeScaling) {
  const auto linear = read_hf_config(tiny_config(R"(,"rope_scaling":{"type":"linear","factor":4})"), "");
  EXPECT_EQ(linear.rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(linear.rope_scaling.factor, 4);
  const auto llama3 = read_hf_config(
      tiny_config(R"(,"rope_parameters":{"rope_type":"llama3","rope_theta":5e5,"factor":8,"low_freq_factor":1,)"
                  R"("high_freq_factor":4,"original_max_position_embeddings":64})"),
      "");
  EXPECT_EQ(llama3.rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(llama3.rope_scaling.original_context, 64u);
  EXPECT_EQ(llama3.rope_theta, 5e5);
  expect_error("rope scaling is of type 'ntk'; supported are default, linear, dynamic, llama3, yarn and longrope",
               [] { read_hf_config(tiny_config(R"(,"rope_scaling":{"rope_type":"ntk","factor":4})"), ""); });
  expect_error("config.json's rope scaling lacks the field 'factor'",
               [] { read_hf_config(tiny_config(R"(,"rope_scaling":{"rope_type":"llama3"})"), ""); });
  expect_error("'rope_scaling' of config.json is \"linear\"; an object",
               [] { read_hf_config(tiny_config(R"(,"rope_scaling":"linear")"), ""); });
}

TEST(HfConfig, ADynamicRotationIsTheUsualOneInTheOriginalContext) {
  for (const char* scaling : {R"(,"rope_scaling":{"type":"dynamic","factor":4})",
                              R"(,"rope_parameters":{"rope_type":"dynamic","rope_theta":10000.0,"factor":4})"}) {
    const ModelConfig config = read_hf_config(tiny_config(scaling), "");
    EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::none);
    EXPECT_EQ(config.max_context, 64u);
    ASSERT_EQ(config.notes.size(), 1u);
    EXPECT_NE(config.notes.front().find("limited to 64 positions"), std::string::npos) << config.notes.front();
  }
  const char* shorter = R"(,"rope_scaling":{"type":"dynamic","factor":4,"original_max_position_embeddings":16})";
  EXPECT_EQ(read_hf_config(tiny_config(shorter), "").max_context, 16u);
  expect_error("of type 'dynamic' with the field 'alpha'", [] {
    read_hf_config(tiny_config(R"(,"rope_scaling":{"type":"dynamic","factor":1,"alpha":1000})"), "");
  });
  const char* pictures = R"(,"rope_scaling":{"type":"mrope","mrope_section":[1,1,0]})";
  EXPECT_EQ(read_hf_config(tiny_config(pictures), "").rope_scaling.kind, RopeScaling::Kind::none);
}

TEST(HfConfig, ReadsPhi4Mini) {
  std::string factors = "1";
  for (int i = 1; i < 48; ++i) factors += ",1." + std::to_string(i);
  const ModelConfig c = read_hf_config(
      R"({"architectures":["Phi3ForCausalLM"],"hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":2,)"
      R"("num_attention_heads":24,"num_key_value_heads":8,"vocab_size":200064,"max_position_embeddings":131072,)"
      R"("original_max_position_embeddings":4096,"rms_norm_eps":1e-05,"rope_theta":10000.0,"bos_token_id":199999,)"
      R"("eos_token_id":199999,"tie_word_embeddings":true,"partial_rotary_factor":0.75,"sliding_window":262144,)"
      R"("attention_bias":false,"mlp_bias":false,"lm_head_bias":false,"full_attn_mod":1,"interpolate_factor":1,)"
      R"("rope_scaling":{"type":"longrope","short_factor":[)" +
          factors + R"(],"long_factor":[)" + factors + "]}}",
      "");
  EXPECT_EQ(c.head_dim, 128u);
  EXPECT_EQ(c.turned(), 96u);
  EXPECT_EQ(c.rope_scaling.divisors.size(), 48u);
  EXPECT_TRUE(c.windows.empty());
  EXPECT_TRUE(c.tied_head);
}

TEST(HfConfig, YarnMakesTheContextLonger) {
  const auto yarn = [](const std::string& more) {
    return read_hf_config(tiny_config(R"(,"rope_scaling":{"type":"yarn","factor":4)" + more + "}"), "");
  };
  const ModelConfig usual = yarn("");
  EXPECT_EQ(usual.rope_scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(usual.rope_scaling.original_context, 64u);
  EXPECT_EQ(usual.max_context, 256u);
  EXPECT_EQ(usual.rope_scaling.beta_fast, 32);
  EXPECT_NEAR(usual.rope_scaling.magnitude, 1.1386294361119891, 1e-15);
  EXPECT_EQ(yarn(R"(,"original_max_position_embeddings":16)").max_context, 64u) << "what config.json says already";
  EXPECT_EQ(yarn(R"(,"attention_factor":1.5)").rope_scaling.magnitude, 1.5);
  EXPECT_EQ(yarn(R"(,"mscale":0.7,"mscale_all_dim":0.7)").rope_scaling.magnitude, 1);
  EXPECT_FALSE(yarn(R"(,"truncate":false)").rope_scaling.truncate);
  expect_error("beta_fast is 1; a number above 2", [&] { yarn(R"(,"beta_fast":1,"beta_slow":2)"); });
  expect_error("factor is -4",
               [] { read_hf_config(tiny_config(R"(,"rope_scaling":{"type":"yarn","factor":-4})"), ""); });
}

TEST(HfConfig, LongRopeHasTwoListsOfDivisors) {
  const auto longrope = [](const std::string& lists) {
    return read_hf_config(
        tiny_config(R"(,"original_max_position_embeddings":16,"rope_scaling":{"type":"longrope",)" + lists + "}"), "");
  };
  const RopeScaling scaling = longrope(R"("short_factor":[1,1.5],"long_factor":[2,8])").rope_scaling;
  EXPECT_EQ(scaling.kind, RopeScaling::Kind::longrope);
  EXPECT_EQ(scaling.divisors, (std::vector<float>{1, 1.5f}));
  EXPECT_EQ(scaling.long_divisors, (std::vector<float>{2, 8}));
  EXPECT_EQ(scaling.original_context, 16u);
  EXPECT_NEAR(scaling.magnitude, std::sqrt(1.5), 1e-15) << "1 + log 4 / log 16";
  const auto by_factor = [](const std::string& extra) {
    return read_hf_config(tiny_config(extra + R"(,"rope_scaling":{"type":"longrope","factor":8,"short_factor":[1,1],)"
                                              R"("long_factor":[1,1]})"),
                          "")
        .rope_scaling.magnitude;
  };
  EXPECT_NEAR(by_factor(""), std::sqrt(1.5), 1e-15) << "1 + log 8 / log 64, where nothing says the original context";
  EXPECT_NEAR(by_factor(R"(,"original_max_position_embeddings":16)"), std::sqrt(1.5), 1e-15) << "1 + log 4 / log 16";
  for (const auto& [name, magnitude] : {std::pair("su", std::sqrt(1.5)), std::pair("yarn", 0.1 * std::log(4) + 1)}) {
    const RopeScaling first = read_hf_config(tiny_config(R"(,"original_max_position_embeddings":16,"rope_scaling":{)"
                                                         R"("short_factor":[1,1.5],"long_factor":[2,8],"type":")" +
                                                         std::string(name) + "\"}"),
                                             "")
                                  .rope_scaling;
    EXPECT_EQ(first.kind, RopeScaling::Kind::longrope) << name << ", as Phi-3's first files say";
    EXPECT_EQ(first.long_divisors, (std::vector<float>{2, 8}));
    EXPECT_NEAR(first.magnitude, magnitude, 1e-15) << name;
  }
  expect_error("has 1 rope frequency factors; 2 are expected",
               [&] { longrope(R"("short_factor":[1,1],"long_factor":[1])"); });
  expect_error("rope frequency factor is 0", [&] { longrope(R"("short_factor":[1,0],"long_factor":[1,1])"); });
  expect_error("lacks the field 'long_factor'", [&] { longrope(R"("short_factor":[1,1])"); });
  expect_error("'short_factor' of config.json's rope scaling holds \"x\"",
               [&] { longrope(R"("short_factor":["x",1],"long_factor":[1,1])"); });
}

using Windows = std::vector<uint32_t>;

/// Of a class and with a number of layers.
std::string config_of_class(const std::string& name, uint32_t layers, const std::string& extra) {
  std::string text = tiny_config(extra);
  text.replace(text.find("Llama"), 5, name);
  const std::string field = R"("num_hidden_layers":)";
  return text.replace(text.find(field), field.size() + 1, field + std::to_string(layers));
}

TEST(HfConfig, ASlidingWindowIsOfTheLastLayersOrOfThoseListed) {
  const auto windows = [](const std::string& extra) {
    const ModelConfig c = read_hf_config(config_of_class("Qwen2", 2, extra), "");
    EXPECT_EQ(c.max_context, 64u);
    return c.windows;
  };
  EXPECT_EQ(windows(R"(,"use_sliding_window":false,"sliding_window":32,"max_window_layers":1)"), Windows{});
  const std::string on = R"(,"use_sliding_window":true,"sliding_window":32)";
  EXPECT_EQ(windows(on), (Windows{0, 0})) << "from layer 28 on";
  EXPECT_EQ(windows(on + R"(,"max_window_layers":1)"), (Windows{0, 32}));
  EXPECT_EQ(windows(on + R"(,"max_window_layers":1,"layer_types":["sliding_attention","full_attention"])"),
            (Windows{32, 0}));
  EXPECT_EQ(windows(R"(,"use_sliding_window":true,"sliding_window":64,"max_window_layers":0)"), Windows{})
      << "no text is longer";
  expect_error("'layer_types' of config.json has 1 entries; the model has 2 layers",
               [&] { windows(on + R"(,"layer_types":["full_attention"])"); });
  expect_error("'layer_types' of config.json holds \"chunked_attention\"",
               [&] { windows(on + R"(,"layer_types":["chunked_attention","full_attention"])"); });
  expect_error("'sliding_window' of config.json is 0",
               [&] { windows(R"(,"use_sliding_window":true,"sliding_window":0)"); });
  expect_error("sliding_window", [&] { windows(R"(,"use_sliding_window":true)"); });
}

TEST(HfConfig, MistralIsLlamaWithAWindowThatNeedsNoSwitch) {
  const auto mistral = [](const std::string& extra) {
    return read_hf_config(config_of_class("Mistral", 2, extra), "");
  };
  EXPECT_EQ(mistral("").architecture, "llama");
  EXPECT_EQ(mistral(R"(,"sliding_window":32)").windows, (Windows{32, 32}));
  EXPECT_EQ(mistral(R"(,"sliding_window":32)").max_context, 64u);
  EXPECT_EQ(mistral(R"(,"sliding_window":null)").windows, Windows{});
  EXPECT_EQ(mistral(R"(,"sliding_window":32,"use_sliding_window":false)").windows, Windows{});
}

TEST(HfConfig, OfAMistralThatSeesPicturesTheTextPartIsRead) {
  const auto mistral3 = [](const std::string& extra) {
    std::string text = tiny_config(extra);
    const std::string architectures = R"("architectures":["LlamaForCausalLM"],)";
    text.erase(text.find(architectures), architectures.size());
    return read_hf_config(
        R"({"architectures":["Mistral3ForConditionalGeneration"],"vision_config":{},"text_config":)" + text + "}", "");
  };
  EXPECT_EQ(mistral3("").architecture, "mistral3");
  EXPECT_EQ(mistral3("").layers, 1u);
  EXPECT_EQ(mistral3("").max_context, 64u);
  const std::string yarn = R"(,"rope_parameters":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":16)";
  EXPECT_EQ(mistral3(yarn + "}").max_context, 64u);
  EXPECT_EQ(mistral3(yarn + "}").rope_scaling.query_growth, 0);
  const ModelConfig grows = mistral3(yarn + R"(,"llama_4_scaling_beta":0.1})");
  EXPECT_EQ(grows.max_context, 64u) << "behind the original context queries grow";
  EXPECT_EQ(grows.rope_scaling.query_growth, 0.1);
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    EXPECT_EQ(canonical_name_from_hugging_face(prefix + std::string("layers.3.mlp.down_proj.weight")),
              "blk.3.ffn_down");
  }
  EXPECT_EQ(canonical_name_from_hugging_face("language_model.lm_head.weight"), "output");
}

TEST(HfConfig, QueriesOfMinistral3GrowWithTheirPosition) {
  const auto ministral3 = [](const std::string& rope) {
    return read_hf_config(config_of_class("Ministral3", 1, R"(,"rope_parameters":{)" + rope + "}"), "");
  };
  // As published, with other numbers.
  const ModelConfig c = ministral3(R"("beta_fast":32.0,"beta_slow":1.0,"factor":4.0,"llama_4_scaling_beta":0.1,)"
                                   R"("mscale":1.0,"mscale_all_dim":1.0,"original_max_position_embeddings":16,)"
                                   R"("rope_theta":1000000.0,"rope_type":"yarn","type":"yarn")");
  EXPECT_EQ(c.architecture, "mistral3");
  EXPECT_FALSE(c.has_qk_norm);
  EXPECT_EQ(c.max_context, 64u);
  EXPECT_EQ(c.rope_theta, 1e6);
  EXPECT_EQ(c.rope_scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(c.rope_scaling.magnitude, 1);
  EXPECT_EQ(c.rope_scaling.original_context, 16u);
  EXPECT_EQ(c.rope_scaling.query_growth, 0.1);
  const ModelConfig plain =
      ministral3(R"("rope_type":"default","llama_4_scaling_beta":0.5,"original_max_position_embeddings":16)");
  EXPECT_EQ(plain.rope_scaling.kind, RopeScaling::Kind::none);
  EXPECT_EQ(plain.rope_scaling.original_context, 16u);
  EXPECT_EQ(plain.rope_scaling.query_growth, 0.5);

  const std::string yarn = R"("rope_type":"yarn","factor":4,"llama_4_scaling_beta":)";
  const std::string original = R"(,"original_max_position_embeddings":)";
  expect_error("config.json's rope scaling lacks the field 'original_max_position_embeddings'",
               [&] { ministral3(yarn + "0.1"); });
  expect_error("rope scaling original_max_position_embeddings is 0; 1 to",
               [&] { ministral3(yarn + "0.1" + original + "0"); });
  expect_error("growth of queries (llama_4_scaling_beta) is -0.1; a number above 0",
               [&] { ministral3(yarn + "-0.1" + original + "16"); });
  expect_error("'llama_4_scaling_beta' of config.json's rope scaling is \"x\"; a number",
               [&] { ministral3(yarn + R"("x")" + original + "16"); });
}

TEST(HfConfig, OfAQwen3ThatSeesPicturesTheTextPartIsRead) {
  const auto qwen3vl = [](const std::string& rope) {
    std::string text = tiny_config(R"(,"head_dim":16,)" + rope);
    const std::string architectures = R"("architectures":["LlamaForCausalLM"],)";
    text.erase(text.find(architectures), architectures.size());
    return read_hf_config(
        R"({"architectures":["Qwen3VLForConditionalGeneration"],"vision_config":{"depth":27},"image_token_id":5,)"
        R"("text_config":)" +
            text + "}",
        "");
  };
  // As transformers writes it since version 5, and as the published folders have it.
  for (const char* rope :
       {R"("rope_parameters":{"mrope_interleaved":true,"mrope_section":[4,2,2],"rope_theta":5000000,)"
        R"("rope_type":"default"})",
        R"("rope_theta":5000000,"rope_scaling":{"mrope_interleaved":true,"mrope_section":[4,2,2],)"
        R"("rope_type":"default"})"}) {
    const ModelConfig c = qwen3vl(rope);
    EXPECT_EQ(c.architecture, "qwen3vl");
    EXPECT_TRUE(c.has_qk_norm);
    EXPECT_EQ(c.head_dim, 16u);
    EXPECT_EQ(c.turned(), 16u) << "positions of text turn the whole head";
    EXPECT_EQ(c.rope_scaling.kind, RopeScaling::Kind::none);
    EXPECT_EQ(c.rope_layout, RopeLayout::half);
    EXPECT_EQ(c.vocab, 10u);
  }
  EXPECT_EQ(qwen3vl(R"("rope_theta":5000000)").rope_theta, 5000000);
  expect_error("'text_config' of config.json is 3; an object",
               [] { read_hf_config(R"({"architectures":["Qwen3VLForConditionalGeneration"],"text_config":3})", ""); });
  std::string with_experts = tiny_config(
      R"(,"head_dim":16,"num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":8,"decoder_sparse_step":1)");
  const ModelConfig mixture = read_hf_config(
      R"({"architectures":["Qwen3VLMoeForConditionalGeneration"],"text_config":)" + with_experts + "}", "");
  EXPECT_EQ(mixture.architecture, "qwen3vlmoe");
  EXPECT_EQ(mixture.experts, 4u);
  EXPECT_EQ(mixture.layers_with_experts(), mixture.layers);
  EXPECT_TRUE(mixture.shares_among_chosen) << "which some folders do not say";
  expect_error("partial_rotary_factor", [&] { qwen3vl(R"("partial_rotary_factor":2)"); });
  expect_error("'mlp_bias' of config.json is true", [&] { qwen3vl(R"("mlp_bias":true)"); });
}

TEST(HfConfig, Qwen2HasBiases) {
  std::string text = tiny_config();
  const ModelConfig c = read_hf_config(text.replace(text.find("Llama"), 5, "Qwen2"), "");
  EXPECT_EQ(c.architecture, "qwen2");
  EXPECT_TRUE(c.has_qkv_bias);
  EXPECT_FALSE(c.has_qk_norm);
  EXPECT_FALSE(read_hf_config(tiny_config(), "").has_qkv_bias);
}

TEST(HfConfig, WithoutAThetaItIsThatOfTheClass) {
  const auto theta = [](const std::string& name) {
    std::string text = tiny_config();
    text.replace(text.find("Llama"), 5, name);
    const std::string field = R"("rope_theta":10000.0,)";
    return read_hf_config(text.erase(text.find(field), field.size()), "").rope_theta;
  };
  EXPECT_EQ(theta("Llama"), 10000);
  EXPECT_EQ(theta("SmolLM3"), 2000000);
}

TEST(HfConfig, SmolLM3SaysWhichLayersRotate) {
  const auto smollm3 = [](const std::string& extra) {
    return read_hf_config(config_of_class("SmolLM3", 5, extra), "");
  };
  using Layers = std::vector<bool>;
  EXPECT_EQ(smollm3("").rotates, (Layers{true, true, true, false, true}));
  EXPECT_EQ(smollm3(R"(,"no_rope_layer_interval":2)").rotates, (Layers{true, false, true, false, true}));
  EXPECT_EQ(smollm3(R"(,"no_rope_layers":[0,1,1,1,0],"no_rope_layer_interval":2)").rotates,
            (Layers{false, true, true, true, false}));
  EXPECT_TRUE(smollm3("").has_unrotated_layers());
  EXPECT_EQ(smollm3(R"(,"no_rope_layers":[0,1,1,1,0],"use_sliding_window":true,"sliding_window":32)").windows,
            (Windows{32, 0, 0, 0, 32}));
  EXPECT_FALSE(read_hf_config(tiny_config(), "").has_unrotated_layers());
  expect_error("'no_rope_layers' of config.json has 2 entries; the model has 5 layers",
               [&] { smollm3(R"(,"no_rope_layers":[0,1])"); });
  expect_error("'no_rope_layers' of config.json holds 2; 0 and 1",
               [&] { smollm3(R"(,"no_rope_layers":[0,1,2,1,0])"); });
}

TEST(HfConfig, AHeadIsTiedAsTheArchitectureHasItWhereNothingIsSaid) {
  std::string text = tiny_config();
  const std::string said = R"("tie_word_embeddings":true,)";
  text.erase(text.find(said), said.size());
  EXPECT_FALSE(read_hf_config(text, "").tied_head);
  EXPECT_TRUE(read_hf_config(text.replace(text.find("Llama"), 5, "SmolLM3"), "").tied_head);
}

TEST(HfConfig, RefusesWhatTheEngineCannotCompute) {
  const auto refused = [](const char* message, const std::string& text) {
    SCOPED_TRACE(text);
    expect_error(message, [&] { read_hf_config(text, ""); });
  };
  refused("'attention_bias' of config.json is true; biases", tiny_config(R"(,"attention_bias":true)"));
  refused("'mlp_bias' of config.json is true", tiny_config(R"(,"mlp_bias":true)"));
  refused("'hidden_act' of config.json is 'gelu'; only silu", tiny_config(R"(,"hidden_act":"gelu")"));
  refused("'partial_rotary_factor' of config.json is -0.5; numbers above 0, up to 1",
          tiny_config(R"(,"partial_rotary_factor":-0.5)"));
  refused(
      "'GPT2LMHeadModel' (GPT-2) is not supported. For text and chats Qwen3, Gemma 4, Llama 3 and gpt-oss run here. "
      "Supported are: LlamaForCausalLM (Llama 2 and 3, "
      "Mistral, SmolLM2), MistralForCausalLM (Mistral), Ministral3ForCausalLM (",
      replaced("LlamaForCausalLM", "GPT2LMHeadModel"));
  refused("must be a list of one class name", replaced(R"(["LlamaForCausalLM"])", "[]"));
  refused("config.json is not valid JSON", "{");
  refused("config.json must be a JSON object", "[]");
  refused("config.json lacks the field 'hidden_size'", replaced(R"("hidden_size":8,)", ""));
  refused("'num_hidden_layers' of config.json is -1",
          replaced(R"("num_hidden_layers":1)", R"("num_hidden_layers":-1)"));
  refused("head count is 0", replaced(R"("num_attention_heads":2)", R"("num_attention_heads":0)"));
  refused("key/value head count is 0", replaced(R"("num_key_value_heads":1)", R"("num_key_value_heads":0)"));
  refused("no multiple of 'num_attention_heads', 3",
          replaced(R"("num_attention_heads":2)", R"("num_attention_heads":3)"));
  refused("'rms_norm_eps' of config.json is \"x\"; a number", replaced("1e-5", "\"x\""));
  refused("nested more than 64", tiny_config(",\"a\":" + std::string(100, '[') + std::string(100, ']')));
}

TEST(HfTokenizer, FindsTheChatTemplateWhereverItIs) {
  const TempFolder folder;
  EXPECT_EQ(read_hf_tokenizer(folder.path()).kind, TokenizerSource::Kind::none);
  folder.write("tokenizer.json", "{}");
  folder.write("tokenizer_config.json", R"({"chat_template":"from config"})");
  EXPECT_EQ(read_hf_tokenizer(folder.path()).kind, TokenizerSource::Kind::hugging_face);
  EXPECT_EQ(read_hf_tokenizer(folder.path()).tokenizer_json, "{}");
  EXPECT_EQ(read_hf_tokenizer(folder.path()).chat_template, "from config");
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"tool","template":"t"},{"name":"default","template":"d"}]})");
  EXPECT_EQ(read_hf_tokenizer(folder.path()).chat_template, "d");
  folder.write("chat_template.jinja", "from file");
  EXPECT_EQ(read_hf_tokenizer(folder.path()).chat_template, "from file");
  folder.write("chat_template.jinja", std::string((4u << 20) + 1, 'x'));
  expect_error("at most 4194304 are allowed", [&] { read_hf_tokenizer(folder.path()); });
}

}  // namespace
}  // namespace canopy

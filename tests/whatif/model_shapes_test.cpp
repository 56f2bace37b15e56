#include "engine/whatif/model_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/format/architecture.h"
#include "engine/whatif/op_work.h"
#include "engine/whatif/prediction.h"
#include "tests/whatif/messages.h"

namespace canopy::predict {
namespace {

using test::message_of;

/// Bytes of the weights that a pass reads.
double pass_gigabytes(const char* shape) {
  RecordedModel model(model_shape(shape));
  uint64_t bytes = 0;
  for (const Op& op : model.record(1, 0, 0)) bytes += weight_bytes_of(op);
  return static_cast<double>(bytes) / 1e9;
}

// Sizes of published files, less an embedding beside an untied head.
TEST(ModelShapes, HaveTheSizesOfTheFiles) {
  EXPECT_NEAR(pass_gigabytes("llama-2-7b-q4_0"), 3.826 - 0.074, 0.02);
  EXPECT_NEAR(pass_gigabytes("qwen3-8b-q4_k_m"), 5.028 - 0.350, 0.03);
  EXPECT_NEAR(pass_gigabytes("qwen3-8b-bf16"), 16.381 - 1.245, 0.03);
  EXPECT_NEAR(pass_gigabytes("llama-3.1-8b-q8_0"), 8.541 - 0.558, 0.03);
  EXPECT_NEAR(pass_gigabytes("smollm2-135m-bf16"), 0.269, 0.003);
}

double expert_gigabytes(RecordedModel& model, uint32_t width) {
  double bytes = 0;
  for (const Op& op : model.record(width, 0, 0)) {
    if (std::string(name_of(op)).starts_with("expert_")) bytes += static_cast<double>(weight_bytes_of(op));
  }
  return bytes / 1e9;
}

// 48 layers of 128 experts of 3 * 2048 * 768 weights in 4.5 bits, 16.3 GB: of all that a pass touches those that its
// rows have chosen, 128 (1 - (1 - 1/16)^W) on average.
TEST(ModelShapes, AMixtureReadsTheExpertsThatItsRowsTouch) {
  RecordedModel model(model_shape("qwen3-coder-30b-a3b-q4_k"));
  const double all = 48.0 * 128 * 3 * 2048 * 768 * 4.5 / 8 / 1e9;
  EXPECT_NEAR(expert_gigabytes(model, 1), all / 16, 1e-3);
  EXPECT_NEAR(expert_gigabytes(model, 8), all * 51.6 / 128, all / 1000);
  EXPECT_NEAR(expert_gigabytes(model, 32), all * 111.8 / 128, all / 1000);
  EXPECT_NEAR(expert_gigabytes(model, 512), all, 1e-3);
  EXPECT_NEAR(pass_gigabytes("qwen3-coder-30b-a3b-q4_k"), all / 16 + 0.256 + 0.515, 0.02);
}

uint64_t all_elements(const ModelConfig& config) {
  uint64_t sum = 0;
  for (const RequiredTensor& tensor : required_tensors(config)) sum += tensor.rows * tensor.cols;
  return sum;
}

double parameters(const char* shape) {
  return static_cast<double>(all_elements(model_shape(shape).config)) / 1e9;
}

// What their names say, in billions.
TEST(ModelShapes, HybridsHaveTheParametersOfTheirNames) {
  EXPECT_NEAR(parameters("qwen3.5-9b-bf16"), 9, 0.3);
  EXPECT_NEAR(parameters("qwen3.5-27b-bf16"), 27, 0.5);
  EXPECT_NEAR(parameters("qwen3.5-35b-a3b-bf16"), 35, 0.5);
}

// The elements of all tensors of Qwen3-Coder-Next, which is the same model without a part that predicts further tokens.
TEST(ModelShapes, Qwen3NextHasThePublishedParameters) {
  EXPECT_EQ(all_elements(model_shape("qwen3-next-80b-a3b-bf16").config), 79'674'391'296u);
}

// "Gemma 3 Technical Report", table 1, without the part that sees pictures: 675 and 3,209 million parameters, 1,012 and
// 10,759.
TEST(ModelShapes, Gemma3HasThePublishedParametersAndWindows) {
  EXPECT_NEAR(parameters("gemma-3-4b-bf16"), 0.675 + 3.209, 0.005);
  EXPECT_NEAR(parameters("gemma-3-12b-bf16"), 1.012 + 10.759, 0.006);
  const ModelConfig config = model_shape("gemma-3-12b-q4_k").config;
  ASSERT_EQ(config.windows.size(), 48u);
  for (uint32_t n = 0; n < 48; ++n) {
    EXPECT_EQ(config.windows[n], n % 6 == 5 ? 0u : 1024u) << n;
    EXPECT_EQ(config.turns_locally[n], n % 6 != 5) << n;
  }
  EXPECT_TRUE(config.has_post_norms);
}

// In billions, of the part that reads text ("Ministral 3", 2025: 3.4, 8.4 and 13.5).
TEST(ModelShapes, Ministral3HasThePublishedParameters) {
  EXPECT_NEAR(parameters("ministral-3-3b-bf16"), 3.4, 0.05);
  EXPECT_NEAR(parameters("ministral-3-8b-bf16"), 8.4, 0.1);
  EXPECT_NEAR(parameters("ministral-3-14b-bf16"), 13.5, 0.05);
}

// 11,907 million parameters of the 12B's files, 30.7 billion of the 31B.
TEST(ModelShapes, Gemma4HasThePublishedParametersAndTwoSizesOfHeads) {
  EXPECT_NEAR(parameters("gemma-4-12b-bf16"), 11.907, 0.002);
  EXPECT_NEAR(parameters("gemma-4-31b-bf16"), 30.7, 0.05);
  EXPECT_NEAR(parameters("gemma-4-26b-a4b-bf16"), 25.2, 0.05);
  // 2.3 and 4.5 billion without embeddings of layers, of which a row reads one each; 35 and 42 layers of 256.
  EXPECT_NEAR(parameters("gemma-4-e2b-bf16") - 262144e-9 * 35 * 256, 2.3, 0.06);
  EXPECT_NEAR(parameters("gemma-4-e4b-bf16") - 262144e-9 * 42 * 256, 4.5, 0.15);
  RecordedModel model(model_shape("gemma-4-12b-q4_k"));
  uint32_t full = 0, sliding = 0;
  for (const Op& op : model.record(1, 2000, 0)) {
    const auto* attention = std::get_if<AttentionArgs>(&op);
    if (attention == nullptr) continue;
    ++(attention->window == 0 ? full : sliding);
    EXPECT_EQ(attention->shape.head_dim, attention->window == 0 ? 512u : 256u);
    EXPECT_EQ(attention->shape.kv_heads, attention->window == 0 ? 1u : 8u);
    EXPECT_EQ(attention->scale, 1.0f);
  }
  EXPECT_EQ(full, 8u);
  EXPECT_EQ(sliding, 40u);
}

// 106 and 355 billion parameters, less the head for further tokens of the larger.
TEST(ModelShapes, Glm45HasThePublishedParametersAndExperts) {
  EXPECT_NEAR(parameters("glm-4.5-air-bf16"), 106.85, 0.05);
  EXPECT_NEAR(parameters("glm-4.5-bf16"), 352.8, 0.1);
  const ModelConfig config = model_shape("glm-4.5-q4_k").config;
  EXPECT_EQ(config.layers_with_experts(), 89u);
  EXPECT_FALSE(config.layer_has_experts(2));
  EXPECT_EQ(config.turned(), 64u);
  EXPECT_TRUE(config.has_qk_norm && config.has_qkv_bias && config.has_choice_bias);
  EXPECT_FALSE(model_shape("glm-4.5-air-q4_k").config.has_qk_norm);
}

/// Weights that a row goes through, in billions, without the embedding beside an untied head.
double active(const char* shape) {
  return pass_gigabytes(shape) / 2;  // of bf16
}

// Of the models' cards: 3 billion parameters, 7, and 32.2 of which a row uses 9; of 40 layers the sixth, sixteenth, ...
// are attention. H-Tiny is said to use 1 billion, less the embedding that is its head.
TEST(ModelShapes, Granite4HasThePublishedParametersAndLayers) {
  EXPECT_NEAR(parameters("granite-4.0-h-micro-bf16"), 3.19, 0.01);
  EXPECT_NEAR(parameters("granite-4.0-h-tiny-bf16"), 6.94, 0.01);
  EXPECT_NEAR(parameters("granite-4.0-h-small-bf16"), 32.2, 0.05);
  EXPECT_NEAR(active("granite-4.0-h-small-bf16"), 8.8, 0.05);
  EXPECT_NEAR(active("granite-4.0-h-tiny-bf16") - 100352e-9 * 1536, 1.3, 0.05);
  const ModelConfig config = model_shape("granite-4.0-h-small-q4_k").config;
  EXPECT_EQ(config.experts, 72u);
  EXPECT_EQ(config.experts_used, 10u);
  for (uint32_t n = 0; n < 40; ++n) EXPECT_EQ(config.is_attention(n), n % 10 == 5) << n;
}

// "Nemotron 3 Nano" (NVIDIA, 2025): 31.6 billion parameters of which a row uses 3.2, or 3.6 with the embedding, in 23
// layers of Mamba-2, 23 of 128 experts of which 6 are used, and 6 of attention. Nemotron Nano 2: 8.9 billion, in 27 of
// Mamba-2, 25 feed-forwards and 4 of attention.
TEST(ModelShapes, NemotronHasThePublishedParametersAndLayers) {
  EXPECT_NEAR(parameters("nemotron-3-nano-30b-a3b-bf16"), 31.6, 0.05);
  EXPECT_NEAR(active("nemotron-3-nano-30b-a3b-bf16"), 3.2, 0.05);
  const ModelConfig nano = model_shape("nemotron-3-nano-30b-a3b-q4_k").config;
  EXPECT_EQ(nano.recurrent_layers(), 23u);
  EXPECT_EQ(nano.layers_with_experts(), 23u);
  EXPECT_EQ(nano.attention_layers(), 6u);
  EXPECT_NEAR(parameters("nemotron-nano-9b-v2-bf16"), 8.89, 0.01);
  const ModelConfig dense = model_shape("nemotron-nano-9b-v2-q4_k").config;
  EXPECT_EQ(dense.recurrent_layers(), 27u);
  EXPECT_EQ(dense.attention_layers(), 4u);
  EXPECT_EQ(std::ranges::count(dense.has_feed_forward, true), 25);
}

// Of the models' cards: 354, 742, 1,170 and 2,569 million parameters.
TEST(ModelShapes, Lfm2HasThePublishedParametersAndConvolutions) {
  EXPECT_NEAR(parameters("lfm2-350m-bf16"), 0.354, 0.001);
  EXPECT_NEAR(parameters("lfm2-700m-bf16"), 0.742, 0.001);
  EXPECT_NEAR(parameters("lfm2-1.2b-bf16"), 1.170, 0.001);
  EXPECT_NEAR(parameters("lfm2-2.6b-bf16"), 2.569, 0.001);
  for (const auto& [shape, layers] : {std::pair{"lfm2-1.2b-q4_k", 10u}, std::pair{"lfm2-2.6b-q4_k", 22u}}) {
    RecordedModel model(model_shape(shape));
    uint32_t convolutions = 0;
    for (const Op& op : model.record(5, 1000, 0)) {
      if (const auto* convolution = std::get_if<ShortConvArgs>(&op)) {
        ++convolutions;
        EXPECT_EQ(convolution->cols, 2048u);
        EXPECT_EQ(convolution->taps, 3u);
      }
    }
    EXPECT_EQ(convolutions, layers);
  }
}

// 36 of 48 layers are recurrences with states of 32 * 128 * 128 floats; a row of a pass goes through 10 of 512 experts
// of 3 * 2048 * 512 weights in 4.5 bits, and through the shared one.
TEST(ModelShapes, Qwen3NextReadsItsStatesAndTheExpertsOfItsRows) {
  RecordedModel model(model_shape("qwen3-next-80b-a3b-q4_k"));
  double states = 0;
  for (const Op& op : model.record(1, 0, 0)) {
    if (const auto* recurrence = std::get_if<DeltaNetArgs>(&op)) {
      states += work_of_recurrence(*recurrence, 32, 1).memory_bytes;
    }
  }
  EXPECT_EQ(states, 36 * 2.0 * 32 * 128 * 128 * 4);
  const double expert = 48.0 * 3 * 2048 * 512 * 4.5 / 8 / 1e9;
  EXPECT_NEAR(expert_gigabytes(model, 1), 10 * expert, 1e-3);
  EXPECT_NEAR(expert_gigabytes(model, 32), 512 * (1 - std::pow(1 - 10.0 / 512, 32)) * expert, 0.01);
}

// Layers with a window read no more than that of K/V, however long the text is.
TEST(ModelShapes, LayersOfGemmaReadTheirWindows) {
  RecordedModel model(model_shape("gemma-3-4b-q4_k"));
  uint32_t whole = 0, windows = 0;
  for (const Op& op : model.record(1, 32768, 0)) {
    const auto* attention = std::get_if<AttentionArgs>(&op);
    if (attention == nullptr) continue;
    ++(attention->window == 0 ? whole : windows);
    EXPECT_TRUE(attention->window == 0 || attention->window == 1024) << attention->window;
  }
  EXPECT_EQ(whole, 5u);
  EXPECT_EQ(windows, 29u);
}

// 48 of 64 layers are recurrences with states of 48 * 128 * 128 floats, 3.1 MB, whatever the width.
TEST(ModelShapes, AHybridReadsAndWritesItsStatesOnceAPass) {
  RecordedModel model(model_shape("qwen3.5-27b-q4_k"));
  for (const uint32_t width : {1u, 32u}) {
    double bytes = 0;
    for (const Op& op : model.record(width, 0, 0)) {
      if (const auto* recurrence = std::get_if<DeltaNetArgs>(&op))
        bytes += work_of_recurrence(*recurrence, 32, 1).memory_bytes;
    }
    EXPECT_EQ(bytes, 48 * 2.0 * 48 * 128 * 128 * 4) << width;
  }
}

TEST(ModelShapes, LayersHaveTheirOwnNumbersOfHeads) {
  NamedShape shape = model_shape("tiny-q4_k");
  shape.config.layer_heads = {4, 2};
  shape.config.layer_kv_heads = {2, 1};
  EXPECT_NE(shape_name(shape.config), "tiny-");
  RecordedModel model(shape);
  std::vector<std::pair<uint32_t, uint32_t>> heads;
  for (const Op& op : model.record(3, 0, 0)) {
    if (const auto* attention = std::get_if<AttentionArgs>(&op)) {
      heads.emplace_back(attention->heads, attention->shape.kv_heads);
      EXPECT_EQ(attention->out->cols(), attention->heads * 64);
    }
  }
  EXPECT_EQ(heads, (std::vector<std::pair<uint32_t, uint32_t>>{{4, 2}, {2, 1}}));
}

TEST(ModelShapes, EveryModelHasEveryType) {
  for (const char* model : {"smollm2-135m",
                            "smollm2-1.7b",
                            "llama-2-7b",
                            "llama-3.2-1b",
                            "llama-3.2-3b",
                            "llama-3.1-8b",
                            "llama-3.1-70b",
                            "qwen3-0.6b",
                            "qwen3-1.7b",
                            "qwen3-4b",
                            "qwen3-8b",
                            "qwen3-14b",
                            "qwen3-32b",
                            "qwen3-30b-a3b",
                            "qwen3-coder-30b-a3b",
                            "qwen3.5-9b",
                            "qwen3.5-27b",
                            "qwen3.5-35b-a3b",
                            "qwen3-next-80b-a3b",
                            "gemma-3-4b",
                            "gemma-3-12b",
                            "gemma-4-e2b",
                            "gemma-4-e4b",
                            "gemma-4-12b",
                            "gemma-4-26b-a4b",
                            "gemma-4-31b",
                            "deepseek-v2-lite",
                            "glm-4.7-flash",
                            "granite-4.0-h-micro",
                            "granite-4.0-h-tiny",
                            "granite-4.0-h-small",
                            "qwen3-vl-2b",
                            "qwen3-vl-4b",
                            "qwen3-vl-8b",
                            "qwen3-vl-32b",
                            "qwen3-vl-30b-a3b",
                            "ministral-3-3b",
                            "ministral-3-8b",
                            "ministral-3-14b",
                            "glm-4.5-air",
                            "glm-4.5",
                            "nemotron-nano-9b-v2",
                            "nemotron-3-nano-30b-a3b",
                            "lfm2-350m",
                            "lfm2-700m",
                            "lfm2-1.2b",
                            "lfm2-2.6b"}) {
    EXPECT_NE(allowed_shapes().find(model), std::string::npos);
    for (const char* type : {"bf16", "f16", "q8_0", "q6_k", "q4_k_m", "q4_k", "q4_1", "q4_0"}) {
      const NamedShape shape = model_shape(std::string(model) + "-" + type);
      EXPECT_NO_THROW(validate_config(shape.config)) << shape.name;
      EXPECT_NO_THROW(RecordedModel(shape).record(1, 0, 0)) << shape.name;
      EXPECT_NE(allowed_shapes().find(type), std::string::npos);
    }
  }
}

TEST(ModelShapes, TypesAreThoseOfFiles) {
  const NamedShape medium = model_shape("qwen3-8b-q4_k_m");
  EXPECT_EQ(type_of_tensor(medium, "blk.0.attn_v", 4096), TensorType::q6_k);
  EXPECT_EQ(type_of_tensor(medium, "blk.5.ffn_down", 12288), TensorType::q4_k);
  EXPECT_EQ(type_of_tensor(medium, "blk.35.ffn_down", 12288), TensorType::q6_k);
  EXPECT_EQ(type_of_tensor(medium, "blk.0.attn_q", 4096), TensorType::q4_k);
  EXPECT_EQ(type_of_tensor(medium, "blk.0.ffn_down.127", 768), TensorType::q6_k);
  EXPECT_EQ(type_of_tensor(medium, "blk.0.ffn_up.127", 2048), TensorType::q4_k);
  EXPECT_EQ(type_of_tensor(medium, "blk.0.ffn_gate_inp", 2048), TensorType::f32);
  EXPECT_EQ(type_of_tensor(medium, "output", 4096), TensorType::q6_k);
  EXPECT_EQ(type_of_tensor(medium, "token_embd", 4096), TensorType::q4_k);
  EXPECT_EQ(type_of_tensor(model_shape("qwen3-4b-q4_0"), "token_embd", 2560), TensorType::q6_k);  // tied
  // 576 columns are no whole blocks of 256.
  EXPECT_EQ(type_of_tensor(model_shape("smollm2-135m-q4_k"), "blk.0.attn_q", 576), TensorType::q5_0);
  EXPECT_EQ(type_of_tensor(model_shape("smollm2-135m-q4_k"), "token_embd", 576), TensorType::q8_0);
}

TEST(ModelShapes, OthersAreRefusedWithWhatIsAllowed) {
  for (const char* wrong : {"", "qwen3-8b", "qwen3-8b-q9", "gpt-2-q4_0", "qwen3-8b-q4_k-", "-q4_k", "q4_k"}) {
    const std::string message = message_of([&] { model_shape(wrong); });
    EXPECT_NE(message.find("qwen3-8b"), std::string::npos) << wrong;
    EXPECT_NE(message.find("q4_k"), std::string::npos) << wrong;
  }
  EXPECT_NE(message_of([] { open_for_prediction("/no/such/model"); }).find("/no/such/model"), std::string::npos);
}

}  // namespace
}  // namespace canopy::predict

// Mixtures of experts in files: what is read, and what is refused, by field or tensor.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "engine/format/safetensors.h"
#include "engine/format/tensor_names.h"
#include "tests/base/expect_error.h"
#include "tests/format/golden_path.h"
#include "tests/format/safetensors_builder.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::expect_error;
using test::GgufBuilder;
using test::TempFolder;
using test::tiny_gguf;

TEST(Experts, OfAGgufFileAreOneTensorALayer) {
  const TempFolder folder;
  const ModelFile model = ModelFile::open(folder.write("m.gguf", tiny_gguf("qwen3moe").build()));
  const ModelConfig& config = model.config();
  EXPECT_EQ(config.experts, 4u);
  EXPECT_EQ(config.experts_used, 2u);
  EXPECT_EQ(config.expert_ffn, 16u);
  EXPECT_TRUE(config.shares_among_chosen);
  EXPECT_EQ(config.layers_with_experts(), 1u);
  EXPECT_EQ(layer_specs(config)[0].feed_forward, FeedForward::mixture_of_experts);
  EXPECT_EQ(model.require("blk.0.ffn_gate_inp", 4, 8).rank, 2u);
  // Views of the experts lie one behind the other in the file's tensor.
  const TensorView &first = model.require("blk.0.ffn_down.0", 8, 16), &last = model.require("blk.0.ffn_down.3", 8, 16);
  EXPECT_EQ(first.bytes.size(), 8u * 16 * 4);
  EXPECT_EQ(last.bytes.data(), first.bytes.data() + 3 * first.bytes.size());
  EXPECT_EQ(model.find("blk.0.ffn_down_exps"), nullptr);
}

TEST(Experts, OfAFolderAreTensorsOfTheirOwn) {
  const ModelFile model = ModelFile::open(test::golden("tiny-qwen3-moe"));
  const ModelConfig& config = model.config();
  EXPECT_EQ(config.architecture, "qwen3moe");
  EXPECT_EQ(config.experts, 8u);
  EXPECT_EQ(config.experts_used, 2u);
  EXPECT_EQ(config.has_experts, (std::vector<bool>{true, false, true, true}));
  model.require("blk.3.ffn_up.7", 32, 64);
  model.require("blk.1.ffn_up", 128, 64);
  EXPECT_EQ(model.find("blk.1.ffn_gate_inp"), nullptr);
}

/// The weights of tiny-qwen3_5-moe with the experts of a layer as tensors of three dimensions, gate and up of each in
/// one, as the model's makers publish them.
std::string with_stacked_experts(const std::filesystem::path& folder) {
  test::SafetensorsBuilder builder;
  const ModelFile model = ModelFile::open(folder);
  const SafetensorsFolder found = SafetensorsFolder::open(folder);
  const auto bytes = [](const TensorView& tensor) {
    return std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  };
  for (const TensorView& tensor : found.tensors()) {
    if (tensor.name.find(".mlp.experts.") != std::string::npos) continue;
    builder.tensor(tensor.name, "BF16", {tensor.shape.begin(), tensor.shape.begin() + tensor.rank}, bytes(tensor));
  }
  for (uint32_t n = 0; n < model.config().layers; ++n) {
    const std::string layer = "blk." + std::to_string(n) + ".";
    std::string gate_up, down;
    for (uint32_t e = 0; e < model.config().experts; ++e) {
      const std::string number = "." + std::to_string(e);
      gate_up += bytes(*model.find(layer + "ffn_gate" + number)) + bytes(*model.find(layer + "ffn_up" + number));
      down += bytes(*model.find(layer + "ffn_down" + number));
    }
    const std::string experts = "model.layers." + std::to_string(n) + ".mlp.experts.";
    const ModelConfig& c = model.config();
    builder.tensor(experts + "gate_up_proj", "BF16", {c.experts, 2 * c.expert_ffn, c.hidden}, gate_up);
    builder.tensor(experts + "down_proj", "BF16", {c.experts, c.hidden, c.expert_ffn}, down);
  }
  return builder.build();
}

TEST(Experts, OfAFolderMayBeTwoTensorsALayer) {
  const ModelFile each = ModelFile::open(test::golden("tiny-qwen3_5-moe"));
  const TempFolder folder;
  std::filesystem::copy_file(test::golden("tiny-qwen3_5-moe") / "config.json", folder.path() / "config.json");
  folder.write("model.safetensors", with_stacked_experts(test::golden("tiny-qwen3_5-moe")));
  const ModelFile stacked = ModelFile::open(folder.path());
  for (const RequiredTensor& wanted : required_tensors(each.config())) {
    EXPECT_TRUE(std::ranges::equal(each.require(wanted.name, wanted.rows, wanted.cols).bytes,
                                   stacked.require(wanted.name, wanted.rows, wanted.cols).bytes))
        << wanted.name;
  }
}

TEST(Experts, NamesOfTensors) {
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.12.mlp.experts.103.gate_proj.weight"),
            "blk.12.ffn_gate.103");
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.0.mlp.gate.weight"), "blk.0.ffn_gate_inp");
  EXPECT_EQ(canonical_name_from_hugging_face("model.layers.0.mlp.experts.weight"), "model.layers.0.mlp.experts.weight");
  EXPECT_EQ(without_expert("blk.12.ffn_gate.103"), "blk.12.ffn_gate");
  EXPECT_EQ(without_expert("blk.12.ffn_gate"), "blk.12.ffn_gate");
  EXPECT_EQ(without_expert("token_embd"), "token_embd");
}

std::string moe_config(const std::string& extra = "") {
  return R"({"architectures":["Qwen3MoeForCausalLM"],"hidden_size":8,"num_hidden_layers":6,"num_attention_heads":2,)"
         R"("num_key_value_heads":1,"intermediate_size":16,"vocab_size":10,"max_position_embeddings":64,)"
         R"("rms_norm_eps":1e-5,"num_experts_per_tok":2,"moe_intermediate_size":16)" +
         extra + "}";
}

TEST(Experts, FieldsOfConfigJson) {
  const ModelConfig all = read_hf_config(moe_config(R"(,"num_experts":4)"), "");
  EXPECT_EQ(all.has_experts, std::vector<bool>(6, true));
  EXPECT_FALSE(all.shares_among_chosen);
  EXPECT_TRUE(all.has_qk_norm);
  const ModelConfig some = read_hf_config(
      moe_config(R"(,"num_local_experts":4,"norm_topk_prob":true,"decoder_sparse_step":2,"mlp_only_layers":[3])"), "");
  EXPECT_EQ(some.experts, 4u);
  EXPECT_EQ(some.has_experts, (std::vector<bool>{false, true, false, false, false, true}));
  EXPECT_TRUE(some.shares_among_chosen);

  const auto refused = [](const char* message, const std::string& extra) {
    expect_error(message, [&] { read_hf_config(moe_config(extra), ""); });
  };
  refused("config.json lacks the field 'num_experts'", "");
  refused("The model's expert count is 0; 2 to 1024 is allowed.", R"(,"num_experts":0)");
  refused("The model's expert count is 1; 2 to 1024 is allowed.", R"(,"num_experts":1)");
  refused("The model's expert count is 1025; 2 to 1024", R"(,"num_experts":1025)");
  expect_error("512 layers with 1024 experts each; at most 65536 experts", [] {
    std::string config = moe_config(R"(,"num_experts":1024)");
    read_hf_config(config.replace(config.find("_layers\":6"), 10, "_layers\":512"), "");
  });
  refused("'mlp_only_layers' of config.json holds 6; numbers of layers, 0 to 5, are allowed",
          R"(,"num_experts":4,"mlp_only_layers":[6])");
  refused("'mlp_only_layers' of config.json holds -1;", R"(,"num_experts":4,"mlp_only_layers":[-1])");
}

struct ExpertCase {
  const char* name;
  const char* message;
  std::function<void(GgufBuilder&)> change;
};

void PrintTo(const ExpertCase& c, std::ostream* out) {
  *out << c.name;
}

template <class T>
std::function<void(GgufBuilder&)> with_key(const char* key, T value) {
  return [key, value](GgufBuilder& b) { b.without(key).value<T>(key, value); };
}

std::function<void(GgufBuilder&)> with_shape(const char* tensor, std::vector<uint64_t> dimensions) {
  return [tensor, dimensions](GgufBuilder& b) { b.without_tensor(tensor).zeros(tensor, dimensions); };
}

const ExpertCase expert_cases[] = {
    {"CountMissing", "The metadata 'qwen3moe.expert_count' is missing.",
     [](auto& b) { b.without("qwen3moe.expert_count"); }},
    {"CountZero", "expert count is 0; 2 to 1024 is allowed", with_key<uint32_t>("qwen3moe.expert_count", 0)},
    {"CountHuge", "expert count is 4294967295; 2 to 1024", with_key<uint32_t>("qwen3moe.expert_count", UINT32_MAX)},
    {"CountOther", "The tensor 'blk.0.ffn_gate_exps' has the shape [4, 16, 8]; [5, 16, 8] is expected.",
     with_key<uint32_t>("qwen3moe.expert_count", 5)},
    {"UsedMissing", "The metadata 'qwen3moe.expert_used_count' is missing.",
     [](auto& b) { b.without("qwen3moe.expert_used_count"); }},
    {"UsedZero", "number of experts that a token uses is 0; 1 to 4",
     with_key<uint32_t>("qwen3moe.expert_used_count", 0)},
    {"UsedAboveCount", "number of experts that a token uses is 5; 1 to 4",
     with_key<uint32_t>("qwen3moe.expert_used_count", 5)},
    {"WidthZero", "feed-forward size of an expert is 0", with_key<uint32_t>("qwen3moe.expert_feed_forward_length", 0)},
    {"WidthOther", "The tensor 'blk.0.ffn_gate_exps' has the shape [4, 16, 8]; [4, 8, 8] is expected.",
     with_key<uint32_t>("qwen3moe.expert_feed_forward_length", 8)},
    {"SharedExperts", "'qwen3moe.expert_shared_count' is 1; only 0 is supported",
     with_key<uint32_t>("qwen3moe.expert_shared_count", 1)},
    {"Sigmoid", "'qwen3moe.expert_gating_func' is 2; only 1 is supported",
     with_key<uint32_t>("qwen3moe.expert_gating_func", 2)},
    {"DenseLayersFirst", "'qwen3moe.leading_dense_block_count' is 1; only 0",
     with_key<uint32_t>("qwen3moe.leading_dense_block_count", 1)},
    {"RouterMissing", "The tensor 'blk.0.ffn_gate_inp' is missing; its shape should be [4, 8].",
     [](auto& b) { b.without_tensor("blk.0.ffn_gate_inp.weight"); }},
    {"RouterOther", "The tensor 'blk.0.ffn_gate_inp' has the shape [3, 8]; [4, 8] is expected.",
     with_shape("blk.0.ffn_gate_inp.weight", {8, 3})},
    {"RouterType", "The tensor 'blk.0.ffn_gate_inp' is stored as I32",
     [](auto& b) {
       b.without_tensor("blk.0.ffn_gate_inp.weight").zeros("blk.0.ffn_gate_inp.weight", {8, 4}, TensorType::i32);
     }},
    {"ExpertsMissing", "The tensor 'blk.0.ffn_up_exps' is missing; its shape should be [4, 16, 8].",
     [](auto& b) { b.without_tensor("blk.0.ffn_up_exps.weight"); }},
    {"ExpertsTransposed", "The tensor 'blk.0.ffn_down_exps' has the shape [4, 16, 8]; [4, 8, 16] is expected.",
     with_shape("blk.0.ffn_down_exps.weight", {8, 16, 4})},
    {"ExpertsFlat", "The tensor 'blk.0.ffn_up_exps' has the shape [64, 8]; [4, 16, 8] is expected.",
     with_shape("blk.0.ffn_up_exps.weight", {8, 64})},
    {"FeedForwardBesides", "The tensor 'blk.0.ffn_up' has no place in the architecture qwen3moe",
     [](auto& b) {
       b.zeros("blk.0.ffn_up.weight", {8, 16});
     }},
    {"BiasOfARouter", "The tensor 'blk.0.exp_probs_b.bias' has no place in the architecture qwen3moe",
     [](auto& b) { b.tensor("blk.0.exp_probs_b.bias", {4}, TensorType::f32, std::string(16, '?')); }},
};

class ExpertsRefused : public testing::TestWithParam<ExpertCase> {};

TEST_P(ExpertsRefused, SaysWhy) {
  const TempFolder folder;
  GgufBuilder builder = tiny_gguf("qwen3moe");
  GetParam().change(builder);
  const auto path = folder.write("m.gguf", builder.build());
  const std::string message = test::error_of([&] { ModelFile::open(path); });
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_NE(message.find("m.gguf"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Gguf, ExpertsRefused, testing::ValuesIn(expert_cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy

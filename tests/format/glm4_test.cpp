// GLM-4.5 and later in files: folders and GGUF files, the head behind the last layer, and what is refused.

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/describe.h"
#include "engine/format/model_file.h"
#include "engine/format/mtp_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"
#include "tests/format/safetensors_builder.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using nlohmann::json;

constexpr const char* kTiny = "tiny-glm4moe";

json glm4_config() {
  return json::parse(file_bytes(golden(kTiny) / "config.json"));
}

ModelConfig read_glm4(const json& config) {
  return read_hf_config(config.dump(), "");
}

TEST(Glm4, FoldersAndGgufFilesSayTheSame) {
  for (const char* name : {"tiny-glm4moe", "tiny-glm4moe-f16.gguf"}) {
    SCOPED_TRACE(name);
    const ModelFile file = ModelFile::open(golden(name));
    const ModelConfig& config = file.config();
    EXPECT_EQ(config.architecture, "glm4moe");
    EXPECT_EQ(config.rotary_dim, 8u);
    EXPECT_TRUE(config.has_qkv_bias && config.has_qk_norm);
    EXPECT_EQ(config.has_experts, (std::vector<bool>{false, true, true}));
    EXPECT_EQ(config.experts_used, 2u);
    EXPECT_EQ(config.shared_ffn, 16u);
    EXPECT_EQ(config.share_factor, 1.5f);
    EXPECT_TRUE(config.router_has_sigmoid && config.has_choice_bias && config.shares_among_chosen);
    EXPECT_FALSE(config.gates_shared_expert);
    EXPECT_EQ(config.unread_layers, 0u);
    EXPECT_FALSE(MtpFile::is_in(file));
  }
}

TEST(Glm4, BiasesAndNormsOfHeadsAreThoseOfTheFile) {
  json plain = glm4_config();
  plain.erase("attention_bias");
  plain.erase("use_qk_norm");
  EXPECT_FALSE(read_glm4(plain).has_qkv_bias || read_glm4(plain).has_qk_norm);
  const TempFolder folder;
  RandomModel random;
  random.architecture = "glm4moe";
  random.layers = 3;
  for (const bool normed : {false, true}) {
    random.normed_heads = normed;
    const ModelFile file = ModelFile::open(folder.write("model.gguf", random.build()));
    EXPECT_TRUE(file.config().has_qkv_bias);
    EXPECT_EQ(file.config().has_qk_norm, normed);
  }
  GgufBuilder lacking = random.builder();
  lacking.without_tensor("blk.1.attn_q_norm.weight");
  const auto path = folder.write("model.gguf", lacking.build());
  expect_error("blk.1.attn_q_norm", [&] { ModelFile::open(path); });
}

TEST(Glm4, FoldersAreRefusedByField) {
  const auto refused = [](const char* says, const std::function<void(json&)>& change) {
    json config = glm4_config();
    change(config);
    expect_error(says, [&] { read_glm4(config); });
  };
  for (const char* field : {"hidden_size", "num_experts_per_tok", "moe_intermediate_size", "rms_norm_eps"}) {
    refused(field, [&](json& config) { config.erase(field); });
  }
  refused("'partial_rotary_factor' of config.json is 0.0", [](json& config) { config["partial_rotary_factor"] = 0.0; });
  refused("'attention_bias'", [](json& config) { config["attention_bias"] = "yes"; });
  refused("'use_qk_norm'", [](json& config) { config["use_qk_norm"] = 1; });
  refused("'mlp_bias' of config.json is true", [](json& config) { config["mlp_bias"] = true; });
  refused("'scoring_func' of config.json is 'tanh'", [](json& config) { config["scoring_func"] = "tanh"; });
  refused("8 experts are in 3 groups", [](json& config) { config["n_group"] = 3; });
  refused("factor of the experts' shares", [](json& config) { config["routed_scaling_factor"] = -1; });
}

TEST(Glm4, GgufFilesAreRefusedByKey) {
  const auto refused = [](const char* says, const char* key, uint32_t value) {
    const TempFolder folder;
    const auto path = folder.write("model.gguf", renumbered("tiny-glm4moe-f16.gguf", key, value));
    expect_error(says, [&] { ModelFile::open(path); });
  };
  refused("'glm4moe.expert_gating_func' is 3", "glm4moe.expert_gating_func", 3);
  refused("'glm4moe.nextn_predict_layers' is 3; less than 'glm4moe.block_count', 3,", "glm4moe.nextn_predict_layers",
          3);
  refused("expert", "glm4moe.expert_used_count", 9);
  refused("'blk.1.ffn_gate'", "glm4moe.leading_dense_block_count", 2);
  refused("turns 18 elements", "glm4moe.rope.dimension_count", 18);
}

/// The tiny folder with one more layer, as published folders have their heads: the last layer's tensors once more, and
/// what the head has beside them. `changed`: a name in the place of another.
void write_folder_with_head(const TempFolder& folder, const std::string& from = "", const std::string& to = "") {
  const std::string bytes = file_bytes(golden(kTiny) / "model.safetensors");
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  const json header = json::parse(bytes.substr(sizeof(size), size));
  SafetensorsBuilder builder;
  const auto add = [&](const std::string& name, const std::string& type, const std::vector<uint64_t>& shape,
                       const std::string& data) { builder.tensor(name == from ? to : name, type, shape, data); };
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry["data_offsets"][0].get<uint64_t>(), end = entry["data_offsets"][1].get<uint64_t>();
    const std::string data = bytes.substr(sizeof(size) + size + begin, end - begin);
    const auto shape = entry["shape"].get<std::vector<uint64_t>>();
    add(name, "BF16", shape, data);
    constexpr std::string_view last = "model.layers.2.";
    if (name.starts_with(last)) add("model.layers.3." + name.substr(last.size()), "BF16", shape, data);
  }
  const auto zeros = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    uint64_t count = 4;
    for (const uint64_t extent : shape) count *= extent;
    add("model.layers.3." + name, "F32", shape, std::string(count, '\0'));
  };
  zeros("eh_proj.weight", {32, 64});
  for (const char* name : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight"}) zeros(name, {32});
  for (const char* name : {"embed_tokens.weight", "shared_head.head.weight"}) zeros(name, {280, 32});
  json config = glm4_config();
  config["num_nextn_predict_layers"] = 1;
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", builder.build());
}

TEST(Glm4, TheLayerBehindTheLastIsAHeadAndNotRead) {
  const TempFolder folder;
  write_folder_with_head(folder);
  const ModelFile model = ModelFile::open(folder.path());
  EXPECT_EQ(model.config().layers, 3u);
  EXPECT_TRUE(MtpFile::is_in(model));
  const MtpFile head = MtpFile::open(folder.path());
  EXPECT_EQ(head.model_layers(), 3u);
  EXPECT_TRUE(head.config().layer_has_experts(0));
  EXPECT_TRUE(head.has_own_embedding() && head.has_own_output());
  EXPECT_NO_THROW(head.require("fc", 32, 64));
  EXPECT_NO_THROW(head.require("blk.0.exp_probs_b.bias", 1, 8));
  EXPECT_NO_THROW(head.require("blk.0.ffn_up.7", 16, 32));
  EXPECT_EQ(check_pair(model, head), std::vector<std::string>());
  EXPECT_TRUE(describe_json(folder.path())["config"]["mtp_head"].contains("parameters"));

  RandomModel random;
  random.architecture = "glm4moe";
  random.layers = 3;
  random.further = true;
  const auto path = folder.write("head.gguf", random.build());
  const ModelFile gguf = ModelFile::open(path);
  EXPECT_EQ(gguf.config().layers, 3u);
  EXPECT_EQ(gguf.config().has_experts.size(), 3u);
  EXPECT_TRUE(MtpFile::is_in(gguf));
  EXPECT_NO_THROW(MtpFile::open(path).require("blk.0.attn_q.bias", 1, 64));
}

TEST(Glm4, DamagedHeadsAreRefusedByName) {
  const auto refused = [](const std::string& from, const std::string& to, const char* says) {
    const TempFolder folder;
    write_folder_with_head(folder, from, to);
    EXPECT_NO_THROW(ModelFile::open(folder.path()));
    expect_error(says, [&] { MtpFile::open(folder.path()); });
  };
  refused("model.layers.3.enorm.weight", "model.layers.3.xnorm.weight",
          "The tensor 'model.layers.3.enorm.weight' of the head that predicts further tokens is missing; its shape "
          "should be [32].");
  refused("model.layers.3.mlp.gate.weight", "model.layers.3.mlp.gate2.weight",
          "The tensor 'model.layers.3.mlp.gate.weight' of the head");
  refused("model.layers.3.embed_tokens.weight", "model.layers.3.embed.weight",
          "The tensor 'model.layers.3.embed.weight' has no place in the head");
  const TempFolder folder;
  write_folder_with_head(folder);
  json config = glm4_config();
  config["num_nextn_predict_layers"] = 2;
  folder.write("config.json", config.dump());
  expect_error("The model has 2 layers that predict further tokens ('num_nextn_predict_layers' of config.json); one is",
               [&] { MtpFile::open(folder.path()); });
}

}  // namespace
}  // namespace canopy::test

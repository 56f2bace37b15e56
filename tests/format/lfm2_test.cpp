// LFM2 in files: kinds of layers and sizes of folders and GGUF files, and what is refused.

#include "engine/format/hybrids.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/format/architecture.h"
#include "engine/format/config_hf.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

using nlohmann::json;

json lfm2_config() {
  return json::parse(file_bytes(golden("tiny-lfm2") / "config.json"));
}

ModelConfig read_lfm2(const json& config) {
  return read_hf_config(config.dump(), "");
}

TEST(Lfm2, FoldersAndGgufFilesSayTheSame) {
  for (const char* name : {"tiny-lfm2", "tiny-lfm2-f16.gguf"}) {
    SCOPED_TRACE(name);
    const ModelFile file = ModelFile::open(golden(name));
    const ModelConfig& config = file.config();
    EXPECT_EQ(config.architecture, "lfm2");
    EXPECT_EQ(config.recurrent, (std::vector<bool>{true, true, false, true, false}));
    EXPECT_EQ(config.conv_taps, 3u);
    EXPECT_EQ(config.heads, 4u);
    EXPECT_EQ(config.kv_heads, 2u);
    EXPECT_TRUE(config.layer_kv_heads.empty());
    EXPECT_EQ(config.ffn, 64u);
    EXPECT_TRUE(config.has_qk_norm && config.tied_head);
    const std::vector<LayerSpec> layers = layer_specs(config);
    EXPECT_EQ(layers[0].mixer, Mixer::short_convolution);
    EXPECT_EQ(layers[2].mixer, Mixer::attention);
    EXPECT_NO_THROW(file.require("output_norm", 1, 32));
    EXPECT_NO_THROW(file.require("blk.3.shortconv.conv", 32, 3));
  }
}

// As the published configurations have it: 350M, 1.2B and 2.6B.
TEST(Lfm2, FeedForwardSizesAreCutAsTheModelsAre) {
  json config = lfm2_config();
  config["block_auto_adjust_ff_dim"] = true;
  for (const auto& [stated, size] : {std::pair{6656u, 4608u}, {10240u, 6912u}, {12288u, 8192u}}) {
    config["block_ff_dim"] = stated;
    EXPECT_EQ(read_lfm2(config).ffn, size);
    json usual = config;
    usual.erase("block_auto_adjust_ff_dim");
    EXPECT_EQ(read_lfm2(usual).ffn, size);
  }
  config["block_ffn_dim_multiplier"] = nullptr;
  EXPECT_EQ(read_lfm2(config).ffn, 8192u);
  config["block_ff_dim"] = 12290;
  EXPECT_EQ(read_lfm2(config).ffn, 8193u) << "to no multiple";
  config["block_auto_adjust_ff_dim"] = false;
  config["block_ff_dim"] = 10752;
  EXPECT_EQ(read_lfm2(config).ffn, 10752u);
}

TEST(Lfm2, LayersOfAttentionMayBeListed) {
  json config = lfm2_config();
  config["layer_types"] = nullptr;
  config["full_attn_idxs"] = {2, 4};
  EXPECT_EQ(read_lfm2(config).recurrent, (std::vector<bool>{true, true, false, true, false}));
  config["full_attn_idxs"] = nullptr;
  EXPECT_TRUE(read_lfm2(config).recurrent.empty()) << "all are";
  config["tie_word_embeddings"] = nullptr;
  EXPECT_TRUE(read_lfm2(config).tied_head);
  config["tie_embedding"] = false;
  EXPECT_FALSE(read_lfm2(config).tied_head);
}

TEST(Lfm2, FoldersAreRefusedByField) {
  const auto refused = [](const char* says, const std::function<void(json&)>& change) {
    json config = lfm2_config();
    change(config);
    expect_error(says, [&] { read_lfm2(config); });
  };
  refused("'layer_types' of config.json holds \"mamba\"", [](json& c) { c["layer_types"][1] = "mamba"; });
  refused("'layer_types' of config.json has 4 entries; the model has 5", [](json& c) { c["layer_types"].erase(1); });
  refused("'full_attn_idxs' of config.json holds 5", [](json& c) {
    c.erase("layer_types");
    c["full_attn_idxs"] = {2, 5};
  });
  refused("recurrent layers only", [](json& c) {
    c.erase("layer_types");
    c["full_attn_idxs"] = json::array();
  });
  refused("'conv_L_cache' of config.json is 0", [](json& c) { c["conv_L_cache"] = 0; });
  refused("length of the short convolution is 1; 2 to 8", [](json& c) { c["conv_L_cache"] = 1; });
  refused("length of the short convolution is 9", [](json& c) { c["conv_L_cache"] = 9; });
  refused("'conv_bias' of config.json is true", [](json& c) { c["conv_bias"] = true; });
  refused("'intermediate_size'", [](json& c) { c.erase("intermediate_size"); });
  refused("'norm_eps'", [](json& c) { c["norm_eps"] = "small"; });
  refused("RMS norm epsilon is 0", [](json& c) { c["norm_eps"] = 0; });
  refused("'tie_embedding'", [](json& c) { c["tie_embedding"] = 1; });
  refused("'block_multiple_of' of config.json is 0", [](json& c) {
    c["block_auto_adjust_ff_dim"] = true;
    c["block_multiple_of"] = 0;
  });
  refused("'block_ffn_dim_multiplier' of config.json is -1.0", [](json& c) {
    c["block_auto_adjust_ff_dim"] = true;
    c["block_ffn_dim_multiplier"] = -1.0;
  });
}

TEST(Lfm2, GgufFilesAreRefusedByKeyAndTensor) {
  const TempFolder folder;
  RandomModel random;
  random.architecture = "lfm2";
  random.layers = 4;
  const auto refused = [&](const char* says, const std::function<void(GgufBuilder&)>& change) {
    GgufBuilder builder = random.builder();
    change(builder);
    const auto path = folder.write("model.gguf", builder.build());
    expect_error(says, [&] { ModelFile::open(path); });
  };
  const auto heads = [](std::vector<uint32_t> counts) {
    return [counts = std::move(counts)](GgufBuilder& b) {
      b.without("lfm2.attention.head_count_kv").numbers<uint32_t>("lfm2.attention.head_count_kv", counts);
    };
  };
  const auto taps = [](uint32_t count) {
    return [count](GgufBuilder& b) {
      b.without("lfm2.shortconv.l_cache").value<uint32_t>("lfm2.shortconv.l_cache", count);
    };
  };
  EXPECT_NO_THROW(ModelFile::open(folder.write("model.gguf", random.build())));
  refused("'lfm2.attention.head_count_kv' has 3 elements", heads({0, 2, 0}));
  refused("key/value head count is 0", heads({0, 0, 0, 0}));
  refused("'blk.2.attn_q'", heads({0, 2, 2, 2}));
  refused("'lfm2.shortconv.l_cache' is 0", taps(0));
  refused("'blk.0.shortconv.conv'", taps(4));
  refused("lfm2.shortconv.l_cache", [](GgufBuilder& b) { b.without("lfm2.shortconv.l_cache"); });
  refused("'output_norm'", [](GgufBuilder& b) { b.without_tensor("token_embd_norm.weight"); });
  refused("'blk.2.shortconv.out_proj'", [](GgufBuilder& b) { b.without_tensor("blk.2.shortconv.out_proj.weight"); });
}

// Messages speak by the folder's own names.
TEST(Lfm2, TensorsOfFoldersAreNamedAsThere) {
  const TempFolder folder;
  const std::string weights = file_bytes(golden("tiny-lfm2") / "model.safetensors");
  folder.write("config.json", lfm2_config().dump());
  for (const char* name : {"model.layers.1.conv.conv.weight", "model.layers.1.operator_norm.weight",
                           "model.layers.2.self_attn.q_layernorm.weight", "model.layers.2.self_attn.out_proj.weight",
                           "model.layers.4.feed_forward.w3.weight", "model.embedding_norm.weight"}) {
    std::string bytes = weights;
    const size_t at = bytes.find("\"" + std::string(name) + "\"");
    ASSERT_NE(at, std::string::npos) << name;
    bytes[at + std::string(name).size() - 8] = 'x';  // in front of ".weight"
    folder.write("model.safetensors", bytes);
    expect_error("'" + std::string(name) + "' is missing", [&] { ModelFile::open(folder.path()); });
  }
}

}  // namespace
}  // namespace canopy::test

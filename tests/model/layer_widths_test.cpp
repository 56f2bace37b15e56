// Files that state sizes by layer, as an array: feed-forwards may differ, numbers of heads are the same in all layers
// with attention.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/model/model.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

constexpr uint32_t kNarrow = 64, kWide = 96;  // of layer 1, of the others

/// The elements of layer 1's feed-forward from kNarrow on are 0.
GgufBuilder with_idle_elements() {
  GgufBuilder b = RandomModel{.layers = 3, .ffn = kWide}.builder();
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (tensor.name != "blk.1.ffn_gate.weight" && tensor.name != "blk.1.ffn_up.weight") continue;
    const size_t kept = size_t{kNarrow} * tensor.dimensions[0] * sizeof(float);
    std::fill(tensor.data.begin() + static_cast<std::ptrdiff_t>(kept), tensor.data.end(), '\0');
  }
  return b;
}

/// The same without them.
GgufBuilder with_narrow_layer() {
  GgufBuilder b = with_idle_elements();
  b.without("llama.feed_forward_length").numbers<uint32_t>("llama.feed_forward_length", {kWide, kNarrow, kWide});
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (tensor.name == "blk.1.ffn_gate.weight" || tensor.name == "blk.1.ffn_up.weight") {
      tensor.data.resize(size_t{kNarrow} * tensor.dimensions[0] * sizeof(float));
      tensor.dimensions[1] = kNarrow;
    }
    if (tensor.name != "blk.1.ffn_down.weight") continue;
    std::string cut;
    for (uint64_t row = 0; row < tensor.dimensions[1]; ++row) {
      cut += tensor.data.substr(row * kWide * sizeof(float), kNarrow * sizeof(float));
    }
    tensor.data = cut;
    tensor.dimensions[0] = kNarrow;
  }
  return b;
}

std::unique_ptr<Model> loaded(const GgufBuilder& b, const TempFolder& folder) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  return Model::load(device_under_test(), ModelFile::open(folder.write("m.gguf", b.build())), options);
}

std::vector<float> logits_of_text(Model& model) {
  RowBatch text;
  for (uint32_t i = 0; i < 13; ++i) text.add_text((11 * i + 5) % 77, i);
  return run_for_all_logits(model, text).logits;
}

TEST(LayerWidths, FeedForwardsMayDiffer) {
  const TempFolder folder, other;
  const auto narrow = loaded(with_narrow_layer(), folder), idle = loaded(with_idle_elements(), other);
  EXPECT_EQ(narrow->config().layer_ffn, (std::vector<uint32_t>{kWide, kNarrow, kWide}));
  EXPECT_EQ(narrow->config().ffn, kWide);
  EXPECT_EQ(narrow->config().mean_ffn(), (2 * kWide + kNarrow + 1) / 3);
  EXPECT_LT(narrow->config().parameters, idle->config().parameters);
  EXPECT_LT(narrow->pass_bytes(), idle->pass_bytes());
  const std::vector<float> of_narrow = logits_of_text(*narrow), of_idle = logits_of_text(*idle);
  ASSERT_EQ(of_narrow.size(), of_idle.size());
  for (size_t i = 0; i < of_idle.size(); ++i) ASSERT_NEAR(of_narrow[i], of_idle[i], tolerance(1e-4, 3e-2)) << i;
}

ModelConfig config_of(const GgufBuilder& b) {
  const TempFolder folder;
  return ModelFile::open(folder.write("m.gguf", b.build())).config();
}

GgufBuilder with_array(const std::string& architecture, const std::string& key, const std::vector<uint32_t>& values,
                       uint32_t layers) {
  GgufBuilder b = RandomModel{.architecture = architecture, .layers = layers}.builder();
  const std::string full = architecture + "." + key;
  b.without(full).numbers<uint32_t>(full, values);
  return b;
}

TEST(LayerWidths, ArraysMaySayTheSameOfEveryLayer) {
  EXPECT_EQ(config_of(with_array("llama", "attention.head_count", {4, 4}, 2)).heads, 4u);
  EXPECT_EQ(config_of(with_array("llama", "attention.head_count_kv", {2, 2}, 2)).kv_heads, 2u);
  const ModelConfig config = config_of(with_array("llama", "feed_forward_length", {96, 96}, 2));
  EXPECT_EQ(config.ffn, 96u);
  EXPECT_TRUE(config.layer_ffn.empty());
  // Recurrent layers have no heads.
  EXPECT_EQ(config_of(with_array("qwen35", "attention.head_count_kv", {0, 0, 0, 2}, 4)).kv_heads, 2u);
}

TEST(LayerWidths, RefusesWhatLayersCannotDifferIn) {
  const auto refused = [](const char* message, const std::string& key, const std::vector<uint32_t>& values) {
    SCOPED_TRACE(message);
    expect_error(message, [&] { config_of(with_array("llama", key, values, static_cast<uint32_t>(values.size()))); });
  };
  refused("'llama.attention.head_count' is 4 in layer 0 and 2 in layer 2; layers with different numbers of heads",
          "attention.head_count", {4, 4, 2});
  refused("'llama.attention.head_count_kv' is 2 in layer 0 and 1 in layer 1", "attention.head_count_kv", {2, 1});
  refused("head count is 0", "attention.head_count", {0, 0});
  refused("feed-forward size in layer 1 is 0", "feed_forward_length", {96, 0});
  expect_error("'llama.feed_forward_length' has 3 elements; 2 are expected, one a layer", [] {
    config_of(with_array("llama", "feed_forward_length", {96, 96, 96}, 2));
  });
  expect_error("'blk.1.ffn_gate' has the shape [96, 64]; [64, 64] is expected", [] {
    config_of(with_array("llama", "feed_forward_length", {96, 64}, 2));
  });
  GgufBuilder negative = RandomModel{}.builder();
  negative.without("llama.feed_forward_length").numbers<int32_t>("llama.feed_forward_length", {96, -1});
  expect_error("Element 1 of the metadata 'llama.feed_forward_length' is -1", [&] { config_of(negative); });
}

}  // namespace
}  // namespace canopy::test

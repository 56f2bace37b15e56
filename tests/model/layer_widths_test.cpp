// Files that state sizes by layer, as an array: feed-forwards and numbers of heads may differ.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "engine/model/model.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/fewer_heads.h"
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

/// A model of 4 heads and 2 K/V heads in all layers that computes what one of {4, 2, 4} and {2, 1, 1} does: in layer 1
/// the second half of the heads is 0, in layer 2 both K/V heads are the same.
GgufBuilder with_idle_heads() {
  constexpr uint32_t head = 16;
  GgufBuilder b = RandomModel{.layers = 3}.builder();
  make_heads_idle(b, "blk.1.");
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (tensor.name != "blk.2.attn_k.weight" && tensor.name != "blk.2.attn_v.weight") continue;
    tensor.data = rows_of(tensor, 0, head) + rows_of(tensor, 0, head);
  }
  return b;
}

/// The same without what is 0 or stands twice.
GgufBuilder with_fewer_heads() {
  GgufBuilder b = with_idle_heads();
  b.without("llama.attention.head_count").numbers<uint32_t>("llama.attention.head_count", {4, 2, 4});
  b.without("llama.attention.head_count_kv").numbers<uint32_t>("llama.attention.head_count_kv", {2, 1, 1});
  leave_out_idle_heads(b, "blk.1.");
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (tensor.name != "blk.2.attn_k.weight" && tensor.name != "blk.2.attn_v.weight") continue;
    tensor.data = rows_of(tensor, 0, tensor.dimensions[1] / 2);
    tensor.dimensions[1] /= 2;
  }
  return b;
}

// A sum with zeros in it is the same sum, and a query does not know how many others share its keys: on every device the
// bits are those of the model with all heads.
TEST(LayerWidths, NumbersOfHeadsMayDiffer) {
  const TempFolder folder, other;
  const auto fewer = loaded(with_fewer_heads(), folder), idle = loaded(with_idle_heads(), other);
  EXPECT_EQ(fewer->config().layer_heads, (std::vector<uint32_t>{4, 2, 4}));
  EXPECT_EQ(fewer->config().layer_kv_heads, (std::vector<uint32_t>{2, 1, 1}));
  EXPECT_EQ(fewer->config().heads, 4u);
  EXPECT_EQ(fewer->config().kv_heads, 2u);
  EXPECT_EQ(fewer->config().mean_kv_heads(), 1u);
  EXPECT_EQ(fewer->config().mean_heads(), 3u);
  EXPECT_LT(fewer->config().parameters, idle->config().parameters);
  EXPECT_LT(fewer->pass_bytes(), idle->pass_bytes());
  EXPECT_EQ(fewer->memory().cache * 6, idle->memory().cache * 4) << "4 K/V heads in three layers instead of 6";
  const std::vector<float> of_fewer = logits_of_text(*fewer), of_idle = logits_of_text(*idle);
  ASSERT_EQ(of_fewer.size(), of_idle.size());
  for (size_t i = 0; i < of_idle.size(); ++i) ASSERT_EQ(of_fewer[i], of_idle[i]) << i;
  // What lies in the caches, of a moved slot as well.
  for (Model* model : {fewer.get(), idle.get()}) model->move_kv(std::vector<KvMove>{{5, 20}, {6, 21}});
  for (uint32_t layer = 0; layer < 3; ++layer) {
    const size_t few = fewer->config().kv_width_of(layer), all = idle->config().kv_width();
    for (const uint32_t slot : {0u, 12u, 20u, 21u}) {
      const std::vector<float> one = fewer->read_kv(layer, true, slot, 1), whole = idle->read_kv(layer, true, slot, 1);
      ASSERT_EQ(one.size(), few);
      ASSERT_EQ(whole.size(), all);
      EXPECT_TRUE(std::ranges::equal(one, std::span(whole).first(few))) << "layer " << layer << ", slot " << slot;
    }
  }
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
  const ModelConfig hybrid = config_of(with_array("qwen35", "attention.head_count_kv", {0, 0, 0, 2}, 4));
  EXPECT_EQ(hybrid.kv_heads, 2u);
  EXPECT_TRUE(hybrid.layer_kv_heads.empty());
}

TEST(LayerWidths, RefusesWhatLayersCannotDifferIn) {
  const auto refused = [](const char* message, const std::string& key, const std::vector<uint32_t>& values) {
    SCOPED_TRACE(message);
    expect_error(message, [&] { config_of(with_array("llama", key, values, static_cast<uint32_t>(values.size()))); });
  };
  refused("'blk.2.attn_q' has the shape [64, 64]; [32, 64] is expected", "attention.head_count", {4, 4, 2});
  refused("'blk.1.attn_k' has the shape [32, 64]; [16, 64] is expected", "attention.head_count_kv", {2, 1});
  refused("head count in layer 1 is 0; 1 to 1024 is allowed", "attention.head_count", {4, 0});
  refused("key/value head count in layer 0 is 0; 1 to 1024 is allowed", "attention.head_count_kv", {0, 2});
  refused("head count in layer 1 is 2000; 1 to 1024 is allowed", "attention.head_count", {4, 2000});
  refused("head count 4 in layer 1 is no multiple of its key/value head count 3", "attention.head_count_kv", {2, 3});
  expect_error("head count in layer 7 is 0; 1 to 1024 is allowed", [] {  // a hybrid's layer of attention
    config_of(with_array("qwen35", "attention.head_count_kv", {0, 0, 0, 2, 0, 0, 0, 0}, 8));
  });
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

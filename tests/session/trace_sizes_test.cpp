// What a recording says of its models: the types that the device kept, not those of the file.

#include "engine/session/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "engine/format/architecture.h"
#include "engine/session/reply_writer.h"
#include "engine/whatif/elsewhere.h"
#include "engine/whatif/model_shapes.h"
#include "engine/whatif/prediction.h"

namespace canopy {
namespace {

std::string type_of(const TraceSizes& sizes, const std::string& kind) {
  const auto found = std::ranges::find_if(sizes.types, [&](const auto& each) { return each.first == kind; });
  return found == sizes.types.end() ? "" : std::string(found->second);
}

TEST(TraceSizes, TypesAreThoseThatTheDeviceKeeps) {
  const ModelFile qwen = predict::random_model(predict::model_shape("qwen3-0.6b-bf16"));
  EXPECT_EQ(type_of(sizes_of(qwen, QuantizeOnLoad::none), "attn_q"), "BF16");
  const TraceSizes quantized = sizes_of(qwen, QuantizeOnLoad::q4_k);
  EXPECT_EQ(type_of(quantized, "attn_q"), "Q4_K");
  EXPECT_EQ(type_of(quantized, "ffn_down"), "Q4_K");
  EXPECT_EQ(type_of(quantized, "token_embd"), "Q8_0") << "the head, which is never cut to four bits";
  // Rows of 576 elements are no whole blocks of 256.
  const ModelFile smollm = predict::random_model(predict::model_shape("smollm2-135m-bf16"));
  EXPECT_EQ(type_of(sizes_of(smollm, QuantizeOnLoad::q4_k), "attn_q"), "Q8_0");
  EXPECT_EQ(type_of(sizes_of(smollm, QuantizeOnLoad::q4_k), "ffn_down"), "Q4_K");
  const ModelFile stored = predict::random_model(predict::model_shape("qwen3-0.6b-q4_k"));
  EXPECT_EQ(type_of(sizes_of(stored, QuantizeOnLoad::q8_0), "attn_q"), "Q4_K");
}

TEST(TraceSizes, NumbersOfHeadsThatDifferAreMeansThatDivide) {
  predict::NamedShape shape = predict::model_shape("tiny-q4_k");
  shape.config.layer_heads = {4, 2};
  shape.config.layer_kv_heads = {2, 1};
  const TraceSizes sizes = sizes_of(predict::random_model(shape), QuantizeOnLoad::none);
  EXPECT_EQ(sizes.kv_heads, 2u) << "1.5, rounded";
  EXPECT_EQ(sizes.heads, 4u) << "3, to a multiple";
}

/// How often a pass of five rows has each op, and the bytes of all of them of that kind.
std::map<std::string, std::pair<uint32_t, uint64_t>> pass_of(const predict::NamedShape& shape) {
  std::map<std::string, std::pair<uint32_t, uint64_t>> ops;
  predict::RecordedModel model(shape);
  for (const Op& op : model.record(5, 100, 0)) {
    auto& [count, bytes] = ops[name_of(op)];
    ++count;
    bytes += price_of(op).bytes;
  }
  return ops;
}

// Biases, latents, scans and experts that all rows go through included.
TEST(TraceSizes, WhatIsPredictedOfARecordingIsWhatItsModelDoes) {
  for (const char* name :
       {"llama-3.2-1b-q4_k", "qwen3-0.6b-q4_k", "qwen3-30b-a3b-q4_k", "qwen3.5-9b-q4_k", "qwen3.5-35b-a3b-q4_k",
        "glm-4.5-air-q4_k", "glm-4.5-q4_k", "deepseek-v2-lite-q4_k", "glm-4.7-flash-q4_k", "granite-4.0-h-micro-q4_k",
        "granite-4.0-h-tiny-q4_k", "lfm2-1.2b-q4_k", "gemma-3-4b-q4_k"}) {
    SCOPED_TRACE(name);
    const predict::NamedShape shape = predict::model_shape(name);
    TraceHeader header;
    header.target.name = "anything";
    header.target.architecture = shape.config.architecture;
    header.target.sizes = sizes_of(predict::random_model(shape), QuantizeOnLoad::none);
    EXPECT_EQ(pass_of(target_shape(header, "")), pass_of(shape));
  }
}

// Where the roofline counts weights by sizes, it counts those of the model: of all matrices, the embedding as the head
// where that is the same one.
TEST(ModelShapes, TheRooflineCountsTheMatricesOfAModel) {
  for (const char* name :
       {"llama-3.2-1b-bf16", "qwen3-30b-a3b-bf16", "qwen3.5-9b-bf16", "qwen3.5-35b-a3b-bf16", "glm-4.5-air-bf16",
        "deepseek-v2-lite-bf16", "glm-4.7-flash-bf16", "granite-4.0-h-tiny-bf16", "granite-4.0-h-small-bf16",
        "lfm2-1.2b-bf16", "nemotron-3-nano-30b-a3b-bf16", "nemotron-nano-9b-v2-bf16"}) {
    SCOPED_TRACE(name);
    const ModelConfig config = predict::model_shape(name).config;
    double matrices = config.tied_head ? double{1} * config.vocab * config.hidden : 0;
    for (const RequiredTensor& tensor : required_tensors(config)) {
      if (tensor.rows > 1) matrices += static_cast<double>(tensor.rows * tensor.cols);
    }
    const PassWork work(model_shape(config));
    EXPECT_NEAR(static_cast<double>(work.bytes(100000, 0).weights) / 2 / matrices, 1, 0.004);
    const double pair = static_cast<double>(work.bytes(1, 1000).kv - work.bytes(1, 999).kv) / 2;
    const uint32_t planes = config.has_latent_attention() ? 1 : 2;
    EXPECT_EQ(pair, double{1} * planes * config.attention_layers() * config.kv_heads * config.head_dim);
  }
}

}  // namespace
}  // namespace canopy

// What a recording says of its models: the types that the device kept, not those of the file.

#include "engine/session/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/whatif/model_shapes.h"

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

}  // namespace
}  // namespace canopy

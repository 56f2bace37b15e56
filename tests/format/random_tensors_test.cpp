#include "engine/format/tensor_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/format/dequantize.h"
#include "engine/format/model_file.h"

namespace canopy {
namespace {

constexpr TensorType kTypes[] = {TensorType::f32,  TensorType::f16,  TensorType::bf16,
                                 TensorType::q8_0, TensorType::q4_0, TensorType::q4_1,
                                 TensorType::q5_0, TensorType::q4_k, TensorType::q6_k};

TEST(RandomTensorsTest, ValuesOfEveryTypeLieAroundZero) {
  constexpr uint64_t count = 256 * 400;
  for (const TensorType type : kTypes) {
    std::vector<std::byte> blocks(tensor_bytes(type, count, "test"));
    fill_random_blocks(type, 7, blocks);
    std::vector<float> values(count);
    dequantize(type, blocks, values);
    double sum = 0, squares = 0, largest = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
      largest = std::max(largest, std::abs(double{value}));
    }
    EXPECT_NEAR(sum / count, 0, 3e-3) << to_string(type);
    EXPECT_NEAR(std::sqrt(squares / count), 0.02, 0.008) << to_string(type);
    EXPECT_LT(largest, 0.15) << to_string(type);
    std::vector<std::byte> again(blocks.size());
    fill_random_blocks(type, 7, again);
    EXPECT_EQ(again, blocks);
    fill_random_blocks(type, 8, again);
    EXPECT_NE(again, blocks);
  }
}

TEST(RandomTensorsTest, SaysWhichTypesThereAre) {
  std::vector<std::byte> blocks(110);
  try {
    fill_random_blocks(TensorType::q3_k, 1, blocks);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("Q3_K; allowed: F32"), std::string::npos) << e.what();
  }
  blocks.resize(33);
  EXPECT_THROW(fill_random_blocks(TensorType::q8_0, 1, blocks), Error);
}

TEST(RandomTensorsTest, MakesAModelOfAConfiguration) {
  ModelConfig config;
  config.architecture = "qwen3";
  config.layers = 2;
  config.hidden = 256;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 64;
  config.ffn = 512;
  config.vocab = 1000;
  config.max_context = 100;
  config.rms_eps = 1e-6f;
  config.rope_theta = 1e6;
  config.has_qk_norm = true;
  config.tied_head = true;
  const auto type_of = [](std::string_view name, uint64_t) {
    return name == "token_embd" ? TensorType::q6_k : TensorType::q4_k;
  };
  const ModelFile model = ModelFile::of_random_weights(config, type_of);
  EXPECT_EQ(model.config().quantization, "Q4_K");
  EXPECT_EQ(model.require("token_embd", 1000, 256).bytes.size(), 210u * 1000);
  EXPECT_EQ(model.require("blk.1.attn_q_norm", 1, 64).type, TensorType::f32);
  EXPECT_FALSE(
      std::ranges::equal(model.require("blk.0.ffn_up", 512, 256).bytes, model.require("blk.1.ffn_up", 512, 256).bytes));
  model.check_unchanged();
  config.heads = 0;
  EXPECT_THROW(ModelFile::of_random_weights(config, type_of), Error);
}

}  // namespace
}  // namespace canopy

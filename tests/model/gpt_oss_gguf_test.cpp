// tiny-gpt-oss and tiny-gpt-oss-mxfp4 as GGUF files, written by the rules of llama.cpp's converter: experts of a layer
// in one tensor, gate and up apart, those of MXFP4 as blocks of that type. They are the same models.

#include <gtest/gtest.h>

#include <map>

#include "engine/format/architecture.h"
#include "engine/format/dequantize.h"
#include "engine/format/model_file.h"
#include "engine/format/tensor.h"
#include "engine/format/tensor_names.h"
#include "tests/base/temp_folder.h"
#include "tests/format/gguf_builder.h"
#include "tests/model/golden_data.h"
#include "tests/model/same_model.h"

namespace canopy::test {
namespace {

void write_oss_metadata(GgufBuilder& b, const ModelConfig& config) {
  const auto key = [](const char* name) { return std::string("gpt-oss.") + name; };
  b.text("general.architecture", "gpt-oss");
  b.value(key("block_count"), config.layers).value(key("context_length"), config.max_context);
  b.value(key("embedding_length"), config.hidden).value(key("feed_forward_length"), config.ffn);
  b.value(key("attention.head_count"), config.heads).value(key("attention.head_count_kv"), config.kv_heads);
  b.value(key("attention.key_length"), config.head_dim).value(key("attention.value_length"), config.head_dim);
  b.value(key("attention.layer_norm_rms_epsilon"), config.rms_eps);
  b.value(key("attention.sliding_window"), config.windows[0]);
  b.value(key("expert_count"), config.experts).value(key("expert_used_count"), config.experts_used);
  b.value(key("expert_feed_forward_length"), config.expert_ffn);
  b.value(key("rope.freq_base"), static_cast<float>(config.rope_theta)).text(key("rope.scaling.type"), "yarn");
  b.value(key("rope.scaling.factor"), static_cast<float>(config.rope_scaling.factor));
  b.value(key("rope.scaling.original_context_length"), config.rope_scaling.original_context);
}

std::string bytes_of(const TensorView& tensor, TensorType type) {
  std::vector<std::byte> made;
  const auto rows = rows_of(tensor, 0, tensor.rows(), made);
  if (type == tensor.type) return {reinterpret_cast<const char*>(rows.data()), rows.size()};
  std::vector<float> values(tensor.elements());
  dequantize(tensor.type, rows, values);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string oss_as_gguf(const ModelFile& file) {
  GgufBuilder builder;
  write_oss_metadata(builder, file.config());
  std::map<std::string, std::string> experts;  // by the tensor of a layer
  for (const TensorView& tensor : file.tensors()) {
    const bool is_vector = tensor.rank == 1, is_bias = tensor.name.ends_with(".bias");
    const std::string base(without_expert(tensor.name));
    if (base != tensor.name) {
      experts[base] += bytes_of(tensor, tensor.type);
      if (!tensor.name.ends_with("." + std::to_string(file.config().experts - 1))) continue;
      builder.tensor(base + "_exps.weight", {tensor.cols(), tensor.rows(), file.config().experts}, tensor.type,
                     experts[base]);
      continue;
    }
    std::string name = tensor.name;
    if (name.ends_with("ffn_norm")) name.replace(name.size() - 8, 8, "post_attention_norm");
    const TensorType type = is_vector || is_bias ? TensorType::f32 : tensor.type;
    const std::vector<uint64_t> dimensions =
        is_vector ? std::vector<uint64_t>{tensor.cols()} : std::vector<uint64_t>{tensor.cols(), tensor.rows()};
    builder.tensor(name + (is_bias ? "" : ".weight"), dimensions, type, bytes_of(tensor, type));
  }
  return builder.build();
}

class GptOssGguf : public ::testing::TestWithParam<const char*> {};

TEST_P(GptOssGguf, IsTheModelOfTheFolder) {
  const TempFolder folder;
  const ModelFile original = ModelFile::open(golden_folder() / GetParam());
  const ModelFile file = ModelFile::open(folder.write("model.gguf", oss_as_gguf(original)));
  EXPECT_EQ(file.config().windows, original.config().windows);
  expect_same_model(file, original, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Experts, GptOssGguf, ::testing::Values("tiny-gpt-oss", "tiny-gpt-oss-mxfp4"),
                         [](const auto& info) {
                           return std::string(info.param).ends_with("mxfp4") ? "Mxfp4" : "Bf16";
                         });

}  // namespace
}  // namespace canopy::test

// tiny-gemma2 and tiny-gemma3 as GGUF files, written by the rules of llama.cpp's converter: norms with the 1 that they
// are stored without in folders. They are the same models.

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "engine/format/dequantize.h"
#include "engine/format/model_file.h"
#include "tests/base/temp_folder.h"
#include "tests/format/gguf_builder.h"
#include "tests/model/golden_data.h"
#include "tests/model/same_model.h"

namespace canopy::test {
namespace {

void write_gemma_metadata(GgufBuilder& b, const ModelConfig& config) {
  const auto key = [&](const char* name) { return config.architecture + "." + name; };
  b.text("general.architecture", config.architecture);
  b.value(key("block_count"), config.layers).value(key("context_length"), config.max_context);
  b.value(key("embedding_length"), config.hidden).value(key("feed_forward_length"), config.ffn);
  b.value(key("attention.head_count"), config.heads).value(key("attention.head_count_kv"), config.kv_heads);
  b.value(key("attention.key_length"), config.head_dim).value(key("attention.value_length"), config.head_dim);
  b.value(key("attention.layer_norm_rms_epsilon"), config.rms_eps);
  b.value(key("attention.sliding_window"), config.windows[0]);
  b.value(key("rope.freq_base"), static_cast<float>(config.rope_theta));
  if (config.architecture == "gemma2") {
    b.value(key("attn_logit_softcapping"), config.attention_softcap);
    b.value(key("final_logit_softcapping"), config.logit_softcap);
    return;
  }
  b.text(key("rope.scaling.type"), "linear");
  b.value(key("rope.scaling.factor"), static_cast<float>(config.rope_scaling.factor));
  b.value<uint32_t>(key("attention.sliding_window_pattern"), 2);
}

std::string gemma_as_gguf(const ModelFile& file) {
  GgufBuilder builder;
  write_gemma_metadata(builder, file.config());
  for (const TensorView& tensor : file.tensors()) {
    std::string name = tensor.name;
    for (const auto& [ours, theirs] :
         {std::pair{"attn_post_norm", "post_attention_norm"}, {"ffn_post_norm", "post_ffw_norm"}}) {
      if (name.ends_with(ours)) name.replace(name.size() - std::string(ours).size(), std::string::npos, theirs);
    }
    if (tensor.rank != 1) {
      builder.tensor(name + ".weight", {tensor.cols(), tensor.rows()}, tensor.type,
                     {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
      continue;
    }
    std::vector<float> values(tensor.elements());
    dequantize(tensor.type, tensor.bytes, values);
    std::string data;
    for (const float value : values) data += le(value + 1);
    builder.tensor(name + ".weight", {tensor.cols()}, TensorType::f32, data);
  }
  return builder.build();
}

/// The folder of a checkpoint whose queries are divided by what files of its size in GGUF are.
std::filesystem::path with_usual_queries(const TempFolder& folder, const std::string& checkpoint) {
  auto config = golden_json(checkpoint + "/config.json");
  config["query_pre_attn_scalar"] = config.at("head_dim");
  folder.write("config.json", config.dump());
  std::ifstream weights(golden_folder() / checkpoint / "model.safetensors", std::ios::binary);
  folder.write("model.safetensors", std::string(std::istreambuf_iterator<char>(weights), {}));
  return folder.path();
}

class GemmaGguf : public ::testing::TestWithParam<const char*> {};

TEST_P(GemmaGguf, IsTheModelOfTheFolder) {
  const TempFolder folder, other;
  const ModelFile original = ModelFile::open(with_usual_queries(folder, GetParam()));
  const ModelFile file = ModelFile::open(other.write("model.gguf", gemma_as_gguf(original)));
  EXPECT_EQ(file.config().windows, original.config().windows);
  EXPECT_EQ(file.config().turns_locally, original.config().turns_locally);
  expect_same_model(file, original, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Norms, GemmaGguf, ::testing::Values("tiny-gemma2", "tiny-gemma3"),
                         [](const auto& info) { return std::string(info.param).substr(5); });

}  // namespace
}  // namespace canopy::test

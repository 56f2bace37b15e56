// Models of random weights as GGUF files, and drafters for them, open as what they were made of.

#include "engine/whatif/model_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/format/architecture.h"
#include "engine/format/drafter_file.h"
#include "tests/base/temp_folder.h"

namespace canopy::predict {
namespace {

using Write = void (*)(const NamedShape& shape, const PutBytes& put);

std::string bytes_of(const NamedShape& shape, Write write) {
  std::string bytes;
  write(shape, [&bytes](std::span<const std::byte> part) {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
  return bytes;
}

void expect_same_sizes(const ModelConfig& read, const ModelConfig& made) {
  EXPECT_EQ(read.architecture, made.architecture);
  EXPECT_EQ(layer_specs(read), layer_specs(made));
  EXPECT_EQ(read.delta_net, made.delta_net);
  EXPECT_EQ(rope_frequencies(read), rope_frequencies(made));
  EXPECT_EQ(read.turned(), made.turned());
  EXPECT_EQ(read.rope_scaling.magnitude, made.rope_scaling.magnitude);
  EXPECT_FLOAT_EQ(static_cast<float>(read.rope_scaling.query_growth),
                  static_cast<float>(made.rope_scaling.query_growth));
  EXPECT_EQ(read.local_rope_theta, made.local_rope_theta);
  EXPECT_EQ(read.embedding_scale, made.embedding_scale);
  EXPECT_EQ(read.residual_scale, made.residual_scale);
  EXPECT_EQ(read.logit_divisor, made.logit_divisor);
  EXPECT_EQ(read.query_scale(), made.query_scale());
  EXPECT_EQ(read.attention_softcap, made.attention_softcap);
  EXPECT_EQ(read.logit_softcap, made.logit_softcap);
  EXPECT_EQ(read.experts_used, made.experts_used);
  EXPECT_EQ(read.max_context, made.max_context);
}

class RandomModelGguf : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, RandomModelGguf,
                         ::testing::Values("tiny", "tiny_moe", "tiny_hybrid", "tiny_hybrid_moe", "tiny_next",
                                           "tiny_gemma", "tiny_gemma4", "tiny_gemma4_e", "tiny_gemma4_moe",
                                           "tiny_latent", "tiny_granite", "tiny_granite_moe", "tiny_mistral3",
                                           "tiny_glm", "tiny_nemotron", "tiny_lfm2"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RandomModelGguf, OpensAsItsShape) {
  std::string name = GetParam();
  std::ranges::replace(name, '_', '-');
  const NamedShape shape = model_shape(name + "-q4_k");
  const test::TempFolder folder;
  const ModelFile model = ModelFile::open(folder.write("model.gguf", bytes_of(shape, write_random_model)));
  expect_same_sizes(model.config(), shape.config);
  EXPECT_EQ(shape_name(model.config()), shape.name);
  for (const RequiredTensor& tensor : required_tensors(shape.config)) {
    const TensorType type = tensor.rows == 1 ? TensorType::f32 : type_of_tensor(shape, tensor.name, tensor.cols);
    EXPECT_EQ(model.require(tensor.name, tensor.rows, tensor.cols).type, type) << tensor.name;
  }
  const DrafterFile drafter = DrafterFile::open(folder.write("drafter.gguf", bytes_of(shape, write_random_drafter)));
  EXPECT_NO_THROW(check_pair(model, drafter));
  EXPECT_EQ(drafter.config().transformer.hidden, shape.config.hidden);
  for (const LayerSpec& layer : layer_specs(drafter.config())) EXPECT_EQ(layer.window, 0u);
}

}  // namespace
}  // namespace canopy::predict

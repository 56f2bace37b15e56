// Heads of which a file turns the first elements only (rope.dimension_count). The same model is one whose heads are
// turned whole, with pairs that hardly turn (rope_freqs).

#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/model.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

constexpr uint32_t kHeadDim = 16, kTurned = 12;
constexpr double kTheta = 10000, kHardly = 1e6;  // what an angle is divided by at most

RandomModel model_of(const std::string& architecture) {
  RandomModel model;
  model.architecture = architecture;
  model.head_dim = kHeadDim;
  return model;
}

GgufBuilder turned_in_part(const std::string& architecture) {
  GgufBuilder b = model_of(architecture).builder();
  const std::string key = architecture + ".rope.dimension_count";
  b.without(key).value<uint32_t>(key, kTurned);
  return b;
}

/// Elements of heads so that pairs of halves of the turned part are pairs of halves of the head.
std::string with_pairs_apart(const std::string& data, uint64_t cols) {
  const size_t row = cols * sizeof(float), head = kHeadDim * row, turned = kTurned / 2, half = kHeadDim / 2;
  std::string result;
  for (size_t h = 0; h < data.size() / head; ++h) {
    const auto append = [&](size_t first, size_t count) { result += data.substr(h * head + first * row, count * row); };
    append(0, turned);
    append(kTurned, half - turned);
    append(turned, turned);
    append(kTurned + half - turned, half - turned);
  }
  return result;
}

GgufBuilder turned_whole(const std::string& architecture) {
  GgufBuilder b = model_of(architecture).builder();
  for (GgufBuilder::Tensor& tensor : b.tensors) {
    if (architecture == "llama") continue;  // whose pairs are neighbours
    const bool turns =
        tensor.name.find("attn_q") != std::string::npos || tensor.name.find("attn_k") != std::string::npos;
    if (!turns) continue;
    tensor.data = with_pairs_apart(tensor.data, tensor.dimensions.size() == 2 ? tensor.dimensions[0] : 1);
  }
  std::string divisors;
  for (uint32_t i = 0; i < kHeadDim / 2; ++i) {
    const double whole = std::pow(kTheta, -2.0 * i / kHeadDim), wanted = std::pow(kTheta, -2.0 * i / kTurned);
    divisors += le(static_cast<float>(i < kTurned / 2 ? whole / wanted : kHardly));
  }
  b.tensor("rope_freqs.weight", {kHeadDim / 2}, TensorType::f32, divisors);
  return b;
}

std::vector<float> logits_of_text(const std::string& bytes) {
  const TempFolder folder;
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = 64;
  const auto model = Model::load(device_under_test(), ModelFile::open(folder.write("m.gguf", bytes)), options);
  RowBatch text;
  for (uint32_t i = 0; i < 21; ++i) text.add_text((7 * i + 3) % 77, i);
  return run_for_all_logits(*model, text).logits;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - b.at(i)));
  return largest;
}

class PartialRotation : public ::testing::TestWithParam<const char*> {};

TEST_P(PartialRotation, TurnsTheFirstElementsOfHeads) {
  const std::vector<float> part = logits_of_text(turned_in_part(GetParam()).build());
  const std::vector<float> whole = logits_of_text(turned_whole(GetParam()).build());
  EXPECT_LE(largest_difference(part, whole), tolerance(5e-3, 3e-2));
  const std::vector<float> all = logits_of_text(model_of(GetParam()).build());
  EXPECT_GT(largest_difference(part, all), 0.1) << "what is turned counts";
}

// Biases and norms of heads go where their elements go; pairs of llama are neighbours, which stay.
INSTANTIATE_TEST_SUITE_P(Architectures, PartialRotation, ::testing::Values("llama", "qwen2", "qwen3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace canopy::test

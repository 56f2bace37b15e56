// What the halves of matrix cores change: the default model's probabilities over 2,000 positions of text, by the
// family matrix against the f32 products of the family fma, on one device. CANOPY_TEST_TOKENS shortens it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/session/engine.h"
#include "engine/session/text_model.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/model/all_logits.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kText = 200;  // positions of each of the texts
constexpr uint32_t kPass = 50;

fs::path model_path() {
  return cache_dir() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

std::unique_ptr<Model> load(Device& device) {
  ModelOptions options;
  options.context = kText;
  options.max_width = kPass;
  options.cache_type = CacheType::f32;
  return Model::load(device, ModelFile::open(model_path()), options);
}

std::vector<uint32_t> text_tokens(uint32_t count) {
  const ModelFile file = ModelFile::open(model_path());
  const TextModel text = make_text_model(file);
  std::vector<uint32_t> tokens;
  for (const char* page : {"teaching.md", "traces.md", "chats.md", "fuzzing.md", "architecture.md"}) {
    std::ifstream in(fs::path(CANOPY_SOURCE_DIR) / "docs" / page);
    std::stringstream words;
    words << in.rdbuf();
    const std::vector<uint32_t> ids = text.encode_raw(words.str());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
  tokens.resize(std::min<size_t>(tokens.size(), count));
  return tokens;
}

/// log p of every token: logits less the logarithm of the sum of their exponentials.
std::vector<double> log_p(std::span<const float> logits) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(logit - highest - std::log(sum));
  return result;
}

TEST(HalfAccuracy, LeavesTheProbabilitiesOfTheDefaultModel) {
  if (!fs::exists(model_path())) GTEST_SKIP() << "the default model is not there: tools/fetch_dependencies brings it";
  std::unique_ptr<Device> halves, singles;
  try {
    halves = open_vulkan_device({.family = vk::KernelFamily::matrix});
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  singles = open_vulkan_device({.family = vk::KernelFamily::fma});
  const auto approximate = load(*halves), exact = load(*singles);
  const char* wanted = std::getenv("CANOPY_TEST_TOKENS");
  const std::vector<uint32_t> tokens = text_tokens(wanted == nullptr ? 2000 : std::stoul(wanted));
  double divergence = 0, worst = 0;
  uint32_t same = 0, positions = 0;
  for (size_t at = 0; at + kPass <= tokens.size(); at += kPass) {
    RowBatch batch;
    for (uint32_t i = 0; i < kPass; ++i) batch.add_text(tokens[at + i], static_cast<uint32_t>(at % kText) + i);
    const std::vector<float> p = run_for_all_logits(*exact, batch).logits, q = run_for_all_logits(*approximate, batch).logits;
    const size_t vocab = exact->config().vocab;
    for (uint32_t i = 0; i < kPass; ++i) {
      const auto a = log_p(std::span(p).subspan(i * vocab, vocab)), b = log_p(std::span(q).subspan(i * vocab, vocab));
      double sum = 0;
      for (size_t token = 0; token < vocab; ++token) sum += std::exp(a[token]) * (a[token] - b[token]);
      divergence += sum;
      worst = std::max(worst, sum);
      same += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
      ++positions;
    }
  }
  ASSERT_GT(positions, 0u);
  std::cout << positions << " positions: KL divergence " << divergence / positions << " (worst " << worst
            << "), the same best token in " << 100.0 * same / positions << "%\n";
  EXPECT_LE(divergence / positions, 1e-4);
  EXPECT_GE(same, std::floor(0.998 * positions));
}

}  // namespace
}  // namespace canopy::test

// What the halves of matrix cores change: the default model's probabilities over 2,000 positions of its own texts, by
// the family matrix against the f32 products of the family fma, on one device. CANOPY_TEST_TOKENS shortens it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/session/engine.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/model/all_logits.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kText = 300;  // positions of each of the texts
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

/// Texts that the model writes itself, by plain decoding with the kernels that are fastest here.
std::vector<std::vector<uint32_t>> own_texts() {
  const auto device = open_vulkan_device();
  OpenRequest request;
  request.path = model_path();
  request.context = kText;
  request.self_test = false;
  const auto engine = Engine::open(*device, request, {});
  std::vector<std::vector<uint32_t>> texts;
  for (const char* prompt :
       {"Write a Python function that returns the n-th Fibonacci number, and explain how it works.",
        "Tell me a short story about a lighthouse keeper who finds a message in a bottle.",
        "What is photosynthesis? Answer for a ten-year-old.", "List ten things to check before a long journey.",
        "Explain the difference between a list and a tuple in Python.", "Write a letter to a neighbour.",
        "How do I cook rice?", "Who was Ada Lovelace?"}) {
    std::vector<uint32_t> ids = engine->prompt_ids({{"user", prompt}}, "");
    engine->resident->clear();
    ReplySettings settings;
    settings.mode = DecodeMode::ar;
    settings.max_tokens = kText - static_cast<uint32_t>(ids.size());
    const std::vector<uint32_t> reply = engine->reply(ids, settings).ids;
    ids.insert(ids.end(), reply.begin(), reply.end());
    ids.resize(ids.size() / kPass * kPass);
    texts.push_back(ids);
  }
  return texts;
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
  uint32_t left = wanted == nullptr ? 2000 : static_cast<uint32_t>(std::stoul(wanted));
  double divergence = 0, worst = 0;
  uint32_t same = 0, positions = 0;
  for (const std::vector<uint32_t>& tokens : own_texts()) {
    for (uint32_t at = 0; at < tokens.size() && left > 0; at += kPass, left -= std::min(left, kPass)) {
      RowBatch batch;
      for (uint32_t i = 0; i < kPass; ++i) batch.add_text(tokens[at + i], at + i);
      const std::vector<float> p = run_for_all_logits(*exact, batch).logits,
                               q = run_for_all_logits(*approximate, batch).logits;
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
  }
  ASSERT_GT(positions, 0u);
  std::cout << positions << " positions: KL divergence " << divergence / positions << " (worst " << worst
            << "), the same best token in " << 100.0 * same / positions << "%\n";
  EXPECT_LE(divergence / positions, 1e-4);
  EXPECT_GE(same, std::floor(0.998 * positions));
}

}  // namespace
}  // namespace canopy::test

// What the halves of matrix cores change, activations of 8 bits, and sums as halves: the default model's probabilities
// over 2,000 positions of its own texts, by the families matrix and matrix_i8 and by CUDA's kernels on the made-up GPU,
// against the f32 products of the family fma. CANOPY_TEST_TOKENS shortens it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "cuda_backend/cuda_device.h"
#include "engine/base/error.h"
#include "engine/base/files.h"
#include "engine/session/engine.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/cuda_backend/fake_device.h"
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

struct Compared {
  double divergence = 0, worst = 0;  // Kullback-Leibler, of a position and the largest
  uint32_t same = 0, positions = 0;  // that have the same best token

  void add(std::span<const float> exact, std::span<const float> approximate) {
    const auto a = log_p(exact), b = log_p(approximate);
    double sum = 0;
    for (size_t token = 0; token < a.size(); ++token) sum += std::exp(a[token]) * (a[token] - b[token]);
    divergence += sum;
    worst = std::max(worst, sum);
    same += std::max_element(a.begin(), a.end()) - a.begin() == std::max_element(b.begin(), b.end()) - b.begin();
    ++positions;
  }
  double mean() const { return divergence / positions; }
};

/// A device's probabilities against those of f32 products.
Compared compared_with_f32(Device& device, const std::string& name) {
  const auto singles = open_vulkan_device({.family = vk::KernelFamily::fma});
  const auto approximate = load(device), exact = load(*singles);
  const char* wanted = std::getenv("CANOPY_TEST_TOKENS");
  uint32_t left = wanted == nullptr ? 2000 : static_cast<uint32_t>(std::stoul(wanted));
  Compared result;
  static const std::vector<std::vector<uint32_t>> texts = own_texts();
  for (const std::vector<uint32_t>& tokens : texts) {
    for (uint32_t at = 0; at < tokens.size() && left > 0; at += kPass, left -= std::min(left, kPass)) {
      RowBatch batch;
      for (uint32_t i = 0; i < kPass; ++i) batch.add_text(tokens[at + i], at + i);
      const std::vector<float> p = run_for_all_logits(*exact, batch).logits,
                               q = run_for_all_logits(*approximate, batch).logits;
      const size_t vocab = exact->config().vocab;
      for (uint32_t i = 0; i < kPass; ++i) {
        result.add(std::span(p).subspan(i * vocab, vocab), std::span(q).subspan(i * vocab, vocab));
      }
    }
  }
  std::cout << name << ", " << result.positions << " positions: KL divergence " << result.mean() << " (worst "
            << result.worst << "), the same best token in " << 100.0 * result.same / result.positions << "%\n";
  return result;
}

void expect_close(Device& device, const std::string& name, double most_divergence, double least_agreement) {
  if (!fs::exists(model_path())) GTEST_SKIP() << "the default model is not there: tools/fetch_dependencies brings it";
  const Compared result = compared_with_f32(device, name);
  ASSERT_GT(result.positions, 0u);
  EXPECT_LE(result.mean(), most_divergence);
  EXPECT_GE(result.same, std::floor(least_agreement * result.positions));
}

void expect_family_close(vk::KernelFamily family, double most_divergence, double least_agreement) {
  std::unique_ptr<Device> device;
  try {
    device = open_vulkan_device({.family = family});
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  expect_close(*device, vk::to_string(family), most_divergence, least_agreement);
}

TEST(HalfAccuracy, HalvesLeaveTheProbabilitiesOfTheDefaultModel) {
  expect_family_close(vk::KernelFamily::matrix, 1e-4, 0.998);
}

TEST(HalfAccuracy, ActivationsOf8BitsLeaveThemNearly) {
  expect_family_close(vk::KernelFamily::matrix_i8, 1e-2, 0.95);
}

// One made-up machine at a time.
void expect_cuda_close(int capability) {
  FakeMachine machine;
  machine.gpus[0].capability = capability;
  use_machine(machine);
  const auto device = open_cuda_device(fake_device_options());
  expect_close(*device, "CUDA for capability " + std::to_string(capability), 1e-4, 0.998);
}

TEST(CudaHalfAccuracy, HalvesLeaveTheProbabilitiesOfTheDefaultModel) {
  expect_cuda_close(90);
}

TEST(CudaHalfAccuracy, SumsAsHalvesLeaveThemToo) {
  expect_cuda_close(89);
}

}  // namespace
}  // namespace canopy::test

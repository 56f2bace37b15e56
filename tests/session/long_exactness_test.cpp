// Every mode writes the text of plain decoding, over thousands of tokens of the default model. Takes an hour or more on
// two cores; CANOPY_TEST_TOKENS shortens it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "engine/base/files.h"
#include "engine/session/engine.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_drafter.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;

const char* const kPrompts[] = {
    "Write a Python function that returns the n-th Fibonacci number, and explain how it works.",
    "A train leaves at 9:40 and arrives at 13:05. It stops for 12 minutes on the way. How long does it move?",
    "Tell me a short story about a lighthouse keeper who finds a message in a bottle.",
    "Explain the difference between a list and a tuple in Python with an example of each.",
    "List ten things to check before a long journey by bicycle.",
    "What is photosynthesis? Answer for a ten-year-old.",
    "Write a letter to a neighbour who plays loud music at night.",
    "Solve for x: 3x + 7 = 2x - 5. Show every step.",
};

uint32_t tokens_wanted(uint32_t usual) {
  const char* wanted = std::getenv("CANOPY_TEST_TOKENS");
  return wanted == nullptr ? usual : std::min(usual, static_cast<uint32_t>(std::stoul(wanted)));
}

class LongExactness : public ::testing::Test {
 protected:
  void open(const fs::path& drafter, uint32_t max_width = 128) {
    const fs::path model = cache_dir() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
    if (!fs::exists(model)) GTEST_SKIP() << "the default model is not there: tools/fetch_dependencies brings it";
    OpenRequest request;
    request.path = model;
    request.drafter = drafter;
    request.cache_type = cache_under_test();
    request.context = 2048;
    request.max_width = max_width;
    request.self_test = false;
    loaded_ = Engine::open(device_under_test(), request, {});
  }
  void open_shipped(uint32_t max_width = 128) {
    open(fs::path(CANOPY_SOURCE_DIR) / "assets" / "smollm2-135m-dflash.gguf", max_width);
  }

  Reply write(const std::string& prompt, DecodeMode mode, uint32_t budget, uint32_t tokens, float temperature = 0) {
    ReplySettings settings;
    settings.mode = mode;
    settings.budget = budget;
    settings.max_tokens = tokens;
    settings.sampling.temperature = temperature;
    settings.sampling.top_p = 0.95f;
    settings.sampling.seed = 7;
    loaded_->resident->clear();
    return loaded_->reply(loaded_->prompt_ids({{"user", prompt}}, ""), settings);
  }

  struct Way {
    DecodeMode mode;
    uint32_t budget;
  };

  /// Writes about `tokens` tokens over the prompts in every way and by plain decoding, and compares.
  void expect_same(const std::vector<Way>& ways, uint32_t tokens, float temperature = 0) {
    if (loaded_ == nullptr) return;  // the test is skipped
    constexpr auto prompts = static_cast<uint32_t>(std::size(kPrompts));
    const uint32_t each = std::max(16u, (tokens + prompts - 1) / prompts);
    uint32_t written = 0;
    std::vector<uint64_t> rounds(ways.size()), emitted(ways.size());
    for (uint32_t p = 0; written < tokens && p < 4 * prompts; ++p) {
      const std::string prompt = kPrompts[p % prompts] + std::string(p / prompts, ' ') + (p < prompts ? "" : "Again.");
      const Reply plain = write(prompt, DecodeMode::ar, 1, each, temperature);
      written += static_cast<uint32_t>(plain.ids.size());
      for (size_t w = 0; w < ways.size(); ++w) {
        const Reply reply = write(prompt, ways[w].mode, ways[w].budget, each, temperature);
        ASSERT_EQ(reply.ids, plain.ids) << to_string(ways[w].mode) << " " << ways[w].budget << ", prompt " << p;
        rounds[w] += reply.rounds.size();
        emitted[w] += reply.ids.size() - 1;
      }
    }
    EXPECT_GE(written, tokens);
    for (size_t w = 0; w < ways.size(); ++w) {
      std::cout << to_string(ways[w].mode) << " " << ways[w].budget << ": " << written << " tokens, tau "
                << static_cast<double>(emitted[w]) / static_cast<double>(std::max<uint64_t>(1, rounds[w])) << "\n";
    }
  }

  std::unique_ptr<Engine> loaded_;
};

TEST_F(LongExactness, Greedy) {
  open_shipped();
  expect_same({{DecodeMode::chain, 1}, {DecodeMode::tree, 16}, {DecodeMode::adaptive, 1}}, tokens_wanted(4000));
}

TEST_F(LongExactness, LargeTrees) {
  open_shipped(513);
  expect_same({{DecodeMode::tree, 64}, {DecodeMode::tree, 256}, {DecodeMode::tree, 512}}, tokens_wanted(200));
}

TEST_F(LongExactness, Sampled) {
  open_shipped();
  expect_same({{DecodeMode::chain, 1}, {DecodeMode::tree, 16}, {DecodeMode::adaptive, 1}}, tokens_wanted(500), 0.8f);
}

TEST_F(LongExactness, RandomDrafter) {
  RandomDrafter random;
  random.heads = 9;
  random.kv_heads = 3;
  random.head_dim = 64;
  random.ffn = 512;
  random.aux_layers = {1, 14, 27};
  random.mask_token = 4;
  ModelConfig target;
  target.hidden = 576;
  target.layers = 30;
  target.vocab = 49152;
  target.max_context = 8192;
  const TempFolder folder;
  random.write(folder, target);
  open(folder.path());
  expect_same({{DecodeMode::chain, 1}, {DecodeMode::tree, 16}, {DecodeMode::adaptive, 1}}, tokens_wanted(500));
}

}  // namespace
}  // namespace canopy::test

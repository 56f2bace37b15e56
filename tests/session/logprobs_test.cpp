// Log probabilities of tokens: those of the plain C++ logits, the same in every mode, of replies and of prompts.

#include "engine/speculation/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/session/engine.h"
#include "tests/base/expect_error.h"
#include "tests/model/all_logits.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

struct WeighedReply {
  Reply reply;
  std::vector<TokenLogprobs> prompt, tokens;
};

class LogprobsOfReplies : public ::testing::Test {
 protected:
  LogprobsOfReplies() {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.context = 256;
    request.self_test = false;
    loaded_ = Engine::open(*device_, request, {});
    prompt_ = loaded_->text.encode_raw("import os\nimport sys\nimport os\nimport sys\n");
  }

  static ReplySettings weighed(uint32_t tokens, DecodeMode mode = DecodeMode::ar) {
    ReplySettings settings;
    settings.mode = mode;
    settings.sources = kFromSuffix;
    settings.max_tokens = tokens;
    settings.logprobs = 3;
    return settings;
  }

  WeighedReply write(std::span<const uint32_t> prompt, const ReplySettings& settings) {
    WeighedReply written;
    ReplyCallbacks callbacks;
    callbacks.prompt_token = [&](const TokenLogprobs& token) { written.prompt.push_back(token); };
    callbacks.token = [&](const ReplyProgress& progress) {
      if (progress.logprobs != nullptr) written.tokens.push_back(*progress.logprobs);
    };
    written.reply = loaded_->reply(prompt, settings, callbacks);
    return written;
  }

  /// The log softmax of what one pass over the whole text gives.
  void expect_of(const std::vector<uint32_t>& text, size_t first, std::span<const TokenLogprobs> found) {
    ASSERT_EQ(found.size(), text.size() - first);
    loaded_->resident->clear();
    const uint32_t vocab = loaded_->model->config().vocab;
    const std::vector<float> logits = run_for_all_logits(*loaded_->model, text_input(text, 0).batch).logits;
    for (size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i);
      const std::span<const float> row = std::span(logits).subspan((first + i - 1) * vocab, vocab);
      long double sum = 0;
      for (const float logit : row) sum += std::exp(static_cast<long double>(logit));
      const auto expected = [&](uint32_t token) { return static_cast<double>(row[token] - std::log(sum)); };
      EXPECT_EQ(found[i].chosen.token, text[first + i]);
      EXPECT_NEAR(found[i].chosen.logprob, expected(found[i].chosen.token), 1e-9);
      ASSERT_EQ(found[i].likeliest.size(), 3u);
      size_t likelier = 0;
      for (const float logit : row) likelier += logit > row[found[i].likeliest.back().token] ? 1 : 0;
      EXPECT_LE(likelier, 2u);
      EXPECT_GE(row[found[i].likeliest[0].token], row[found[i].likeliest[1].token]);
      for (const TokenLogprob& each : found[i].likeliest) EXPECT_NEAR(each.logprob, expected(each.token), 1e-9);
    }
  }

  std::vector<uint32_t> text_of(const Reply& reply) const {
    std::vector<uint32_t> text = prompt_;
    text.insert(text.end(), reply.ids.begin(), reply.ids.end());
    return text;
  }

  std::unique_ptr<Device> device_ = make_reference_device();
  std::unique_ptr<Engine> loaded_;
  std::vector<uint32_t> prompt_;
};

TEST_F(LogprobsOfReplies, AreThoseOfThePlainLogitsInEveryMode) {
  ReplySettings bare = weighed(20);
  bare.logprobs.reset();
  const WeighedReply unweighed = write(prompt_, bare);
  EXPECT_TRUE(unweighed.tokens.empty());
  const WeighedReply plain = write(prompt_, weighed(20));
  EXPECT_EQ(plain.reply.ids, unweighed.reply.ids);
  size_t accepted = 0;
  for (const DecodeMode mode : {DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
    SCOPED_TRACE(static_cast<int>(mode));
    const WeighedReply drafted = write(prompt_, weighed(20, mode));
    EXPECT_EQ(drafted.reply.ids, plain.reply.ids);
    EXPECT_TRUE(drafted.tokens == plain.tokens);  // to the bit
    for (const RoundRecord& round : drafted.reply.rounds) accepted += round.accepted;
  }
  EXPECT_GT(accepted, 0u);
  expect_of(text_of(plain.reply), prompt_.size(), plain.tokens);
}

TEST_F(LogprobsOfReplies, AreOfTemperature1WithoutBiasWhateverDrawsTheTokens) {
  ReplySettings settings = weighed(16, DecodeMode::tree);
  settings.sampling.temperature = 1.5f;
  settings.sampling.seed = 3;
  settings.sampling.top_k = 5;
  settings.sampling.frequency_penalty = 0.5f;
  settings.sampling.logit_bias = {{7, 2.0f}};
  ReplySettings bare = settings;
  bare.logprobs.reset();
  const WeighedReply drawn = write(prompt_, settings);
  EXPECT_EQ(drawn.reply.ids, write(prompt_, bare).reply.ids);
  expect_of(text_of(drawn.reply), prompt_.size(), drawn.tokens);
}

TEST_F(LogprobsOfReplies, OfAPromptAreOfAllItsTokensThoughItIsResident) {
  const WeighedReply first = write(prompt_, weighed(12));
  EXPECT_TRUE(first.prompt.empty());
  const std::vector<uint32_t> text = text_of(first.reply);
  ReplySettings settings = weighed(0);
  settings.prompt_logprobs = true;
  const WeighedReply read = write(text, settings);
  EXPECT_TRUE(read.reply.ids.empty() && read.tokens.empty() && read.reply.text.empty());
  EXPECT_EQ(read.reply.reason, FinishReason::max_tokens);
  EXPECT_EQ(read.reply.reused_tokens, 0u);
  ASSERT_EQ(read.prompt.size(), text.size());
  EXPECT_EQ(read.prompt[0].chosen.token, text[0]);
  EXPECT_TRUE(std::isnan(read.prompt[0].chosen.logprob));
  EXPECT_TRUE(read.prompt[0].likeliest.empty());
  // What the reply was written with, to the bit.
  EXPECT_TRUE(std::equal(first.tokens.begin(), first.tokens.end(),
                         read.prompt.begin() + static_cast<std::ptrdiff_t>(prompt_.size())));
  expect_of(text, 1, std::span(read.prompt).subspan(1));
}

TEST_F(LogprobsOfReplies, APromptThatWasWeighedIsReusedAndGivesTheSameReply) {
  const Reply expected = loaded_->reply(prompt_, weighed(10));
  ReplySettings settings = weighed(10, DecodeMode::chain);
  settings.prompt_logprobs = true;
  const WeighedReply weighed_reply = write(prompt_, settings);
  EXPECT_EQ(weighed_reply.reply.ids, expected.ids);
  EXPECT_EQ(weighed_reply.prompt.size(), prompt_.size());
  EXPECT_EQ(weighed_reply.tokens.size(), expected.ids.size());
  EXPECT_EQ(loaded_->reply(prompt_, weighed(10)).reused_tokens, prompt_.size() - 1);
}

TEST_F(LogprobsOfReplies, ARefusalSaysWhatBelongsTogether) {
  expect_error("1 or more", [&] { loaded_->reply(prompt_, weighed(0)); });
  ReplySettings settings = weighed(4);
  settings.logprobs.reset();
  settings.prompt_logprobs = true;
  expect_error("both belong together", [&] { loaded_->reply(prompt_, settings); });
}

TEST(LogprobsOfARow, AreItsLogSoftmax) {
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  const TokenLogprobs found = logprobs_of(std::vector<float>{1, 3, minus_infinity, 3}, 0, 9);
  const double log_sum = std::log(std::exp(1.0) + 2 * std::exp(3.0));
  EXPECT_NEAR(found.chosen.logprob, 1 - log_sum, 1e-12);
  ASSERT_EQ(found.likeliest.size(), 4u);
  EXPECT_EQ(found.likeliest[0].token, 1u);
  EXPECT_EQ(found.likeliest[1].token, 3u);
  EXPECT_EQ(found.likeliest[0].logprob, found.likeliest[1].logprob);
  EXPECT_EQ(found.likeliest[3].logprob, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(logprobs_of(std::vector<float>{5, minus_infinity}, 0, 0).chosen.logprob, 0);
  EXPECT_TRUE(logprobs_of(std::vector<float>{5, 1}, 0, 0).likeliest.empty());
}

TEST(LogprobsOfARow, ABrokenRowIsRefused) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  expect_error("nan", [] { logprobs_of(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, 0, 1); });
  expect_error("is inf", [] { logprobs_of(std::vector<float>{1, infinity}, 0, 1); });
  expect_error("All logits", [] { logprobs_of(std::vector<float>{-infinity}, 0, 1); });
  expect_error("token 2", [] { logprobs_of(std::vector<float>{1, 2}, 2, 1); });
}

}  // namespace
}  // namespace canopy::test

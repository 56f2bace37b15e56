#include "engine/session/reply.h"

#include <gtest/gtest.h>

#include "engine/session/engine.h"
#include "tests/base/expect_error.h"
#include "tests/compute/stepping_device.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

class ReplyTest : public ::testing::Test {
 protected:
  void open(uint32_t context = 1024, uint32_t max_width = 128) { open(*device_, context, max_width); }
  void open(Device& device, uint32_t context = 1024, uint32_t max_width = 128) {
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3";
    request.context = context;
    request.max_width = max_width;
    request.self_test = false;
    loaded_ = Engine::open(device, request, {});
  }

  std::vector<uint32_t> encode(const std::string& text) const { return loaded_->text.encode_raw(text); }

  static ReplySettings tokens(uint32_t count) {
    ReplySettings settings;
    settings.max_tokens = count;
    return settings;
  }

  std::unique_ptr<Device> device_ = make_reference_device();
  SteppingDevice stepping_{*device_};
  std::unique_ptr<Engine> loaded_;
};

TEST_F(ReplyTest, SecondTurnReusesTheFirstAndGivesTheSameText) {
  open();
  const std::vector<ChatTurn> first = {{"user", "def add(a, b):"}};
  const Reply one = loaded_->reply(loaded_->prompt_ids(first, ""), tokens(24));
  std::vector<ChatTurn> second = first;
  second.push_back({"assistant", one.text});
  second.push_back({"user", "and now class Stack:"});
  const std::vector<uint32_t> prompt = loaded_->prompt_ids(second, "");
  const Reply continued = loaded_->reply(prompt, tokens(24));
  EXPECT_GT(continued.reused_tokens, 10u);

  loaded_->resident->clear();
  const Reply fresh = loaded_->reply(prompt, tokens(24));
  EXPECT_EQ(fresh.reused_tokens, 0u);
  EXPECT_EQ(fresh.ids, continued.ids);
  EXPECT_EQ(fresh.text, continued.text);
}

TEST_F(ReplyTest, TheSamePromptAgainComputesOneRowOnly) {
  open();
  const auto prompt = encode("import os\nimport sys\n");
  const Reply first = loaded_->reply(prompt, tokens(12));
  const Reply again = loaded_->reply(prompt, tokens(12));
  EXPECT_EQ(again.reused_tokens, prompt.size() - 1);
  EXPECT_EQ(again.ids, first.ids);
}

TEST_F(ReplyTest, ChunksOfAnySizeGiveTheSameReply) {
  open();
  const auto prompt = encode("class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n\n");
  const Reply expected = loaded_->reply(prompt, tokens(20));
  for (const uint32_t width : {1u, 3u, 17u}) {
    open(1024, width);
    EXPECT_EQ(loaded_->reply(prompt, tokens(20)).ids, expected.ids) << width;
  }
}

TEST_F(ReplyTest, CancelledPrefillLeavesAUsableCache) {
  open(1024, 8);
  const auto prompt =
      encode("def read_file(path):\n    with open(path) as handle:\n        return handle.read()\n\n\ndef main():\n");
  ASSERT_GT(prompt.size(), 24u);
  ReplyCallbacks callbacks;
  std::stop_source stop;
  callbacks.prefill = [&](uint32_t done, uint32_t) {
    if (done >= 16) stop.request_stop();
  };
  callbacks.stop = stop.get_token();
  const Reply cancelled = loaded_->reply(prompt, tokens(16), callbacks);
  EXPECT_EQ(cancelled.reason, FinishReason::cancelled);
  EXPECT_TRUE(cancelled.ids.empty());
  EXPECT_EQ(loaded_->resident->current().length(), 16u);

  const Reply resumed = loaded_->reply(prompt, tokens(16));
  EXPECT_EQ(resumed.reused_tokens, 16u);
  loaded_->resident->clear();
  EXPECT_EQ(loaded_->reply(prompt, tokens(16)).ids, resumed.ids);
}

TEST_F(ReplyTest, CancelledDecodingKeepsWhatWasWritten) {
  StopAtOp stop(stepping_);
  open(stepping_);
  const auto prompt = encode("for i in range(10):\n");
  const Reply whole = loaded_->reply(prompt, tokens(30));
  loaded_->resident->clear();
  ReplyCallbacks callbacks;
  callbacks.stop = stop.arm(0);
  callbacks.token = [&](const ReplyProgress& p) {
    if (p.reply_tokens == 7) stop.in(5);  // inside the next pass: the row under way must not count
  };
  const Reply cut = loaded_->reply(prompt, tokens(30), callbacks);
  EXPECT_EQ(cut.reason, FinishReason::cancelled);
  ASSERT_EQ(cut.ids.size(), 7u);
  EXPECT_TRUE(std::equal(cut.ids.begin(), cut.ids.end(), whole.ids.begin()));
  EXPECT_EQ(loaded_->resident->current().length(), prompt.size() + 6);

  auto longer = prompt;
  longer.insert(longer.end(), cut.ids.begin(), cut.ids.end());
  const Reply rest = loaded_->reply(longer, tokens(23));
  EXPECT_EQ(rest.reused_tokens, prompt.size() + 6);
  EXPECT_TRUE(std::equal(rest.ids.begin(), rest.ids.end(), whole.ids.begin() + 7));
}

TEST_F(ReplyTest, StopsWhenTheContextIsFull) {
  open(32);
  auto prompt = encode("x = 1\n");
  const Reply reply = loaded_->reply(prompt, tokens(500));
  EXPECT_EQ(reply.reason, FinishReason::context_full);
  EXPECT_EQ(loaded_->resident->current().length(), 32u);
  EXPECT_EQ(reply.ids.size(), 32u - prompt.size() + 1);  // the last token needs no position

  prompt.assign(33, prompt[0]);
  expect_error("holds only 32", [&] { loaded_->reply(prompt, tokens(4)); });
}

TEST_F(ReplyTest, StopStringsEndTheReplyBeforeThemselves) {
  open();
  const auto prompt = encode("def main():\n");
  const Reply whole = loaded_->reply(prompt, tokens(40));
  ASSERT_GT(whole.text.size(), 12u);
  ReplySettings settings = tokens(40);
  settings.stop_strings = {whole.text.substr(6, 5)};
  const Reply cut = loaded_->reply(prompt, settings);
  EXPECT_EQ(cut.reason, FinishReason::stop_token);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(settings.stop_strings[0])));
  EXPECT_EQ(cut.stop_string, settings.stop_strings[0]);
  EXPECT_EQ(whole.stop_string, "");
}

TEST_F(ReplyTest, SeedsAndTurnsDrawTheirOwnTexts) {
  open();
  const auto prompt = encode("import ");
  ReplySettings settings = tokens(24);
  settings.sampling.temperature = 1.0f;
  settings.sampling.seed = 7;
  const Reply first = loaded_->reply(prompt, settings);
  EXPECT_EQ(loaded_->reply(prompt, settings).ids, first.ids);
  ReplySettings other = settings;
  other.turn = 1;
  EXPECT_NE(loaded_->reply(prompt, other).ids, first.ids);
  other = settings;
  other.sampling.seed = 8;
  EXPECT_NE(loaded_->reply(prompt, other).ids, first.ids);
}

TEST_F(ReplyTest, SamplingOnTheCpuAndArgmaxOnTheDeviceAgree) {
  open();
  const auto prompt = encode("while True:\n");
  ReplySettings biased = tokens(24);
  biased.sampling.logit_bias = {{5, 0.0f}};  // changes nothing, but makes the sampler run
  ASSERT_FALSE(biased.sampling.is_plain_greedy());
  EXPECT_EQ(loaded_->reply(prompt, biased).ids, loaded_->reply(prompt, tokens(24)).ids);
}

TEST_F(ReplyTest, RecordsEveryRound) {
  open();
  const auto prompt = encode("import json\n");
  const Reply reply = loaded_->reply(prompt, tokens(9));
  ASSERT_EQ(reply.rounds.size(), reply.ids.size() - 1);
  double total = 0;
  for (size_t i = 0; i < reply.rounds.size(); ++i) {
    const RoundRecord& round = reply.rounds[i];
    EXPECT_EQ(round.round, i);
    EXPECT_EQ(round.context, prompt.size() + i);
    EXPECT_EQ(round.width, 1u);
    EXPECT_EQ(round.accepted, 0u);
    EXPECT_EQ(round.emitted, std::vector<uint32_t>{reply.ids[i + 1]});
    total += round.ms.total();
  }
  EXPECT_DOUBLE_EQ(reply.decode_ms, total);
  EXPECT_DOUBLE_EQ(reply.tau(), 1.0);
  EXPECT_GT(reply.prefill_ms, 0.0);
}

TEST_F(ReplyTest, RefusesWhatCannotBeAnswered) {
  open();
  const std::vector<uint32_t> none;
  expect_error("empty", [&] { loaded_->reply(none, tokens(1)); });
  const std::vector<uint32_t> outside = {5000};
  expect_error("below 1010", [&] { loaded_->reply(outside, tokens(1)); });
  const auto prompt = encode("x");
  expect_error("1 or more", [&] { loaded_->reply(prompt, tokens(0)); });
}

}  // namespace
}  // namespace canopy::test

// A reply that goes on behind its limit, through the engine's thread: its events, and what is refused.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/golden_data.h"
#include "tests/session/engine_thread_rig.h"

namespace canopy::test {
namespace {

TEST_F(EngineThreadTest, AReplyGoesOnBehindItsLimit) {
  start();
  LoadModel load = tiny();
  load.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  engine_->post(load);
  const auto ready = await<ModelReady>();
  Generate generate = question(1, 40);
  generate.rounds = true;
  generate.mode = DecodeMode::tree;
  engine_->post(generate);
  const std::vector<Event> whole = until<ReplyFinished>();
  generate = question(2, 13);
  generate.mode = DecodeMode::tree;
  engine_->post(generate);
  const std::vector<Event> first = until<ReplyFinished>();
  const auto limited = std::get<ReplyFinished>(first.back());
  ASSERT_EQ(limited.reason, FinishReason::max_tokens);
  generate = question(3, 27);
  generate.mode = DecodeMode::tree;
  generate.rounds = true;
  generate.begun = limited.tokens;
  ASSERT_EQ(generate.begun.ids.size() + generate.begun.ending.size(), 13u);
  engine_->post(generate);
  const std::vector<Event> rest = until<ReplyFinished>();
  ReplyStarted started;
  uint32_t next = 14;  // the first new token belongs to no round
  for (const Event& event : rest) {
    if (const auto* e = std::get_if<ReplyStarted>(&event)) started = *e;
    const auto* round = std::get_if<RoundFinished>(&event);
    if (round == nullptr) continue;
    EXPECT_EQ(round->first_index, next);
    if (next == 14) {
      EXPECT_GE(round->text_begin, started.begun_bytes);
    }
    next += static_cast<uint32_t>(round->round->emitted.size());
  }
  const auto finished = std::get<ReplyFinished>(rest.back());
  ASSERT_NE(started.before, nullptr);
  ASSERT_EQ(started.before->size(), finished.prompt_tokens + 13u) << "the prompt, and what the reply had";
  EXPECT_TRUE(std::equal(limited.tokens.ids.begin(), limited.tokens.ids.end(),
                         started.before->begin() + finished.prompt_tokens));
  EXPECT_EQ(finished.reply_tokens, 40u);
  EXPECT_EQ(next, 40u);
  EXPECT_EQ(finished.tokens, std::get<ReplyFinished>(whole.back()).tokens);
  EXPECT_EQ(text_of(first).substr(0, started.begun_bytes) + text_of(rest), text_of(whole));
  EXPECT_EQ(finished.prompt_tokens, std::get<ReplyFinished>(whole.back()).prompt_tokens);

  generate.reply_id = 4;
  generate.begun.vocabulary = ready.vocabulary + 1;
  engine_->post(generate);
  const auto refused = await<Failure>();
  EXPECT_EQ(refused.reply_id, 4u);
  EXPECT_NE(refused.detail.find("another vocabulary"), std::string::npos) << refused.detail;
  generate.reply_id = 5;
  generate.begun.vocabulary = ready.vocabulary;
  generate.begun.ids.resize(600, generate.begun.ids.front());
  engine_->post(generate);
  EXPECT_GT(await<Failure>().prompt_tokens, 600u);
}

}  // namespace
}  // namespace canopy::test

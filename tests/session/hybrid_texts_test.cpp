// Replies of a hybrid, tiny-qwen3_5, with a drafter of random weights: whatever the mode, and whatever was read and
// gone back to before, each has the text that plain decoding of the prompt alone has.

#include <gtest/gtest.h>

#include "engine/session/engine.h"
#include "tests/base/temp_folder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"
#include "tests/model/hybrid_gguf.h"
#include "tests/model/random_drafter.h"

namespace canopy::test {
namespace {

struct HybridWay {
  DecodeMode mode = DecodeMode::ar;
  uint32_t budget = 1;
  float temperature = 0;
};

class HybridTexts : public ::testing::Test {
 protected:
  void SetUp() override {
    OpenRequest request;
    const ModelFile original = ModelFile::open(golden_folder() / "tiny-qwen3_5");
    request.path = folder_.write("target.gguf", HybridGguf(original).convert());
    RandomDrafter drafter;
    drafter.aux_layers = {1, 5};
    drafter.write(folder_, ModelFile::open(request.path).config());
    request.drafter = folder_.path() / "model.safetensors";
    request.cache_type = cache_under_test();
    request.context = 256;
    engine_ = Engine::open(device_under_test(), request, {});
  }

  Reply reply(const std::string& prompt, const HybridWay& way = {}) {
    ReplySettings settings;
    settings.mode = way.mode;
    settings.budget = way.budget;
    settings.max_tokens = 20;
    settings.sampling.temperature = way.temperature;
    settings.sampling.seed = 5;
    return engine_->reply(engine_->text.encode_raw(prompt), settings);
  }
  Reply alone(const std::string& prompt, float temperature = 0) {
    engine_->resident->clear();
    return reply(prompt, {DecodeMode::ar, 1, temperature});
  }

  TempFolder folder_;
  std::unique_ptr<Engine> engine_;
};

const std::string kLetters = "HowDoesThisTextOfManyLettersGoOnAndOnUntilItEndsSomewhereElseThanItBegan";

TEST_F(HybridTexts, TheSelfTestPasses) {
  ASSERT_TRUE(engine_->self_test);
  EXPECT_TRUE(engine_->self_test->ran);
  EXPECT_TRUE(engine_->self_test->passed) << engine_->self_test->sentence;
}

TEST_F(HybridTexts, EveryModeWritesTheTextOfPlainDecoding) {
  size_t rounds_saved = 0;
  for (const float temperature : {0.0f, 0.9f}) {
    const Reply plain = alone(kLetters, temperature);
    ASSERT_FALSE(plain.ids.empty());
    for (const auto& [mode, budget] :
         {std::pair{DecodeMode::chain, 1u}, std::pair{DecodeMode::tree, 1u}, std::pair{DecodeMode::tree, 16u},
          std::pair{DecodeMode::tree, 100u}, std::pair{DecodeMode::adaptive, 1u}}) {
      engine_->resident->clear();
      const Reply drafted = reply(kLetters, {mode, budget, temperature});
      EXPECT_EQ(drafted.ids, plain.ids) << "temperature " << temperature << ", budget " << budget;
      rounds_saved += plain.ids.size() - std::min(plain.ids.size(), drafted.rounds.size());
    }
  }
  EXPECT_GT(rounds_saved, 0u) << "no draft was ever accepted: the comparison shows little";
}

TEST_F(HybridTexts, AReplyThatIsWrittenAgainReadsLittle) {
  const Reply expected = alone(kLetters);
  for (const auto& [mode, budget] : {std::pair{DecodeMode::ar, 1u}, std::pair{DecodeMode::tree, 16u},
                                     std::pair{DecodeMode::chain, 1u}, std::pair{DecodeMode::ar, 1u}}) {
    const Reply again = reply(kLetters, {mode, budget});
    EXPECT_EQ(again.ids, expected.ids);
    if (mode != DecodeMode::ar) continue;  // features of the prompt may be missing
    EXPECT_GE(again.reused_tokens, 64u) << "the prompt was read anew";
  }
}

TEST_F(HybridTexts, BranchesAndOtherTextsDoNotDisturbEachOther) {
  const std::vector<std::string> prompts = {kLetters, kLetters + "Branch", kLetters.substr(0, 40) + "Other",
                                            "Unrelated", kLetters + "Another"};
  std::vector<Reply> expected;
  for (const std::string& prompt : prompts) expected.push_back(alone(prompt));
  engine_->resident->clear();
  for (const size_t i : {0u, 1u, 2u, 3u, 4u, 0u, 2u, 1u, 3u, 0u, 4u}) {
    for (const auto& [mode, budget] : {std::pair{DecodeMode::tree, 12u}, std::pair{DecodeMode::ar, 1u}}) {
      EXPECT_EQ(reply(prompts[i], {mode, budget}).ids, expected[i].ids) << prompts[i];
    }
  }
}

// A conversation: each prompt is the one before with its reply, and more.
TEST_F(HybridTexts, TurnsGoOnFromTheStateOfTheTurnBefore) {
  std::string text = kLetters;
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const Reply drafted = reply(text, {DecodeMode::tree, 16});
    EXPECT_GE(drafted.reused_tokens, turn > 0 ? 60u : 0u) << "turn " << turn;
    const StateUse now = engine_->resident->current().tree(DraftTree(0), HeadOutput::none).states;
    EXPECT_EQ(now.position, engine_->resident->current().length());
    text += "MoreOfIt";
  }
  const Reply last = reply(text, {DecodeMode::chain, 1});
  EXPECT_EQ(last.ids, alone(text).ids);
}

}  // namespace
}  // namespace canopy::test

// Plain greedy decoding, token by token, against huggingface/transformers: generate.json.

#include <gtest/gtest.h>

#include "engine/session/engine.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

TEST(GenerateGolden, PromptsGiveTheGoldenReply) {
  const nlohmann::json json = golden_json("generate.json");
  OpenRequest request;
  request.path = golden_folder() / "tiny-qwen3";
  request.cache_type = cache_under_test();
  request.context = 1024;
  const auto loaded = Engine::open(device_under_test(), request, {});
  ASSERT_TRUE(loaded->self_test->passed) << loaded->self_test->sentence;

  size_t cases = 0;
  for (const auto& test : json.at("prompts")) {
    const auto name = test.at("name").get<std::string>();
    if (!prompt_under_test(name)) continue;
    ++cases;
    const auto prompt = test.at("prompt_ids").get<std::vector<uint32_t>>();
    auto stops = test.at("stop_token_ids").get<std::vector<uint32_t>>();
    std::sort(stops.begin(), stops.end());
    EXPECT_EQ(loaded->text.stop_ids, stops) << name;
    EXPECT_EQ(loaded->prompt_ids({}, test.at("prompt").get<std::string>()), prompt) << name;

    ReplySettings settings;
    settings.max_tokens = test.at("max_new_tokens").get<uint32_t>();
    const Reply reply = loaded->reply(prompt, settings);
    const auto expected = test.at("output_ids").get<std::vector<uint32_t>>();
    if (cache_under_test() == CacheType::f32) {
      EXPECT_EQ(reply.ids, expected) << name;
      EXPECT_EQ(reply.rounds.size(), expected.size() - 1) << name;
      continue;
    }
    // With a rounded cache the texts may differ from a token on whose logits were nearly equal, and only there.
    const auto gaps = test.at("output_top2_gap").get<std::vector<double>>();
    for (size_t i = 0; i < std::min(reply.ids.size(), expected.size()); ++i) {
      if (reply.ids[i] == expected[i]) continue;
      EXPECT_LT(gaps[i], 2 * kHalfCacheTolerance) << name << ", token " << i;
      break;
    }
  }
  EXPECT_GT(cases, 0u);
}

}  // namespace
}  // namespace canopy::test

// The GGUF files compared with huggingface/transformers, using weights decoded by gguf-py.

#include <gtest/gtest.h>

#include <memory>

#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr double kGgufLogits = 2e-4;

double allowed_for(const std::string& weights) {
  const DeviceInfo& device = device_under_test().info();
  if (weights == "q8_0" && device.rounds_to_8_bits) return kByteActivationsTolerance;
  return tolerance(weights == "q8_0" && device.rounds_to_16_bits ? kShortActivationsTolerance : kGgufLogits);
}

class GgufGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufGolden, LogitsAndGreedyDecisions) {
  const nlohmann::json json = golden_json("gguf_logits.json");
  const GoldenTensors tensors("gguf_logits.safetensors");
  const ModelFile file = ModelFile::open(golden_folder() / ("tiny-qwen3-" + GetParam() + ".gguf"));
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = options.max_width = 512;
  const auto model = Model::load(device_under_test(), file, options);

  RowBatch text;
  for (const auto& id : json.at("prompt_ids")) text.add_text(id.get<uint32_t>(), text.width());
  EXPECT_LE(max_difference(run_for_all_logits(*model, text).logits, tensors[GetParam() + ".prefill_logits"]),
            allowed_for(GetParam()));

  const nlohmann::json prompts = golden_json("generate.json").at("prompts");
  size_t cases = 0;
  for (const auto& greedy : json.at("greedy")) {
    if (greedy.at("weights") != GetParam()) continue;
    if (!prompt_under_test(greedy.at("prompt").get<std::string>())) continue;
    const auto prompt = std::find_if(prompts.begin(), prompts.end(),
                                     [&](const auto& p) { return p.at("name") == greedy.at("prompt"); });
    ASSERT_NE(prompt, prompts.end());
    auto ids = prompt->at("prompt_ids").get<std::vector<uint32_t>>();
    const size_t prompt_size = ids.size();
    const auto output = greedy.at("output_ids").get<std::vector<uint32_t>>();
    const auto gaps = greedy.at("output_top2_gap").get<std::vector<double>>();
    ids.insert(ids.end(), output.begin(), output.end() - 1);
    RowBatch batch;
    std::vector<uint32_t> decisions;
    for (uint32_t i = 0; i < ids.size(); ++i) {
      batch.add_text(ids[i], i);
      if (i + 1 >= prompt_size) decisions.push_back(i);
    }
    const ForwardOutput result = model->forward({batch, HeadOutput::argmax, decisions});
    for (size_t i = 0; i < output.size(); ++i) {
      if (gaps[i] < 2 * allowed_for(GetParam())) continue;
      EXPECT_EQ(result.best(decisions[i]), output[i]) << greedy.at("prompt") << ", token " << i << ", gap " << gaps[i];
    }
    ++cases;
  }
  EXPECT_GT(cases, 0u);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufGolden, ::testing::Values("f16", "q8_0"));

}  // namespace
}  // namespace canopy::test

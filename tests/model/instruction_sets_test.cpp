// Whole models on the processor: logits of a text and of a tree, of every architecture there is a checkpoint of, with
// the same bits on all instruction sets that it has and with any number of threads.

#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/processor.h"
#include "engine/format/model_file.h"
#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/golden_data.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

constexpr uint32_t kText = 70;  // into the second page of keys
constexpr uint32_t kNodes = 9;

std::vector<float> logits_on(const std::string& checkpoint, const DeviceSettings& settings, CacheType cache) {
  const std::unique_ptr<Device> device = open_cpu_device(settings);
  const ModelFile file = ModelFile::open(golden_folder() / checkpoint);
  ModelOptions options;
  options.cache_type = cache;
  options.context = options.max_width = 128;
  const std::unique_ptr<Model> model = Model::load(*device, file, options);
  const auto token = [&](uint32_t i) { return (i * 37 + 11) % model->config().vocab; };
  RowBatch text, tree;
  for (uint32_t i = 0; i < kText; ++i) text.add_text(token(i), i);
  for (uint32_t i = 0; i < kNodes; ++i) {
    tree.add_node(token(kText + i), options.context + i, kText, static_cast<int32_t>(i) / 2 - (i == 0 ? 1 : 0));
  }
  const StateRef behind_text = model->states().take();  // none without recurrent layers
  StateUse states;
  if (behind_text) states.to = behind_text.place();
  std::vector<float> logits = run_for_all_logits(*model, text, false, states).logits;
  if (behind_text) states = {behind_text.place(), kText, StateUse::kNowhere};
  const std::vector<float> of_tree = run_for_all_logits(*model, tree, false, states).logits;
  logits.insert(logits.end(), of_tree.begin(), of_tree.end());
  return logits;
}

class InstructionSets : public testing::TestWithParam<std::string> {};

TEST_P(InstructionSets, WriteTheSameLogits) {
  // q8_0 needs heads of whole blocks, which these have not.
  for (const CacheType cache : {CacheType::f32, CacheType::f16}) {
    const std::vector<float> portable = logits_on(GetParam(), {"portable", 1}, cache);
    for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
      for (const uint32_t threads : {1u, 3u}) {
        if (!set.missing.empty()) continue;
        SCOPED_TRACE(std::string(set.kernels->name) + ", " + std::to_string(threads) + " threads");
        EXPECT_TRUE(same_bits(portable, logits_on(GetParam(), {set.kernels->name, threads}, cache)));
      }
    }
  }
}

// Attention without more, soft caps and windows, sinks and experts in MXFP4, shared experts and recurrences, Q8_0.
INSTANTIATE_TEST_SUITE_P(Checkpoints, InstructionSets,
                         testing::Values("tiny-qwen3", "tiny-gemma2", "tiny-gemma3", "tiny-gpt-oss-mxfp4",
                                         "tiny-qwen3-moe", "tiny-qwen3_5-moe", "tiny-phi3", "tiny-qwen3-q8_0.gguf"),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace canopy::test

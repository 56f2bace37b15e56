// tiny-llama3 (untied head, llama3 frequency scaling) compared with huggingface/transformers.

#include <gtest/gtest.h>

#include <memory>

#include "engine/format/dequantize.h"
#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr double kLlama3Logits = 2e-4;

std::vector<uint32_t> argmax_rows(std::span<const float> logits, size_t vocab) {
  std::vector<uint32_t> ids;
  for (size_t row = 0; row < logits.size(); row += vocab) {
    const auto values = logits.subspan(row, vocab);
    ids.push_back(static_cast<uint32_t>(std::max_element(values.begin(), values.end()) - values.begin()));
  }
  return ids;
}

TEST(Llama3Golden, SequencesAndTrees) {
  const nlohmann::json json = golden_json("tiny-llama3.golden.json");
  const GoldenTensors tensors("tiny-llama3.golden.safetensors");
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-llama3");
  const ModelConfig& config = file.config();
  const TensorView& norm = file.require("output_norm", 1, config.hidden);
  std::vector<float> norm_weight(norm.elements());
  dequantize(norm.type, norm.bytes, norm_weight);

  size_t longest = 0;
  for (const auto& sequence : json.at("sequences")) longest = std::max(longest, sequence.at("ids").size());
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.context = static_cast<uint32_t>(longest) + 64;
  options.max_width = static_cast<uint32_t>(longest) + 64;
  options.aux_layers = {config.layers - 1};
  const auto model = Model::load(device_under_test(), file, options);

  for (const auto& sequence : json.at("sequences")) {
    const auto name = sequence.at("name").get<std::string>();
    const auto ids = sequence.at("ids").get<std::vector<uint32_t>>();
    RowBatch text;
    for (uint32_t i = 0; i < ids.size(); ++i) text.add_text(ids[i], i);
    const FullPass plain = run_for_all_logits(*model, text, true);
    EXPECT_LE(max_difference(plain.logits, tensors[name + ".logits"]), tolerance(kLlama3Logits)) << name;
    EXPECT_LE(
        max_difference(rms_norm(plain.aux_hidden_states, norm_weight, config.rms_eps), tensors[name + ".final_hidden"]),
        tolerance(kLlama3Logits))
        << name;

    const auto tokens = sequence.at("tree_token_ids").get<std::vector<uint32_t>>();
    const auto parents = sequence.at("tree_parents").get<std::vector<int32_t>>();
    const auto depths = sequence.at("tree_depths").get<std::vector<uint32_t>>();
    const auto start = static_cast<uint32_t>(ids.size());
    RowBatch tree;
    for (uint32_t i = 0; i < tokens.size(); ++i) {
      tree.add_node(tokens[i], model->limits().context + i, start, parents[i]);
      ASSERT_EQ(tree.rows[i].position, start + depths[i]);
    }
    const FullPass nodes = run_for_all_logits(*model, tree);
    EXPECT_LE(max_difference(nodes.logits, tensors[name + ".tree_logits"]), tolerance(kLlama3Logits)) << name;

    if (sequence.at("min_top2_gap").get<double>() < 2 * tolerance(kLlama3Logits)) continue;
    EXPECT_EQ(argmax_rows(plain.logits, config.vocab), sequence.at("argmax").get<std::vector<uint32_t>>()) << name;
    EXPECT_EQ(argmax_rows(nodes.logits, config.vocab), sequence.at("tree_argmax").get<std::vector<uint32_t>>()) << name;
  }
}

}  // namespace
}  // namespace canopy::test

// tiny-qwen3 compared with huggingface/transformers and liranringel/ddtree: prefill, tree verification, commit.

#include <gtest/gtest.h>

#include <memory>

#include "engine/format/dequantize.h"
#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr double kLogits = 2e-4;  // also hidden states; tests/golden/README.md
constexpr double kKv = 1e-4;

class Qwen3Golden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    json_ = std::make_unique<nlohmann::json>(golden_json("forward.json"));
    tensors_ = std::make_unique<GoldenTensors>("forward.safetensors");
    file_ = std::make_unique<ModelFile>(ModelFile::open(golden_folder() / "tiny-qwen3"));
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = 256;
    options.aux_layers = {0, 1, 2, 3, 4, 5, 6, 7};
    model_ = Model::load(device_under_test(), *file_, options);
  }
  static void TearDownTestSuite() {
    model_.reset();
    file_.reset();
    tensors_.reset();
    json_.reset();
  }

  static std::vector<uint32_t> prompt() { return json_->at("prompt_ids").get<std::vector<uint32_t>>(); }

  static FullPass prefill() {
    RowBatch batch;
    uint32_t position = 0;
    for (const uint32_t id : prompt()) batch.add_text(id, position++);
    return run_for_all_logits(*model_, batch, true);
  }

  /// The rows [rows, hidden] of one layer of the aux hidden states.
  static std::vector<float> aux(const FullPass& result, uint32_t layer) {
    const size_t hidden = model_->config().hidden;
    const size_t stride = hidden * model_->aux_layers().size();
    std::vector<float> values;
    for (size_t row = 0; row < result.aux_hidden_states.size(); row += stride) {
      const float* from = result.aux_hidden_states.data() + row + layer * hidden;
      values.insert(values.end(), from, from + hidden);
    }
    return values;
  }

  /// The cache's [count, heads, dim] reordered as in the golden file: [heads, count, dim].
  static std::vector<float> kv_by_head(uint32_t layer, bool values, uint32_t count) {
    const std::vector<float> slots = model_->read_kv(layer, values, 0, count);
    const uint32_t heads = model_->config().kv_heads;
    const uint32_t dim = model_->config().head_dim;
    std::vector<float> result;
    for (uint32_t head = 0; head < heads; ++head) {
      for (uint32_t slot = 0; slot < count; ++slot) {
        const float* from = slots.data() + (size_t{slot} * heads + head) * dim;
        result.insert(result.end(), from, from + dim);
      }
    }
    return result;
  }

  static void expect_kv(const std::string& prefix, uint32_t count) {
    for (const uint32_t layer : {0u, 7u}) {
      const std::string name = prefix + ".layer" + std::to_string(layer);
      EXPECT_LE(max_difference(kv_by_head(layer, false, count), (*tensors_)[name + ".k"]), tolerance(kKv)) << name;
      EXPECT_LE(max_difference(kv_by_head(layer, true, count), (*tensors_)[name + ".v"]), tolerance(kKv)) << name;
    }
  }

  static inline std::unique_ptr<nlohmann::json> json_;
  static inline std::unique_ptr<GoldenTensors> tensors_;
  static inline std::unique_ptr<ModelFile> file_;
  static inline std::unique_ptr<Model> model_;
};

TEST_F(Qwen3Golden, PrefillGivesTheGoldenLogitsHiddenStatesAndCache) {
  const FullPass result = prefill();
  EXPECT_LE(max_difference(result.logits, (*tensors_)["prefill.logits"]), tolerance(kLogits));

  // Entry 0 is the embeddings, entry i + 1 the output of layer i, the last one after the final norm.
  const auto hidden_states = (*tensors_)["prefill.hidden_states"];
  const size_t one = prompt().size() * model_->config().hidden;
  const uint32_t layers = model_->config().layers;
  for (uint32_t layer = 0; layer + 1 < layers; ++layer) {
    EXPECT_LE(max_difference(aux(result, layer), hidden_states.subspan((layer + 1) * one, one)),
              tolerance(kLogits, kHalfCacheHiddenTolerance))
        << "layer " << layer;
  }
  const TensorView& norm = file_->require("output_norm", 1, model_->config().hidden);
  std::vector<float> weight(norm.elements());
  dequantize(norm.type, norm.bytes, weight);
  EXPECT_LE(max_difference(rms_norm(aux(result, layers - 1), weight, model_->config().rms_eps),
                           hidden_states.subspan(layers * one, one)),
            tolerance(kLogits, kHalfCacheHiddenTolerance));
  expect_kv("prefill", static_cast<uint32_t>(prompt().size()));
}

TEST_F(Qwen3Golden, ArgmaxOfChosenRowsIsThatOfTheirLogits) {
  const FullPass all = prefill();
  RowBatch batch;
  uint32_t position = 0;
  for (const uint32_t id : prompt()) batch.add_text(id, position++);
  const std::vector<uint32_t> rows = {batch.width() - 1, 0, 7};
  const ForwardOutput chosen = model_->forward({batch, HeadOutput::argmax, rows});
  ASSERT_EQ(chosen.choices().size(), rows.size());
  const size_t vocab = model_->config().vocab;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = std::span(all.logits).subspan(rows[i] * vocab, vocab);
    const auto best = std::max_element(row.begin(), row.end());
    EXPECT_EQ(chosen.best(rows[i]), best - row.begin());
    EXPECT_EQ(chosen.best_logit(rows[i]), *best);
  }
}

TEST_F(Qwen3Golden, TreeRowsGiveTheGoldenLogitsTapsAndCommittedCache) {
  prefill();
  for (size_t r = 0; r < 2; ++r) {
    const auto& round = json_->at("rounds")[r];
    const std::string name = "round" + std::to_string(r);
    const auto start = round.at("start").get<uint32_t>();
    const auto tokens = round.at("verify_input_ids").get<std::vector<uint32_t>>();
    const auto parents = round.at("parents").get<std::vector<int32_t>>();
    const auto positions = round.at("verify_position_ids").get<std::vector<uint32_t>>();
    const uint32_t tree = model_->limits().context;  // first tree slot
    RowBatch batch;
    for (uint32_t i = 0; i < tokens.size(); ++i) batch.add_node(tokens[i], tree + i, start, parents[i]);
    for (size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(batch.rows[i].position, positions[i]);

    const FullPass result = run_for_all_logits(*model_, batch, true);
    EXPECT_LE(max_difference(result.logits, (*tensors_)[name + ".verify_logits"]), tolerance(kLogits)) << name;

    const size_t hidden = model_->config().hidden;
    const auto golden = (*tensors_)[name + ".verify_taps"];  // [rows, layers 1, 3, 5]
    std::vector<float> aux_hidden_states;
    for (size_t row = 0; row < tokens.size(); ++row) {
      for (const size_t layer : {1, 3, 5}) {
        const float* from = result.aux_hidden_states.data() + (row * model_->aux_layers().size() + layer) * hidden;
        aux_hidden_states.insert(aux_hidden_states.end(), from, from + hidden);
      }
    }
    EXPECT_LE(max_difference(aux_hidden_states, golden), tolerance(kLogits, kHalfCacheHiddenTolerance)) << name;

    std::vector<KvMove> moves;
    for (const auto& node : round.at("accepted_indices")) {
      moves.push_back({tree + node.get<uint32_t>(), start + static_cast<uint32_t>(moves.size())});
    }
    model_->move_kv(moves);
    expect_kv(name, start + static_cast<uint32_t>(moves.size()));
  }
}

// In one pass over prompt and golden reply, each row must choose the same token as plain greedy decoding.
TEST_F(Qwen3Golden, EveryGreedyDecisionIsKept) {
  ModelOptions options;
  options.cache_type = cache_under_test();
  options.max_width = 512;
  options.context = 512;
  const auto model = Model::load(device_under_test(), *file_, options);
  const nlohmann::json generate = golden_json("generate.json");
  size_t cases = 0;
  for (const auto& test : generate.at("prompts")) {
    if (!prompt_under_test(test.at("name").get<std::string>())) continue;
    ++cases;
    const auto prompt = test.at("prompt_ids").get<std::vector<uint32_t>>();
    const auto output = test.at("output_ids").get<std::vector<uint32_t>>();
    const auto gaps = test.at("output_top2_gap").get<std::vector<double>>();
    RowBatch batch;
    std::vector<uint32_t> rows;
    for (uint32_t i = 0; i < prompt.size() + output.size() - 1; ++i) {
      batch.add_text(i < prompt.size() ? prompt[i] : output[i - prompt.size()], i);
      if (i + 1 >= prompt.size()) rows.push_back(i);
    }
    const ForwardOutput result = model->forward({batch, HeadOutput::argmax, rows});
    ASSERT_EQ(result.choices().size(), output.size());
    size_t compared = 0;
    for (size_t i = 0; i < output.size(); ++i) {
      if (gaps[i] < 2 * tolerance(kLogits)) continue;  // each of the two logits may differ by the tolerance
      EXPECT_EQ(result.best(rows[i]), output[i]) << test.at("name") << ", token " << i << ", gap " << gaps[i];
      ++compared;
    }
    EXPECT_GE(compared * 10, output.size() * 8) << test.at("name");
  }
  EXPECT_GT(cases, 0u);
}

}  // namespace
}  // namespace canopy::test

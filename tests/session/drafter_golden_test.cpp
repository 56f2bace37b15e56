// The drafter of tiny-qwen3 against liranringel/ddtree, round by round: forward.json and forward.safetensors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>

#include "engine/format/dequantize.h"
#include "engine/model/drafter.h"
#include "engine/model/sequence.h"
#include "engine/session/reply_writer.h"
#include "engine/speculation/round_planner.h"
#include "tests/base/expect_error.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr double kDraftLogits = 3e-4;  // tests/golden/README.md
constexpr double kLogits = 2e-4;
constexpr double kKv = 1e-4;
constexpr uint32_t kContext = 256;

class DrafterGolden : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const ModelFile file = ModelFile::open(golden_folder() / "tiny-qwen3");
    drafter_file_ = std::make_unique<DrafterFile>(DrafterFile::open(golden_folder() / GetParam()));
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = kContext;
    options.aux_layers = drafter_file_->config().aux_layers;
    model_ = Model::load(device_under_test(), file, options);
    drafter_ = Drafter::load(*drafter_file_, *model_, {cache_under_test(), {}});
    sequence_ = std::make_unique<Sequence>(*model_, drafter_.get());
  }

  /// Reads text behind what the sequence has, and commits it with its features.
  void read(std::span<const uint32_t> text) {
    ForwardInput input = sequence_->text(text, HeadOutput::argmax);
    input.aux_hidden_states = true;
    output_ = model_->forward(input);
    ASSERT_TRUE(output_.completed());
    ASSERT_TRUE(sequence_->append(text, output_));
  }

  static DraftTree tree_of(const nlohmann::json& round) {
    DraftTree tree(round.at("root_token").get<uint32_t>());
    const auto tokens = round.at("node_token_ids").get<std::vector<uint32_t>>();
    const auto parents = round.at("parents").get<std::vector<int64_t>>();
    for (size_t i = 0; i < tokens.size(); ++i) tree.add(static_cast<uint32_t>(parents[i + 1]), tokens[i], 0, 0, 0);
    return tree;
  }

  static std::vector<float> all_logits(const Draft& draft) {
    std::vector<float> all;
    for (uint32_t depth = 1; depth <= draft.depths; ++depth) {
      const std::vector<float> row = draft.logits_at(depth);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }

  std::vector<float> drafter_hidden() {
    const ModelConfig& config = drafter_->config().transformer;
    const TensorView& norm = drafter_file_->require("output_norm", 1, config.hidden);
    std::vector<float> weight(norm.elements());
    dequantize(norm.type, norm.bytes, weight);
    return rms_norm(drafter_->hidden_states(), weight, config.rms_eps);
  }

  void expect_draft(const Draft& draft, std::span<const float> logits) const {
    const size_t vocab = model_->config().vocab;
    for (uint32_t depth = 1; depth <= draft.depths; ++depth) {
      const auto row = logits.subspan((depth - 1) * vocab, vocab);
      double sum = 0;
      for (const float logit : row) sum += std::exp(static_cast<double>(logit));
      EXPECT_NEAR(draft.log_sum_exp[depth - 1], std::log(sum), tolerance(kDraftLogits));
      const auto best = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
      EXPECT_NEAR(draft.logits[size_t{depth - 1} * draft.candidates], row[best], tolerance(kDraftLogits));
    }
  }

  void expect_cache(const std::string& round, uint32_t count) const {
    const GoldenTensors tensors("forward.safetensors");
    const uint32_t heads = model_->config().kv_heads, dim = model_->config().head_dim;
    for (const uint32_t layer : {0u, 7u}) {
      for (const bool values : {false, true}) {
        const std::vector<float> slots = model_->read_kv(layer, values, 0, count);
        std::vector<float> by_head;  // in the order of the golden file
        for (uint32_t head = 0; head < heads; ++head) {
          for (uint32_t slot = 0; slot < count; ++slot) {
            const float* from = slots.data() + (size_t{slot} * heads + head) * dim;
            by_head.insert(by_head.end(), from, from + dim);
          }
        }
        const std::string name = round + ".layer" + std::to_string(layer) + (values ? ".v" : ".k");
        EXPECT_LE(max_difference(by_head, tensors[name]), tolerance(kKv)) << name;
      }
    }
  }

  std::unique_ptr<DrafterFile> drafter_file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Drafter> drafter_;
  std::unique_ptr<Sequence> sequence_;
  ForwardOutput output_;  // of the last text
};

TEST_P(DrafterGolden, RoundsGiveTheGoldenDraftsVerificationAndCache) {
  const nlohmann::json json = golden_json("forward.json");
  const GoldenTensors tensors("forward.safetensors");
  const auto prompt = json.at("prompt_ids").get<std::vector<uint32_t>>();
  read(prompt);
  EXPECT_EQ(output_.best(static_cast<uint32_t>(prompt.size()) - 1),
            json.at("rounds").at(0).at("root_token").get<uint32_t>());
  SequenceDrafts drafts(*sequence_);
  TreeDrafter trees(drafts);
  for (size_t i = 0; i < json.at("rounds").size(); ++i) {
    const auto& round = json.at("rounds").at(i);
    const std::string name = "round" + std::to_string(i);
    SCOPED_TRACE(name);
    ASSERT_EQ(sequence_->feature_length(), sequence_->length());
    const auto root = round.at("root_token").get<uint32_t>();
    ASSERT_TRUE(trees.draft(root, {drafter_->max_depth()}, {}));
    EXPECT_EQ(sequence_->backlog(), 0u);
    EXPECT_LE(max_difference(drafter_hidden(), tensors[name + ".drafter_hidden"]),
              tolerance(kDraftLogits, kHalfCacheHiddenTolerance));
    EXPECT_LE(max_difference(all_logits(drafts.last()), tensors[name + ".draft_logits"]), tolerance(kDraftLogits));
    expect_draft(drafts.last(), tensors[name + ".draft_logits"]);
    if (!json.at("tensors").contains(name + ".verify_logits")) continue;  // the last round has a draft only

    trees.begin();
    trees.build(json.at("budget").get<uint32_t>());
    const DraftTree golden = tree_of(round);
    if (cache_under_test() == CacheType::f32) {
      for (uint32_t n = 0; n < golden.width(); ++n) EXPECT_EQ(trees.tree()[n].token, golden[n].token) << n;
    }
    ForwardInput input = sequence_->tree(golden, HeadOutput::logits);
    input.aux_hidden_states = true;
    ForwardOutput verified = model_->forward(input);
    std::vector<float> logits;
    for (uint32_t n = 0; n < golden.width(); ++n) {
      const auto row = verified.logits(n);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_LE(max_difference(logits, tensors[name + ".verify_logits"]), tolerance(kLogits));

    AcceptedPath path;
    path.nodes = round.at("accepted_indices").get<std::vector<uint32_t>>();
    sequence_->commit(golden, path, verified);
    expect_cache(name, sequence_->length());
  }
}

/// The candidates of a draft after a text, with its features kept in pieces and injected as they come.
TEST_P(DrafterGolden, PiecesOfFeaturesAndTruncationGiveTheDraftOfAFreshText) {
  const auto prompt = golden_json("forward.json").at("prompt_ids").get<std::vector<uint32_t>>();
  read(prompt);
  const std::optional<Draft> whole = sequence_->draft(262, 7);
  ASSERT_TRUE(whole.has_value());

  // Again from the middle: the two drafts made for a shorter text must have no effect on later ones.
  sequence_->truncate(20);
  EXPECT_EQ(sequence_->feature_length(), 20u);
  ASSERT_TRUE(sequence_->draft(5, 3).has_value());
  uint32_t at = 20;
  for (const uint32_t count : {1u, 9u, 2u, static_cast<uint32_t>(prompt.size()) - 32}) {
    read(std::span(prompt).subspan(at, count));
    at += count;
    if (count == 9) {
      ASSERT_TRUE(sequence_->draft(7, 7).has_value());
    }
  }
  ASSERT_EQ(sequence_->feature_length(), prompt.size());
  const std::optional<Draft> again = sequence_->draft(262, 7);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->tokens, whole->tokens);
  ASSERT_EQ(again->logits.size(), whole->logits.size());
  EXPECT_EQ(std::memcmp(again->logits.data(), whole->logits.data(), whole->logits.size() * sizeof(float)), 0);
}

TEST_P(DrafterGolden, TreesWiderThanTheCandidatesOfADraftFetchMore) {
  const auto prompt = golden_json("forward.json").at("prompt_ids").get<std::vector<uint32_t>>();
  read(prompt);
  SequenceDrafts drafts(*sequence_);
  TreeDrafter trees(drafts);
  ASSERT_TRUE(trees.draft(262, {1}, {}));  // of one depth, so the tree has its best tokens in order
  trees.begin();
  trees.build(500);
  ASSERT_EQ(trees.tree().drafted(), 500u);
  const std::vector<float> logits = drafts.last().logits_at(1);
  std::vector<uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  for (uint32_t n = 1; n <= 500; ++n) ASSERT_EQ(trees.tree()[n].token, order[n - 1]) << n;
}

TEST_P(DrafterGolden, RefusesWhatItCannotDo) {
  expect_error("allowed: 1 to 7", [&] { sequence_->draft(0, 0); });
  expect_error("allowed: 1 to 7", [&] { sequence_->draft(0, 8); });
  expect_error("below 1010", [&] { sequence_->draft(1010, 7); });
}

TEST_P(DrafterGolden, LogitsOfADraftAreReadBeforeTheNext) {
  const auto prompt = golden_json("forward.json").at("prompt_ids").get<std::vector<uint32_t>>();
  read(prompt);
  const Draft draft = sequence_->draft(262, 3).value();
  EXPECT_EQ(draft.logits_at(3).size(), model_->config().vocab);
  expect_error("depths 1 to 3", [&] { draft.logits_at(0); });
  expect_error("depths 1 to 3", [&] { draft.logits_at(4); });
  ASSERT_TRUE(sequence_->draft(262, 7).has_value());
  expect_error("another draft", [&] { draft.logits_at(1); });
}

TEST_P(DrafterGolden, ADraftThatIsStoppedLeavesItsFeaturesWaiting) {
  const auto prompt = golden_json("forward.json").at("prompt_ids").get<std::vector<uint32_t>>();
  read(prompt);
  const uint32_t known = sequence_->feature_length();
  EXPECT_FALSE(sequence_->draft(262, 7, stopped_before()).has_value());
  EXPECT_EQ(sequence_->feature_length(), known);
  EXPECT_TRUE(sequence_->draft(262, 7).has_value());
}

INSTANTIATE_TEST_SUITE_P(Files, DrafterGolden,
                         ::testing::Values("tiny-qwen3-dflash-b8", "tiny-qwen3-dflash-b8-f16.gguf"),
                         [](const auto& test) { return test.index == 0 ? "folder" : "gguf"; });

}  // namespace
}  // namespace canopy::test

// The numeric contract (docs/architecture.md): logits, K/V and aux hidden states of a row have the same bits whatever
// else is in its pass, wherever the row is in it, and whether its ancestors are in the committed cache or in the same
// pass. Every comparison below is of bits, with the row computed alone.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/contract_rig.h"
#include "tests/model/device_under_test.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

constexpr uint32_t kText = 330;  // positions of the text that all tests use
constexpr RigSizes kSizes{.text = kText, .context = 384, .widest = 257, .tree_slots = 288};
// Around the ends of attention's chunks of 64 positions.
constexpr uint32_t kContexts[] = {0, 1, 62, 63, 64, 65, 66, 127, 128, 129, 130, 191, 192, 193, 257};

RandomModel with(const char* architecture, TensorType type) {
  RandomModel random;
  random.architecture = architecture;
  random.type = type;
  return random;
}

std::vector<ContractCase> cases() {
  std::vector<ContractCase> result;
  result.push_back({"llama_f32", with("llama", TensorType::f32)});
  result.push_back({"qwen3_bf16", with("qwen3", TensorType::bf16)});
  result.push_back({"llama_f16", with("llama", TensorType::f16)});
  result.push_back({"llama_q8_0", with("llama", TensorType::q8_0)});
  result.push_back({"qwen2_f32", with("qwen2", TensorType::f32)});
  result.push_back({"mistral3_q8_0", with("mistral3", TensorType::q8_0)});
  ContractCase q4{"qwen3_q4_1", with("qwen3", TensorType::q4_1)};
  // SmolLM2's shape in small: three queries share a key, the head is wider than a workgroup, sizes are odd multiples.
  q4.model.heads = 9;
  q4.model.kv_heads = 3;
  q4.model.head_dim = 32;
  q4.model.hidden = 96;
  q4.model.ffn = 160;
  result.push_back(q4);
  ContractCase experts{"qwen3moe_q4_1", with("qwen3moe", TensorType::q4_1)};
  experts.model.experts = 7;
  experts.model.experts_used = 3;
  experts.model.hidden = 96;
  experts.model.head_dim = 32;
  result.push_back(experts);
  ContractCase heads{"qwen3_layer_heads_q8_0", with("qwen3", TensorType::q8_0)};
  heads.model.layers = 3;
  heads.model.layer_heads = {4, 2, 6};
  heads.model.layer_kv_heads = {2, 2, 1};
  result.push_back(heads);
  result.push_back({"gemma2_f32", with("gemma2", TensorType::f32)});
  ContractCase gemma4{"gemma4_q8_0", with("gemma4", TensorType::q8_0)};
  gemma4.model.layers = 3;
  gemma4.model.head_dim = 32;
  gemma4.model.layer_kv_heads = {2, 1, 2};
  result.push_back(gemma4);
  ContractCase inputs{"gemma4_inputs_f32", with("gemma4", TensorType::f32)};
  inputs.model.layers = 4;
  inputs.model.layer_inputs = 40;
  inputs.model.shared_kv = 2;
  result.push_back(inputs);
  ContractCase beside{"gemma4_experts_q8_0", with("gemma4", TensorType::q8_0)};
  beside.model.experts_beside = true;
  result.push_back(beside);
  for (const TensorType type : {TensorType::f32, TensorType::q8_0}) {
    ContractCase latent{type == TensorType::f32 ? "deepseek2_f32" : "deepseek2_q8_0", with("deepseek2", type)};
    latent.model.head_dim = 96;  // latents of 64
    latent.model.latent_turned = 32;
    latent.model.latent_query_rank = latent.model.latent_key_dim = latent.model.latent_value_dim = 32;
    result.push_back(latent);
  }
  ContractCase glm{"glm4moe_q8_0", with("glm4moe", TensorType::q8_0)};
  glm.model.layers = 3;
  result.push_back(glm);
  ContractCase mixed{"llama_q4_k_m", with("llama", TensorType::q4_k)};
  mixed.model.finer = TensorType::q6_k;
  mixed.model.hidden = 256;
  mixed.model.head_dim = 64;
  mixed.model.ffn = 256;
  result.push_back(mixed);
  return result;
}

class NumericContract : public ContractSuite<kSizes> {
 protected:
  /// Computes these positions of the text in one pass and compares each with the row alone.
  static void expect_positions(const std::vector<uint32_t>& positions, const std::string& what) {
    RowBatch batch;
    for (const uint32_t position : positions) batch.add_text(text_token(position), position);
    const std::vector<RowResult> rows = rig().compute(batch);
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_TRUE(same(rows[i], rig().alone(positions[i])))
          << what << ", row " << i << " of " << rows.size() << ", position " << positions[i];
    }
  }
};

std::vector<uint32_t> widths() {
  std::vector<uint32_t> result(130);
  std::iota(result.begin(), result.end(), 1u);
  result.insert(result.end(), {255, 256, 257});
  return widths_under_test(result);
}

TEST_P(NumericContract, RowsDependOnNothingElse) {
  for (size_t i = 0; i < rig().alone(0).logits.size(); ++i)
    ASSERT_TRUE(std::isfinite(rig().alone(kText - 1).logits[i]));
  EXPECT_FALSE(same(rig().alone(3), rig().alone(4)));  // otherwise no comparison below could fail
}

TEST_P(NumericContract, ContiguousRowsAtEveryWidth) {
  size_t next = 0;
  for (const uint32_t width : widths()) {
    const uint32_t start = std::min(kContexts[next++ % std::size(kContexts)], kText - width);
    std::vector<uint32_t> positions(width);
    std::iota(positions.begin(), positions.end(), start);
    expect_positions(positions, "width " + std::to_string(width));
    if (HasFatalFailure()) return;
  }
}

TEST_P(NumericContract, MixedPositionsAtEveryWidth) {
  for (const uint32_t width : widths()) {
    // Every position at most once, as 151 and 330 have no common factor.
    std::vector<uint32_t> positions(width);
    for (uint32_t i = 0; i < width; ++i) positions[i] = (i * 151 + width * 17) % kText;
    expect_positions(positions, "mixed width " + std::to_string(width));
    if (HasFatalFailure()) return;
  }
}

TEST_P(NumericContract, PrefillInChunksOfAnySize) {
  for (const uint32_t chunk : {5u, 32u, 100u, 257u}) {
    for (uint32_t first = 0; first < kText; first += chunk) {
      std::vector<uint32_t> positions(std::min(chunk, kText - first));
      std::iota(positions.begin(), positions.end(), first);
      expect_positions(positions, "chunk of " + std::to_string(chunk));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(NumericContract, ChosenRowsOfTheHead) {
  RowBatch batch;
  for (uint32_t i = 0; i < 40; ++i) batch.add_text(text_token(100 + i), 100 + i);
  const std::vector<uint32_t> chosen = {39, 0, 17};
  const std::vector<float> logits = logits_of(rig().model(), batch, chosen);
  const ForwardOutput best = rig().model().forward({batch, HeadOutput::argmax, chosen});
  const size_t vocab = rig().model().config().vocab;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<float>& alone = rig().alone(100 + chosen[i]).logits;
    EXPECT_TRUE(same_bits(std::span(logits).subspan(i * vocab, vocab), alone));
    const auto largest = std::max_element(alone.begin(), alone.end());
    EXPECT_EQ(best.best(chosen[i]), largest - alone.begin());
    const float logit = best.best_logit(chosen[i]);
    EXPECT_TRUE(same_bits({&logit, 1}, {&*largest, 1}));
  }
}

TEST_P(NumericContract, TreeRowsEqualTheirCommittedSelves) {
  uint32_t width = 2;
  for (const uint32_t committed : kContexts) {
    const BushyTree tree = rig().bushy_tree(committed, width);
    width = width * 2 > 60 ? 3 : width * 2 + 1;
    const std::vector<RowResult> rows = rig().compute(tree.batch);
    for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) {
      ASSERT_TRUE(same(rows[tree.on_text[depth]], rig().alone(committed + depth)))
          << "context " << committed << ", width " << rows.size() << ", depth " << depth;
    }
    // A path that differs from the text, that of the last row: committed token by token, it gives the same bits.
    const std::vector<uint32_t> path = tree.path_to(tree.batch.width() - 1);
    for (uint32_t depth = 0; depth < path.size(); ++depth) {
      const RowResult committed_row = rig().commit(tree.batch.rows[path[depth]].token, committed + depth);
      ASSERT_TRUE(same(rows[path[depth]], committed_row)) << "context " << committed << ", other path, depth " << depth;
    }
    rig().restore(committed, static_cast<uint32_t>(path.size()));
  }
}

TEST_P(NumericContract, TheDeepestChainEqualsItsCommittedSelf) {
  for (const uint32_t committed : {0u, 30u, 63u, 64u, 100u, 129u}) {
    BushyTree chain;
    for (uint32_t depth = 0; depth <= kMaxTreeDepth; ++depth) {
      rig().add_node(chain, text_token(committed + depth), committed, static_cast<int32_t>(depth) - 1);
    }
    const std::vector<RowResult> rows = rig().compute(chain.batch);
    for (uint32_t depth = 0; depth < rows.size(); ++depth) {
      ASSERT_TRUE(same(rows[depth], rig().alone(committed + depth))) << "context " << committed << ", depth " << depth;
    }
  }
}

TEST_P(NumericContract, AcceptedRowsMoveIntoTheText) {
  constexpr uint32_t committed = 61;
  const BushyTree tree = rig().bushy_tree(committed, 30);
  rig().compute(tree.batch);
  std::vector<KvMove> moves;
  for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) {
    moves.push_back({tree.batch.rows[tree.on_text[depth]].slot, committed + depth});
  }
  // First commit other tokens there, or the test could not fail.
  for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) rig().commit(5, committed + depth);
  rig().model().move_kv(moves);
  const auto next = committed + static_cast<uint32_t>(moves.size());
  EXPECT_TRUE(same(rig().commit(text_token(next), next), rig().alone(next)));
  rig().restore(committed, static_cast<uint32_t>(moves.size()));
}

INSTANTIATE_TEST_SUITE_P(Models, NumericContract, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace canopy::test

// Passes of up to 1,025 rows, that is a draft tree of 1,024 nodes and its root: the numeric contract holds for them
// too. The head goes through the rows in chunks and gives every row the same as alone.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/model/model.h"
#include "tests/model/all_logits.h"
#include "tests/model/contract_rig.h"
#include "tests/model/random_model.h"

namespace canopy::test {
namespace {

constexpr uint32_t kWidest = 1025;
constexpr RigSizes kWideSizes{.text = kWidest + 3, .context = 1152, .widest = kWidest, .tree_slots = kWidest};

std::vector<ContractCase> wide_cases() {
  std::vector<ContractCase> result(2);
  result[0].name = "llama_f32_wide";
  result[1].name = "qwen3_q4_1_wide";
  RandomModel& q4 = result[1].model;
  q4.architecture = "qwen3";
  q4.type = TensorType::q4_1;
  q4.heads = 9;
  q4.kv_heads = 3;
  q4.head_dim = 32;
  q4.hidden = 96;
  q4.ffn = 160;
  for (ContractCase& c : result) c.model.context = kWideSizes.context;
  return result;
}

class WidePass : public ContractSuite<kWideSizes> {
 protected:
  static RowBatch text(uint32_t first, uint32_t width) {
    RowBatch batch;
    for (uint32_t i = first; i < first + width; ++i) batch.add_text(text_token(i), i);
    return batch;
  }
};

TEST_P(WidePass, RowsOfTextEqualThemselvesAlone) {
  for (const uint32_t width : {1025u, 1024u, 1000u, 513u}) {
    const uint32_t first = kWideSizes.text - width;
    const std::vector<RowResult> rows = rig().compute(text(first, width));
    for (uint32_t i = 0; i < width; ++i) {
      ASSERT_TRUE(same(rows[i], rig().alone(first + i))) << "width " << width << ", row " << i;
    }
  }
}

TEST_P(WidePass, EveryNodeOfAWideTreeEqualsItselfAlone) {
  for (const uint32_t committed : {0u, 63u, 100u}) {
    const BushyTree tree = rig().bushy_tree(committed, kWidest);
    const std::vector<RowResult> rows = rig().compute(tree.batch);
    for (uint32_t depth = 0; depth < tree.on_text.size(); ++depth) {
      ASSERT_TRUE(same(rows[tree.on_text[depth]], rig().alone(committed + depth)))
          << "context " << committed << ", depth " << depth;
    }
    if (committed != 63) continue;  // a thousand passes of one row are enough once
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < kWidest; ++i) {
      // The row alone, after its ancestors' K/V.
      const Row& row = tree.batch.rows[i];
      RowBatch single;
      single.rows = {row};
      single.rows[0].first_ancestor = 0;
      const auto ancestors = tree.batch.ancestors.begin() + row.first_ancestor;
      single.ancestors.assign(ancestors, ancestors + row.ancestor_count);
      ASSERT_TRUE(same(rows[i], rig().compute(single)[0])) << "context " << committed << ", node " << i;
      deepest = std::max(deepest, row.ancestor_count);
    }
    EXPECT_GE(deepest, 12u);
  }
}

TEST_P(WidePass, TheHeadOfAllRowsComesInOnePass) {
  const RowBatch batch = text(0, kWidest);
  ForwardInput input{batch, HeadOutput::argmax, all_rows(batch)};
  input.probabilities = true;
  for (uint32_t row = 0; row < kWidest; ++row) input.token_logits.push_back({(row * 7) % kWidest, row % 77});
  const ForwardOutput result = rig().model().forward(input);
  ASSERT_EQ(result.choices().size(), kWidest);
  ASSERT_EQ(result.log_sum_exp().size(), kWidest);
  ASSERT_EQ(result.token_logits().size(), kWidest);
  for (uint32_t row = 0; row < kWidest; ++row) {
    const std::vector<float>& logits = rig().alone(row).logits;
    const auto largest = std::max_element(logits.begin(), logits.end());
    ASSERT_EQ(result.best(row), largest - logits.begin()) << "row " << row;
    const float best = result.best_logit(row);
    ASSERT_TRUE(same_bits({&best, 1}, {&*largest, 1})) << "row " << row;
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *largest);
    ASSERT_NEAR(result.log_sum_exp()[row], *largest + std::log(sum), 1e-4) << "row " << row;
  }
  for (size_t i = 0; i < input.token_logits.size(); ++i) {
    const auto [row, token] = input.token_logits[i];
    ASSERT_TRUE(same_bits({&result.token_logits()[i], 1}, {&rig().alone(row).logits[token], 1})) << "pick " << i;
  }
}

TEST_P(WidePass, ChosenRowsInAnyOrderAndMoreOfThemLater) {
  const RowBatch batch = text(2, kWidest);
  std::vector<uint32_t> chosen(700);
  for (uint32_t i = 0; i < chosen.size(); ++i) chosen[i] = (i * 601 + 5) % kWidest;
  ForwardInput input{batch, HeadOutput::argmax, chosen};
  input.probabilities = true;
  ForwardOutput output = rig().model().forward(input);
  ASSERT_EQ(output.choices().size(), chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const std::vector<float>& logits = rig().alone(2 + chosen[i]).logits;
    const auto largest = std::max_element(logits.begin(), logits.end());
    ASSERT_EQ(output.best(chosen[i]), largest - logits.begin()) << "row " << chosen[i];
    const float best = output.best_logit(chosen[i]);
    ASSERT_TRUE(same_bits({&best, 1}, {&*largest, 1})) << "row " << chosen[i];
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - *largest);
    ASSERT_NEAR(output.log_sum_exp()[i], *largest + std::log(sum), 1e-4) << "row " << chosen[i];
  }
  // The others, and some of the first ones again: their head is computed now.
  std::vector<uint32_t> rest = all_rows(batch);
  std::erase_if(rest, [&](uint32_t row) { return row % 3 != 0 && std::ranges::count(chosen, row) > 0; });
  std::ranges::reverse(rest);
  const std::vector<float> logits = output.logits(rest);
  const size_t vocab = rig().model().config().vocab;
  for (size_t i = 0; i < rest.size(); ++i) {
    ASSERT_TRUE(same_bits(std::span(logits).subspan(i * vocab, vocab), rig().alone(2 + rest[i]).logits)) << rest[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Models, WidePass, ::testing::ValuesIn(wide_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace canopy::test

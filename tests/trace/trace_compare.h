#pragma once
// Compares two records field by field, bit for bit.

#include <gtest/gtest.h>

#include <bit>

#include "engine/speculation/round_record.h"

namespace canopy::test {

inline void expect_same(double a, double b, const char* field) {
  EXPECT_EQ(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b)) << field << ": " << a << " and " << b;
}

inline void expect_same(const RoundTimes& a, const RoundTimes& b) {
  EXPECT_EQ(a, b);
}

inline void expect_same(const RoundNode& a, const RoundNode& b) {
  EXPECT_EQ(a.node.token, b.node.token);
  EXPECT_EQ(a.node.parent, b.node.parent);
  EXPECT_EQ(a.node.depth, b.node.depth);
  EXPECT_EQ(a.node.rank, b.node.rank);
  EXPECT_EQ(a.node.sources, b.node.sources);
  EXPECT_EQ(a.node.went_on, b.node.went_on);
  expect_same(a.node.log_q, b.node.log_q, "log q");
  expect_same(a.node.score, b.node.score, "score");
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.target_token, b.target_token);
  EXPECT_EQ(std::bit_cast<uint32_t>(a.log_p), std::bit_cast<uint32_t>(b.log_p));
}

inline void expect_same(const RoundChoice& a, const RoundChoice& b) {
  ASSERT_EQ(a.candidates.size(), b.candidates.size());
  for (size_t i = 0; i < a.candidates.size(); ++i) {
    EXPECT_EQ(a.candidates[i].width, b.candidates[i].width);
    expect_same(a.candidates[i].expected, b.candidates[i].expected, "expected");
    expect_same(a.candidates[i].ms, b.candidates[i].ms, "ms");
  }
  EXPECT_EQ(a.limits, b.limits);
  expect_same(a.ar_tokens_per_second, b.ar_tokens_per_second, "ar_tokens_per_second");
  EXPECT_EQ(a.reason, b.reason);
}

inline void expect_same(const RoundRecord& a, const RoundRecord& b) {
  EXPECT_EQ(a.round, b.round);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.accepted, b.accepted);
  EXPECT_EQ(a.emitted, b.emitted);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) expect_same(a.nodes[i], b.nodes[i]);
  expect_same(a.ms, b.ms);
  expect_same(a.device_ms, b.device_ms);
  expect_same(a.predicted, b.predicted);
  expect_same(a.choice, b.choice);
  EXPECT_EQ(a.match, b.match);
  EXPECT_EQ(a.backlog, b.backlog);
  EXPECT_EQ(a.teaches, b.teaches);
  EXPECT_EQ(a.distinct_experts, b.distinct_experts);
}

inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << i;
}

inline void expect_same(const KeptDraft& a, const KeptDraft& b) {
  EXPECT_EQ(a.block.depths, b.block.depths);
  EXPECT_EQ(a.block.candidates, b.block.candidates);
  EXPECT_EQ(a.block.tokens, b.block.tokens);
  expect_same_bits(a.block.logits, b.block.logits);
  expect_same_bits(a.block.log_sum_exp, b.block.log_sum_exp);
  EXPECT_EQ(a.block.behind, b.block.behind);
  ASSERT_EQ(a.more.size(), b.more.size());
  for (size_t i = 0; i < a.more.size(); ++i) {
    EXPECT_EQ(a.more[i].depth, b.more[i].depth);
    EXPECT_EQ(a.more[i].tokens, b.more[i].tokens);
    expect_same_bits(a.more[i].logits, b.more[i].logits);
  }
}

}  // namespace canopy::test

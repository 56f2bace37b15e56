#pragma once
// Rounds for tests of charts: their width is chosen by the engine's own rule, with costs that the test makes up.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "engine/session/engine_client.h"
#include "engine/speculation/controller.h"
#include "engine/speculation/round_record.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {

/// Milliseconds of a round of this width, its draft included; for width 1 of an AR round.
using RoundCost = std::function<double(uint32_t width)>;

/// A cost that is constant within tiles of 16 rows, like that of kernels.
inline double tiled_cost(uint32_t width) {
  if (width == 1) return 6.32;
  return 8.1 + 0.55 * std::ceil(width / 16.0) + 0.004 * width + (width > 64 ? 1.5 : 0);
}

/// The cost of a device that computes on the CPU: each row costs nearly as much as the first.
inline double steep_cost(uint32_t width) {
  return width == 1 ? 20 : 45 + 14.0 * width;
}

/// The record with its tree cut to the width that mode Adaptive would choose.
inline RoundRecord decided(RoundRecord record, const RoundCost& cost, WidthObjective objective,
                           double tokens_per_ms = 0) {
  std::vector<double> tree, ms;
  double expected = 0;
  for (uint32_t i = 0; i < record.width; ++i) {
    expected += i == 0 ? 1 : std::exp(record.nodes[i].node.score);
    tree.push_back(expected);
    ms.push_back(cost(i + 1));
  }
  WidthCurves question;
  question.tree = tree;
  question.ms = ms;
  question.longest_ms = 1e9;
  question.tokens_per_ms = tokens_per_ms;
  question.objective = objective;
  const uint32_t built = record.width;
  const WidthChoice answer = choose_width(question);
  const uint32_t width = answer.best.width;
  record.mode = DecodeMode::adaptive;
  record.choice.limits = {};
  record.choice.limits.budget = record.width - 1;
  record.choice.limits.depth = 15;
  record.choice.candidates = forecasts(question, width);
  record.choice.ar_tokens_per_second = 1000 / cost(1);
  record.choice.reason = reason::chosen(answer.shape, answer.best, record.choice.ar_tokens_per_second);
  if (width == 1) record.choice.reason = reason::not_worth_verifying(answer.best, expected, built);
  record.shape = width > 1 ? DecodeMode::tree : DecodeMode::ar;
  record.width = width;
  // Walk again within the part of the tree that is left.
  record.nodes.resize(width > 1 ? width : 0);
  uint32_t accepted = 0;
  for (const RoundNode& each : record.nodes) accepted += each.state == NodeState::accepted && each.node.depth > 0;
  record.accepted = accepted;
  record.emitted.resize(accepted + 1);
  record.predicted = {};
  record.predicted.draft = width > 1 ? 1.9 : 0;
  record.predicted.verify = ms[width - 1] - record.predicted.draft;
  return record;
}

/// The record with measured times: the predicted ones times (1 + off).
inline RoundRecord timed(RoundRecord record, double off) {
  record.ms = {};
  record.ms.draft = record.predicted.draft * (1 + off);
  record.ms.verify = record.predicted.verify * (1 + off) * 0.94;
  record.ms.other = record.predicted.verify * (1 + off) * 0.06;
  return record;
}

/// The costs that a calibration would have measured on such a device, at two contexts.
inline std::shared_ptr<const CostSnapshot> costs_of(const RoundCost& cost, uint32_t widest = 128) {
  CostTable table(16);
  for (const uint32_t context : {512u, 4096u})
    for (uint32_t width = 1; width <= widest; width += width < 64 ? 1 : 16)
      table.set_verify(width, context, (cost(width) - (width > 1 ? 1.9 : 0)) * (context > 512 ? 1.25 : 1));
  table.set_draft(1, 512, 1.7);
  table.set_draft(8, 512, 1.9);
  ModelShape shape;
  shape.layers = 30;
  shape.hidden = 576;
  shape.query_heads = 9;
  shape.kv_heads = 3;
  shape.head_dim = 64;
  shape.ffn = 1536;
  shape.vocab = 49152;
  shape.weight_bytes = 0.625;
  return std::make_shared<const CostSnapshot>(cost_snapshot(table, Roofline(shape, {2e12, 3e10})));
}

}  // namespace canopy::test

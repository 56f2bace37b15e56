#pragma once
// Trees for tests: random ones of any shape, and rounds given by hand.

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "app/tree/tree_model.h"
#include "engine/speculation/round_record.h"

namespace canopy::test {

/// A random round whose tree and walk fit together: siblings differ in rank and token, and the target takes one of them
/// or another token. deep in [0, 1]: how often a new node becomes a child of the last one.
inline RoundRecord random_round(std::mt19937& random, uint32_t width, double deep) {
  const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  RoundRecord record;
  record.width = width;
  record.shape = record.mode = DecodeMode::tree;
  record.context = 500;
  std::vector<uint32_t> children(width, 0);
  for (uint32_t i = 0; i < width; ++i) {
    RoundNode row;
    row.state = i == 0 ? NodeState::accepted : NodeState::not_reached;
    if (i > 0) {
      const uint32_t parent = uniform() < deep ? i - 1 : static_cast<uint32_t>(random() % i);
      row.node.parent = parent;
      row.node.depth = record.nodes[parent].node.depth + 1;
      row.node.rank = children[parent]++;
      row.node.log_q = -0.1 - uniform();
      row.node.score = record.nodes[parent].node.score + row.node.log_q;
      row.log_p = static_cast<float>(-uniform());
    }
    row.node.token = row.node.depth * 5000 + row.node.rank;
    row.target_token = 4'000'000 + i;
    record.nodes.push_back(row);
  }
  uint32_t at = 0;
  while (children[at] > 0 && uniform() < 0.8) {
    const uint32_t rank = static_cast<uint32_t>(random() % children[at]);
    uint32_t next = at;
    for (uint32_t i = at + 1; i < width; ++i)
      if (record.nodes[i].node.parent == at && record.nodes[i].node.rank == rank) next = i;
    record.emitted.push_back(record.nodes[at].target_token = record.nodes[next].node.token);
    record.nodes[at = next].state = NodeState::accepted;
    ++record.accepted;
  }
  record.emitted.push_back(record.nodes[at].target_token);
  for (uint32_t i = 1; i < width; ++i) {
    if (record.nodes[i].state == NodeState::accepted) continue;
    const bool frontier = record.nodes[record.nodes[i].node.parent].state == NodeState::accepted;
    record.nodes[i].state = frontier ? NodeState::rejected : NodeState::not_reached;
  }
  return record;
}

/// A node of a list: parent, token, rank, q.
struct SampleNode {
  uint32_t parent, token, rank;
  double q;
};

/// A round with these nodes below the root (token 1), after which the text went on with `emitted`.
inline RoundRecord sample_round(const std::vector<SampleNode>& drafted, std::vector<uint32_t> emitted) {
  RoundRecord record;
  record.mode = record.shape = DecodeMode::tree;
  record.width = static_cast<uint32_t>(drafted.size()) + 1;
  record.context = 500;
  record.nodes.resize(1);
  record.nodes[0].node.token = 1;
  record.nodes[0].state = NodeState::accepted;
  for (const SampleNode& each : drafted) {
    RoundNode row;
    const TreeNode& parent = record.nodes[each.parent].node;
    row.node = {each.token, each.parent,      parent.depth + 1,
                each.rank,  std::log(each.q), parent.score + std::log(each.q)};
    row.log_p = static_cast<float>(std::log(each.q * 0.9));
    record.nodes.push_back(row);
  }
  record.emitted = std::move(emitted);
  uint32_t at = 0;
  for (const uint32_t token : record.emitted) {
    record.nodes[at].target_token = token;
    uint32_t next = 0;
    for (uint32_t i = at + 1; i < record.width && next == 0; ++i)
      if (record.nodes[i].node.parent == at && record.nodes[i].node.token == token) next = i;
    if (next == 0) break;
    record.nodes[at = next].state = NodeState::accepted;
    ++record.accepted;
  }
  for (uint32_t i = 1; i < record.width; ++i) {
    if (record.nodes[i].state == NodeState::accepted) continue;
    const bool frontier = record.nodes[record.nodes[i].node.parent].state == NodeState::accepted;
    record.nodes[i].state = frontier ? NodeState::rejected : NodeState::not_reached;
  }
  return record;
}

/// The tree of the pictures, in small: "merge" goes on with "two lists" and the bonus "here".
///
///   root 1 ─┬─ 10 (.6, rejected) ── 20 (.5)
///           ├─ 11 (.3, accepted) ─┬─ 20 (.5, rejected) ── 30 (.9)
///           │                     └─ 21 (.2, accepted)
///           └─ 12 (.05, rejected)
inline RoundRecord small_round() {
  return sample_round({{0, 10, 0, 0.6},
                       {1, 20, 0, 0.5},
                       {0, 11, 1, 0.3},
                       {3, 20, 0, 0.5},
                       {4, 30, 0, 0.9},
                       {3, 21, 1, 0.2},
                       {0, 12, 2, 0.05}},
                      {11, 21, 99});
}

/// The small round in which the drafter was asked and the text had 11 and what follows it: 11 is of both.
inline RoundRecord found_round() {
  RoundRecord record = small_round();
  for (RoundNode& row : record.nodes) row.node.sources = kFromDflash;
  record.nodes[0].node.sources = 0;
  record.nodes[3].node.sources = kUsualSources;
  record.nodes[4].node.sources = record.nodes[6].node.sources = kFromSuffix;
  record.match = 14;
  record.ms.draft = 2;
  return record;
}

/// The small round with guesses from the text alone.
inline RoundRecord text_round() {
  RoundRecord record = found_round();
  for (RoundNode& row : record.nodes) row.node.sources = kFromSuffix;
  record.nodes[0].node.sources = 0;
  record.ms.draft = 0;
  return record;
}

}  // namespace canopy::test

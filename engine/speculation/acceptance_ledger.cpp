#include "engine/speculation/acceptance_ledger.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

void check(const DraftTree& tree, size_t depths, size_t calibrations) {
  if (calibrations != 0 && calibrations != depths) {
    throw bad_input("There are calibrations for " + std::to_string(calibrations) + " depths, but " +
                    std::to_string(depths) + " depths are drafted.");
  }
  for (const TreeNode& node : tree.nodes()) {
    if (node.depth > depths) {
      throw bad_input("A node of the draft tree has depth " + std::to_string(node.depth) + ", but only " +
                      std::to_string(depths) + " depths are drafted.");
    }
  }
}

double log_q_of(const DepthCandidates& depth, size_t rank) {
  return std::min(0.0, double{depth.logits[rank]} - depth.log_sum_exp);
}

/// Fills the sums over the best-first order.
void predict_tree(std::span<const TreeNode> nodes, DraftOutcome& outcome) {
  outcome.predicted.assign(nodes.size(), 0);
  outcome.raw.assign(nodes.size(), 0);
  std::vector<double> path(nodes.size(), 0);  // log q of the path to each node
  for (size_t i = 1; i < nodes.size(); ++i) {
    path[i] = path[nodes[i].parent] + nodes[i].log_q;
    outcome.predicted[i] = outcome.predicted[i - 1] + std::exp(nodes[i].score);
    outcome.raw[i] = outcome.raw[i - 1] + std::exp(path[i]);
  }
}

void predict_chain(std::span<const DepthCandidates> depths, std::span<const DepthCalibration> calibration,
                   DraftOutcome& outcome) {
  outcome.chain_predicted.clear();
  double score = 0;
  double sum = 0;
  for (size_t d = 0; d < depths.size(); ++d) {
    const DepthCalibration c = calibration.empty() ? DepthCalibration{} : calibration[d];
    score += std::min(0.0, c.scale * log_q_of(depths[d], 0) + c.shift);
    sum += std::exp(score);
    outcome.chain_predicted.push_back(sum);
  }
}

}  // namespace

uint32_t DraftOutcome::accepted(uint32_t width) const {
  return static_cast<uint32_t>(std::upper_bound(reach.begin(), reach.end(), width) - reach.begin());
}

void AcceptanceLedger::add(const DraftTree& tree, std::span<const DepthCandidates> depths,
                           std::span<const DepthCalibration> calibration) {
  check(tree, depths.size(), calibration.size());
  if (depths.empty()) return;
  if (spare_.empty()) spare_.emplace_back();
  pending_.push_back(std::move(spare_.back()));
  spare_.pop_back();

  Pending& draft = pending_.back();
  draft.truth.clear();
  draft.nodes.assign(tree.nodes().begin(), tree.nodes().end());
  draft.candidates.resize(depths.size());
  DraftOutcome& outcome = draft.outcome;
  outcome.listed = listed_candidates;
  for (const DepthCandidates& depth : depths) {
    outcome.listed = std::min(outcome.listed, static_cast<uint32_t>(depth.tokens.size()));
  }
  outcome.log_q.clear();
  for (size_t d = 0; d < depths.size(); ++d) {
    draft.candidates[d].assign(depths[d].tokens.begin(), depths[d].tokens.end());
    for (uint32_t rank = 0; rank < outcome.listed; ++rank) {
      outcome.log_q.push_back(static_cast<float>(log_q_of(depths[d], rank)));
    }
  }
  predict_tree(tree.nodes(), outcome);
  predict_chain(depths, calibration, outcome);
}

void AcceptanceLedger::clear() {
  while (!pending_.empty()) retire_oldest();
}

void AcceptanceLedger::settle(Pending& draft) {
  DraftOutcome& outcome = draft.outcome;
  const uint32_t depths = outcome.depths();
  outcome.ranks.clear();
  for (uint32_t d = 0; d < depths; ++d) {
    const auto& tokens = draft.candidates[d];
    const auto found = std::find(tokens.begin(), tokens.end(), draft.truth[d]);
    outcome.ranks.push_back(found == tokens.end() ? DraftOutcome::no_rank
                                                  : static_cast<uint32_t>(found - tokens.begin()));
  }
  outcome.chain = 0;
  while (outcome.chain < depths && outcome.ranks[outcome.chain] == 0) ++outcome.chain;

  // One sweep: the child of the path's end that carries the next true token comes behind it in the order.
  outcome.reach.clear();
  uint32_t end = 0;
  for (uint32_t node = 1; node < draft.nodes.size() && outcome.reach.size() < depths; ++node) {
    const TreeNode& candidate = draft.nodes[node];
    if (candidate.parent != end || candidate.token != draft.truth[outcome.reach.size()]) continue;
    outcome.reach.push_back(node + 1);
    end = node;
  }
}

void AcceptanceLedger::retire_oldest() {
  spare_.push_back(std::move(pending_.front()));
  pending_.pop_front();
}

}  // namespace canopy

#include "engine/speculation/mixed_tree.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr uint32_t kLost = UINT32_MAX;

double calibrated(double p, const DepthCalibration& calibration) {
  return std::min(1.0, std::exp(calibration.scale * std::log(p) + calibration.shift));
}

void check_probability(const TokenCandidate& candidate) {
  if (candidate.p > 0 && candidate.p <= 1) return;
  throw bad_input("A source gives token " + std::to_string(candidate.token) + " a probability of " +
                  std::to_string(candidate.p) + "; allowed: above 0, up to 1.");
}

}  // namespace

void MixedTreeBuilder::begin(uint32_t root_token, MergeRule rule) {
  rule_ = rule;
  sources_.clear();
  tree_.reset(root_token);
  sources_of_.assign(1, 0);
  probabilities_.assign(1, 1.0);
  places_.clear();
  lists_.clear();
  of_depth_.clear();
  children_.clear();
  frontier_.clear();
  started_ = false;
}

MixedTreeBuilder::Source& MixedTreeBuilder::new_source() {
  if (started_) throw std::logic_error("A source was added to a tree that has begun to grow.");
  if (sources_.size() == kMostSources) {
    throw bad_input("A tree takes at most " + std::to_string(kMostSources) + " sources.");
  }
  return sources_.emplace_back();
}

uint32_t MixedTreeBuilder::add_rows(std::span<const std::vector<TokenCandidate>> rows,
                                    const DepthCalibration& calibration) {
  for (const std::vector<TokenCandidate>& row : rows) std::ranges::for_each(row, check_probability);
  Source& source = new_source();
  source.rows.assign(rows.begin(), rows.end());
  for (std::vector<TokenCandidate>& row : source.rows)
    for (TokenCandidate& candidate : row) candidate.p = calibrated(candidate.p, calibration);
  return static_cast<uint32_t>(sources_.size()) - 1;
}

uint32_t MixedTreeBuilder::add_tree(std::span<const CandidateNode> nodes, const DepthCalibration& calibration) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    check_probability({nodes[i].token, nodes[i].p});
    if (nodes[i].parent != CandidateNode::root && nodes[i].parent >= i) {
      throw bad_input("Node " + std::to_string(i) + " of a source has the parent " + std::to_string(nodes[i].parent) +
                      ", which does not come before it.");
    }
  }
  Source& source = new_source();
  source.nodes.assign(nodes.begin(), nodes.end());
  source.children.resize(nodes.size() + 1);
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    source.nodes[i].p = calibrated(nodes[i].p, calibration);
    source.children[nodes[i].parent == CandidateNode::root ? 0 : nodes[i].parent + 1].push_back(i);
  }
  return static_cast<uint32_t>(sources_.size()) - 1;
}

bool MixedTreeBuilder::next() {
  if (!started_) {
    started_ = true;
    places_.assign(sources_.size(), 0);
    expand(0);
  }
  if (frontier_.empty()) return false;
  const auto order = [this](const Prospect& a, const Prospect& b) { return after(a, b); };
  std::pop_heap(frontier_.begin(), frontier_.end(), order);
  const Prospect best = frontier_.back();
  frontier_.pop_back();
  const Child child = children_[lists_[best.parent].first + best.rank];
  const uint32_t node = tree_.add(best.parent, child.token, best.rank, std::log(child.q), best.score);
  sources_of_.push_back(child.sources);
  probabilities_.push_back(child.q);
  for (size_t i = 0; i < sources_.size(); ++i) {
    const uint32_t above = places_[best.parent * sources_.size() + i];
    uint32_t place = kLost;
    if (above != kLost && !sources_[i].children.empty()) {
      for (const uint32_t each : sources_[i].children[above]) {
        if (sources_[i].nodes[each].token == child.token) place = each + 1;
      }
    }
    places_.push_back(place);
  }
  push(best.parent, best.rank + 1);
  expand(node);
  return true;
}

void MixedTreeBuilder::expand(uint32_t node) {
  const uint32_t depth = tree_[node].depth;
  const uint32_t* const places = places_.data() + node * sources_.size();
  bool shared = node != 0;  // by all paths of this length that no source names
  for (size_t i = 0; i < sources_.size(); ++i) shared = shared && places[i] == kLost;
  if (of_depth_.size() <= depth) of_depth_.resize(depth + 1);
  lists_.resize(node + 1);
  if (shared && of_depth_[depth].known) {
    lists_[node] = of_depth_[depth];
    return push(node, 0);
  }
  merged_.clear();
  for (uint32_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (depth < source.rows.size()) {
      for (const TokenCandidate& candidate : source.rows[depth]) take(i, candidate);
    }
    if (places[i] == kLost || source.children.empty()) continue;
    for (const uint32_t each : source.children[places[i]]) take(i, {source.nodes[each].token, source.nodes[each].p});
  }
  double sum = 0;
  for (const Child& child : merged_) sum += child.q;
  if (sum > 1) {
    for (Child& child : merged_) child.q /= sum;
  }
  std::ranges::sort(merged_, [](const Child& a, const Child& b) { return a.q != b.q ? a.q > b.q : a.token < b.token; });
  lists_[node] = {children_.size(), static_cast<uint32_t>(merged_.size()), true};
  children_.insert(children_.end(), merged_.begin(), merged_.end());
  if (shared) of_depth_[depth] = lists_[node];
  push(node, 0);
}

void MixedTreeBuilder::take(uint32_t source, const TokenCandidate& candidate) {
  const auto same = std::ranges::find(merged_, candidate.token, &Child::token);
  if (same == merged_.end()) {
    merged_.push_back({candidate.token, 1u << source, candidate.p});
    return;
  }
  same->sources |= 1u << source;
  same->q = rule_ == MergeRule::max ? std::max(same->q, candidate.p) : 1 - (1 - same->q) * (1 - candidate.p);
}

void MixedTreeBuilder::push(uint32_t parent, uint32_t rank) {
  const List& list = lists_[parent];
  if (rank >= list.count) return;
  const double q = children_[list.first + rank].q;
  if (!(q > 0)) return;  // calibrated to nothing
  frontier_.push_back({tree_[parent].score + std::log(q), parent, rank});
  std::push_heap(frontier_.begin(), frontier_.end(),
                 [this](const Prospect& a, const Prospect& b) { return after(a, b); });
}

bool MixedTreeBuilder::after(const Prospect& a, const Prospect& b) const {
  return a.score != b.score ? a.score < b.score : lower_ranks(b, a);
}

bool MixedTreeBuilder::lower_ranks(Prospect a, Prospect b) const {
  const uint32_t depth_a = tree_[a.parent].depth, depth_b = tree_[b.parent].depth;
  const auto up = [this](Prospect& path) { path = {0, tree_[path.parent].parent, tree_[path.parent].rank}; };
  // To the same length, then up to where they part: the ranks nearest to the root decide.
  for (uint32_t i = depth_b; i < depth_a; ++i) up(a);
  for (uint32_t i = depth_a; i < depth_b; ++i) up(b);
  bool lower = depth_a < depth_b;  // where one continues the other
  for (;;) {
    if (a.rank != b.rank) lower = a.rank < b.rank;
    if (a.parent == b.parent) return lower;
    up(a);
    up(b);
  }
}

}  // namespace canopy

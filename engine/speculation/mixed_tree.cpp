#include "engine/speculation/mixed_tree.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

constexpr uint32_t kLost = UINT32_MAX, kNoNode = UINT32_MAX;

/// The p of a token behind a path of `depth` tokens.
double calibrated(double p, std::span<const DepthCalibration> calibration, size_t depth) {
  if (calibration.empty()) return p;
  const DepthCalibration& c = calibration[std::min(depth, calibration.size() - 1)];
  return std::min(1.0, std::exp(c.scale * std::log(p) + c.shift));
}

void check_probability(const TokenCandidate& candidate) {
  if (candidate.p > 0 && candidate.p <= 1) return;
  throw bad_input("A source gives token " + std::to_string(candidate.token) + " a probability of " +
                  std::to_string(candidate.p) + "; allowed: above 0, up to 1.");
}

}  // namespace

void MixedTreeBuilder::begin(uint32_t root_token, MergeRule rule) {
  rule_ = rule;
  used_ = 0;
  tree_.reset(root_token);
  probabilities_.assign(1, 1.0);
  places_.clear();
  lists_.clear();
  of_depth_.clear();
  children_.clear();
  frontier_.clear();
  started_ = false;
}

MixedTreeBuilder::Source& MixedTreeBuilder::new_source(DraftSources bit) {
  if (started_) throw std::logic_error("A source was added to a tree that has begun to grow.");
  if (used_ == sources_.size()) sources_.emplace_back();
  Source& source = sources_[used_++];
  source.bit = bit;
  source.depths = 0;
  source.nodes.clear();
  source.first_child.assign(1, kNoNode);
  source.next_sibling.clear();
  return source;
}

void MixedTreeBuilder::add_rows(DraftSources bit, std::span<const std::vector<TokenCandidate>> rows,
                                std::span<const DepthCalibration> calibration) {
  for (const std::vector<TokenCandidate>& row : rows) std::ranges::for_each(row, check_probability);
  Source& source = new_source(bit);
  source.depths = rows.size();
  if (source.rows.size() < rows.size()) source.rows.resize(rows.size());
  for (size_t depth = 0; depth < rows.size(); ++depth) {
    source.rows[depth].assign(rows[depth].begin(), rows[depth].end());
    for (TokenCandidate& candidate : source.rows[depth]) candidate.p = calibrated(candidate.p, calibration, depth);
  }
}

void MixedTreeBuilder::add_tree(DraftSources bit, std::span<const CandidateNode> nodes,
                                std::span<const DepthCalibration> calibration) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    check_probability({nodes[i].token, nodes[i].p});
    if (nodes[i].parent != CandidateNode::root && nodes[i].parent >= i) {
      throw bad_input("Node " + std::to_string(i) + " of a source has the parent " + std::to_string(nodes[i].parent) +
                      ", which does not come before it.");
    }
  }
  Source& source = new_source(bit);
  source.nodes.assign(nodes.begin(), nodes.end());
  source.first_child.assign(nodes.size() + 1, kNoNode);
  source.next_sibling.assign(nodes.size(), kNoNode);
  depths_.assign(nodes.size(), 0);  // of the parents
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parent != CandidateNode::root) depths_[i] = depths_[nodes[i].parent] + 1;
    source.nodes[i].p = calibrated(nodes[i].p, calibration, depths_[i]);
  }
  for (auto i = static_cast<uint32_t>(nodes.size()); i-- > 0;) {
    uint32_t& first = source.first_child[nodes[i].parent == CandidateNode::root ? 0 : nodes[i].parent + 1];
    source.next_sibling[i] = first;
    first = i;
  }
}

void MixedTreeBuilder::start() {
  if (started_) return;
  started_ = true;
  places_.assign(used_, 0);
  expand(0);
}

bool MixedTreeBuilder::next() {
  start();
  if (frontier_.empty()) return false;
  const auto order = [this](const Prospect& a, const Prospect& b) { return after(a, b); };
  std::pop_heap(frontier_.begin(), frontier_.end(), order);
  const Prospect best = frontier_.back();
  frontier_.pop_back();
  const uint32_t node = add_child(best.parent, best.rank, best.score);
  push(best.parent, best.rank + 1);
  expand(node);
  return true;
}

void MixedTreeBuilder::build_chain(uint32_t budget) {
  start();
  for (uint32_t end = 0; tree_.drafted() < budget; end = tree_.drafted()) {
    const List& list = lists_[end];
    if (list.count == 0 || !(children_[list.first].q > 0)) break;
    expand(add_child(end, 0, tree_[end].score + std::log(children_[list.first].q)));
  }
  frontier_.clear();
}

void MixedTreeBuilder::cut(uint32_t width) {
  tree_.cut(width);
  frontier_.clear();
}

/// Adds the child of that rank, and finds where its path stands in each source.
uint32_t MixedTreeBuilder::add_child(uint32_t parent, uint32_t rank, double score) {
  const Child child = children_[lists_[parent].first + rank];
  const uint32_t node = tree_.add(parent, child.token, rank, std::log(child.q), score, child.sources);
  probabilities_.push_back(child.q);
  for (size_t i = 0; i < used_; ++i) {
    const Source& source = sources_[i];
    const uint32_t above = places_[parent * used_ + i];
    uint32_t place = kLost;
    for (uint32_t each = above == kLost ? kNoNode : source.first_child[above]; each != kNoNode;
         each = source.next_sibling[each]) {
      if (source.nodes[each].token == child.token) place = each + 1;
    }
    places_.push_back(place);
  }
  return node;
}

void MixedTreeBuilder::expand(uint32_t node) {
  const uint32_t depth = tree_[node].depth;
  const uint32_t* const places = places_.data() + node * used_;
  bool shared = node != 0;  // by all paths of this length that no source names
  for (size_t i = 0; i < used_; ++i) shared = shared && places[i] == kLost;
  if (of_depth_.size() <= depth) of_depth_.resize(depth + 1);
  lists_.resize(node + 1);
  if (shared && of_depth_[depth].known) {
    lists_[node] = of_depth_[depth];
    return push(node, 0);
  }
  merged_.clear();
  for (size_t i = 0; i < used_; ++i) {
    const Source& source = sources_[i];
    if (depth < source.depths) {
      for (const TokenCandidate& candidate : source.rows[depth]) take(source.bit, candidate);
    }
    for (uint32_t each = places[i] == kLost ? kNoNode : source.first_child[places[i]]; each != kNoNode;
         each = source.next_sibling[each]) {
      take(source.bit, {source.nodes[each].token, source.nodes[each].p});
    }
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

void MixedTreeBuilder::take(DraftSources source, const TokenCandidate& candidate) {
  const auto same = std::ranges::find(merged_, candidate.token, &Child::token);
  if (same == merged_.end()) {
    merged_.push_back({candidate.token, source, candidate.p});
    return;
  }
  same->sources |= source;
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

#include "engine/speculation/tree_builder.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

// The largest relative error by which a device's log sum exp, computed in f32, may lie below the largest logit.
constexpr double log_sum_exp_slack = 1e-4;

[[noreturn]] void refuse(uint32_t depth, const std::string& what) {
  throw bad_input("The draft candidates of depth " + std::to_string(depth) + " " + what);
}

void check_counts(uint32_t depth, const DepthCandidates& given, uint32_t available) {
  if (given.tokens.size() != given.logits.size()) {
    refuse(depth, "are " + std::to_string(given.tokens.size()) + " tokens but " + std::to_string(given.logits.size()) +
                      " logits; both must be as many.");
  }
  if (given.tokens.empty() || given.tokens.size() > available) {
    refuse(depth, "are " + std::to_string(given.tokens.size()) + "; allowed: 1 to " + std::to_string(available) + ".");
  }
}

void check_values(uint32_t depth, const DepthCandidates& given) {
  if (!std::isfinite(given.log_sum_exp)) {
    refuse(depth, "have a log-sum-exp of " + std::to_string(given.log_sum_exp) +
                      "; it must be finite (the drafter's output is broken; its file may be damaged).");
  }
  for (size_t rank = 0; rank < given.logits.size(); ++rank) {
    const float logit = given.logits[rank];
    if (!std::isfinite(logit)) {
      refuse(depth, "give token " + std::to_string(given.tokens[rank]) + " the logit " + std::to_string(logit) +
                        "; it must be finite (the drafter's output is broken; its file may be damaged).");
    }
    if (rank == 0) continue;
    const bool in_order = given.logits[rank - 1] > logit ||
                          (given.logits[rank - 1] == logit && given.tokens[rank - 1] < given.tokens[rank]);
    if (!in_order) {
      refuse(depth, "are out of order at rank " + std::to_string(rank) +
                        "; they must go from the largest logit to the smallest, equal ones by ascending token.");
    }
  }
  const double largest = given.logits.front();
  if (given.log_sum_exp < largest - log_sum_exp_slack * std::max(1.0, std::abs(largest))) {
    refuse(depth, "have a log-sum-exp of " + std::to_string(given.log_sum_exp) +
                      ", which is below their largest logit, " + std::to_string(largest) + ".");
  }
}

void check(uint32_t depth, const DepthCalibration& calibration) {
  if (!std::isfinite(calibration.scale) || calibration.scale < 0 || !std::isfinite(calibration.shift)) {
    throw bad_input("The calibration of depth " + std::to_string(depth) + " has scale " +
                    std::to_string(calibration.scale) + " and shift " + std::to_string(calibration.shift) +
                    "; both must be finite and the scale not negative.");
  }
}

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

void TreeBuilder::reset(uint32_t root_token) {
  tree_.reset(root_token);
  children_.clear();
  lists_.clear();
  list_of_.clear();
  of_depth_.clear();
  frontier_.clear();
  started_ = false;
  levels_.clear();
  starved_depth_ = 0;
  used_ = 0;
  places_.clear();
}

void TreeBuilder::begin(uint32_t root_token, std::span<const DepthCandidates> depths, uint32_t available,
                        std::span<const DepthCalibration> calibration) {
  if (!calibration.empty() && calibration.size() != depths.size()) {
    throw bad_input("There are calibrations for " + std::to_string(calibration.size()) + " depths, but " +
                    std::to_string(depths.size()) + " depths are drafted.");
  }
  reset(root_token);
  is_block_ = true;
  available_ = available;
  try {
    for (uint32_t i = 0; i < depths.size(); ++i) {
      levels_.push_back({.calibration = calibration.empty() ? DepthCalibration{} : calibration[i]});
      lists_.emplace_back();
      of_depth_.push_back(i);
      check(i + 1, levels_.back().calibration);
      append_candidates(i + 1, depths[i]);
    }
  } catch (...) {
    reset(root_token);  // what is left is an ordinary tree without candidates, not half of one
    throw;
  }
}

void TreeBuilder::begin(uint32_t root_token, MergeRule rule) {
  reset(root_token);
  is_block_ = false;
  rule_ = rule;
}

/// Candidates go behind all others, so that those of a depth lie together; what an extended depth had before stays
/// unused until the next tree.
void TreeBuilder::append_candidates(uint32_t depth, const DepthCandidates& given) {
  check_counts(depth, given, available_);
  check_values(depth, given);
  Level& level = levels_[depth - 1];
  const size_t first = children_.size();
  children_.resize(first + given.tokens.size());
  for (size_t rank = 0; rank < given.tokens.size(); ++rank) {
    Child& made = children_[first + rank];
    made = {.token = given.tokens[rank], .sources = kFromDflash, .logit = given.logits[rank]};
    // Never above 0, whatever the rounding of the sum: a child must not come before its parent.
    made.log_q = std::min(0.0, double{given.logits[rank]} - given.log_sum_exp);
    made.gain = std::min(0.0, level.calibration.scale * made.log_q + level.calibration.shift);
  }
  level.log_sum_exp = given.log_sum_exp;
  lists_[depth - 1] = {first, static_cast<uint32_t>(given.tokens.size())};
}

void TreeBuilder::extend(uint32_t depth, const DepthCandidates& more) {
  if (depth == 0 || depth > levels_.size()) {
    throw bad_input("A draft of " + std::to_string(levels_.size()) + " depths cannot get candidates for depth " +
                    std::to_string(depth) + ".");
  }
  const List before = lists_[depth - 1];
  if (more.tokens.size() <= before.count) {
    refuse(depth, "were to grow, but there are " + std::to_string(more.tokens.size()) + " now and were " +
                      std::to_string(before.count) + ".");
  }
  check_counts(depth, more, available_);
  if (more.log_sum_exp != levels_[depth - 1].log_sum_exp) {
    refuse(depth, "come with another log-sum-exp than before: " + std::to_string(more.log_sum_exp) + ", not " +
                      std::to_string(levels_[depth - 1].log_sum_exp) + ".");
  }
  for (uint32_t rank = 0; rank < before.count; ++rank) {
    const Child& known = children_[before.first + rank];
    if (known.token != more.tokens[rank] || known.logit != more.logits[rank]) {
      refuse(depth, "changed at rank " + std::to_string(rank) + ", from token " + std::to_string(known.token) +
                        " to token " + std::to_string(more.tokens[rank]) + "; more may only be added behind them.");
    }
  }
  append_candidates(depth, more);
  if (depth != starved_depth_) return;
  starved_depth_ = 0;
  push(starved_.parent, starved_.rank);
}

TreeBuilder::Source& TreeBuilder::new_source(DraftSources bit) {
  if (started_ || is_block_) throw std::logic_error("A source was added to a tree that has begun to grow.");
  if (used_ == sources_.size()) sources_.emplace_back();
  Source& source = sources_[used_++];
  source.bit = bit;
  source.depths = 0;
  source.nodes.clear();
  source.first_child.assign(1, kNone);
  source.next_sibling.clear();
  return source;
}

void TreeBuilder::add_rows(DraftSources bit, std::span<const std::vector<TokenCandidate>> rows,
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

void TreeBuilder::add_tree(DraftSources bit, std::span<const CandidateNode> nodes,
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
  source.first_child.assign(nodes.size() + 1, kNone);
  source.next_sibling.assign(nodes.size(), kNone);
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

void TreeBuilder::start() {
  if (started_) return;
  started_ = true;
  places_.assign(used_, 0);
  expand(0);
}

TreeStep TreeBuilder::next() {
  start();
  if (starved_depth_ != 0) return TreeStep::needs_candidates;
  if (frontier_.empty()) return TreeStep::complete;
  std::pop_heap(frontier_.begin(), frontier_.end(), [this](const auto& a, const auto& b) { return after(a, b); });
  const Prospect best = frontier_.back();
  frontier_.pop_back();
  const uint32_t node = add_child(best.parent, best.rank, best.score);
  const uint32_t sibling = best.rank + 1;
  if (sibling < lists_[list_of_[best.parent]].count) {
    push(best.parent, sibling);
  } else if (is_block_ && sibling < available_) {
    // Its sibling may be as probable as it is, so that no other path is known to be next.
    starved_depth_ = tree_[node].depth;
    starved_ = {.parent = best.parent, .rank = sibling};
  }
  expand(node);
  return TreeStep::added;
}

TreeStep TreeBuilder::build(uint32_t budget) {
  while (tree_.drafted() < budget) {
    if (const TreeStep step = next(); step != TreeStep::added) return step;
  }
  return TreeStep::added;
}

void TreeBuilder::build_chain(uint32_t budget) {
  cut(1);
  for (uint32_t end = 0; end < budget; ++end) {
    frontier_.clear();
    push(end, 0);
    if (frontier_.empty()) break;
    add_child(end, 0, frontier_.front().score);
    list_of_.push_back(list_behind(end + 1));
  }
  frontier_.clear();
}

void TreeBuilder::cut(uint32_t width) {
  start();
  tree_.cut(width);
  list_of_.resize(width);
  places_.resize(width * used_);
  frontier_.clear();
  starved_depth_ = 0;
}

/// Adds the child of that rank, and finds where its path stands in each source.
uint32_t TreeBuilder::add_child(uint32_t parent, uint32_t rank, double score) {
  const Child& child = children_[lists_[list_of_[parent]].first + rank];
  const double log_q = is_block_ ? child.log_q : std::log(child.q);
  const uint32_t node = tree_.add(parent, child.token, rank, log_q, score, child.sources, child.went_on);
  for (size_t i = 0; i < used_; ++i) {
    const Source& source = sources_[i];
    const uint32_t above = places_[parent * used_ + i];
    uint32_t place = kNone;
    for (uint32_t each = above == kNone ? kNone : source.first_child[above]; each != kNone;
         each = source.next_sibling[each]) {
      if (source.nodes[each].token == child.token) place = each + 1;
    }
    places_.push_back(place);
  }
  return node;
}

void TreeBuilder::expand(uint32_t node) {
  list_of_.push_back(list_behind(node));
  push(node, 0);
}

/// The list of what may follow a node's path, made where there is none yet; kNone: nothing may.
uint32_t TreeBuilder::list_behind(uint32_t node) {
  const uint32_t depth = tree_[node].depth;
  if (of_depth_.size() <= depth) of_depth_.resize(depth + 1, kNone);
  if (is_block_) return of_depth_[depth];
  const uint32_t* const places = places_.data() + node * used_;
  bool shared = node != 0;  // by all paths of this length that no source names
  for (size_t i = 0; i < used_; ++i) shared = shared && places[i] == kNone;
  if (shared && of_depth_[depth] != kNone) return of_depth_[depth];
  merged_.clear();
  for (size_t i = 0; i < used_; ++i) {
    const Source& source = sources_[i];
    if (depth < source.depths) {
      for (const TokenCandidate& candidate : source.rows[depth]) take(source.bit, candidate);
    }
    for (uint32_t each = places[i] == kNone ? kNone : source.first_child[places[i]]; each != kNone;
         each = source.next_sibling[each]) {
      take(source.bit, {source.nodes[each].token, source.nodes[each].p, source.nodes[each].went_on});
    }
  }
  double sum = 0;
  for (const Child& child : merged_) sum += child.q;
  if (sum > 1) {
    for (Child& child : merged_) child.q /= sum;
  }
  std::ranges::sort(merged_, [](const Child& a, const Child& b) { return a.q != b.q ? a.q > b.q : a.token < b.token; });
  const auto list = static_cast<uint32_t>(lists_.size());
  lists_.push_back({children_.size(), static_cast<uint32_t>(merged_.size())});
  children_.insert(children_.end(), merged_.begin(), merged_.end());
  if (shared) of_depth_[depth] = list;
  return list;
}

void TreeBuilder::take(DraftSources source, const TokenCandidate& candidate) {
  const auto same = std::ranges::find(merged_, candidate.token, &Child::token);
  if (same == merged_.end()) {
    merged_.push_back({.token = candidate.token, .sources = source, .q = candidate.p, .went_on = candidate.went_on});
    return;
  }
  same->sources |= source;
  if (candidate.went_on.places > 0) same->went_on = candidate.went_on;
  same->q = rule_ == MergeRule::max ? std::max(same->q, candidate.p) : 1 - (1 - same->q) * (1 - candidate.p);
}

void TreeBuilder::push(uint32_t parent, uint32_t rank) {
  const uint32_t list = list_of_[parent];
  if (list == kNone || rank >= lists_[list].count) return;
  const Child& child = children_[lists_[list].first + rank];
  if (!is_block_ && !(child.q > 0)) return;  // calibrated to nothing
  const double gain = is_block_ ? child.gain : std::log(child.q);
  frontier_.push_back({tree_[parent].score + gain, parent, rank});
  std::push_heap(frontier_.begin(), frontier_.end(), [this](const auto& a, const auto& b) { return after(a, b); });
}

bool TreeBuilder::after(const Prospect& a, const Prospect& b) const {
  return a.score != b.score ? a.score < b.score : lower_ranks(b, a);
}

/// Whether a's tuple of ranks is the lower one.
bool TreeBuilder::lower_ranks(Prospect a, Prospect b) const {
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

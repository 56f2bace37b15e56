#include "engine/speculation/ddtree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/compute/sampling.h"

namespace canopy {

namespace {

struct SourceName {
  DraftSources bit;
  std::string_view name;
};
constexpr SourceName names_of_sources[] = {{kFromDflash, "dflash"},
                                           {kFromSuffix, "suffix"},
                                           {kFromRecycling, "recycling"},
                                           {kFromEarlier, "earlier"},
                                           {kFromDraft, "draft"}};

}  // namespace

std::vector<std::string_view> source_names(DraftSources sources) {
  std::vector<std::string_view> names;
  for (const SourceName& each : names_of_sources) {
    if ((sources & each.bit) != 0) names.push_back(each.name);
  }
  return names;
}

std::string list_of(DraftSources sources) {
  std::string list;
  for (const std::string_view name : source_names(sources)) list += (list.empty() ? "" : ",") + std::string(name);
  return list.empty() ? "none" : list;
}

DraftSources parse_sources(std::string_view list) {
  if (list == "none") return 0;
  DraftSources sources = 0;
  for (size_t first = 0; first <= list.size();) {
    const size_t end = std::min(list.find(',', first), list.size());
    const std::string_view name = list.substr(first, end - first);
    const auto* const known = std::ranges::find(names_of_sources, name, &SourceName::name);
    if (known == std::end(names_of_sources)) {
      throw bad_input("There is no source of drafts '" + std::string(name) +
                      "'; allowed: dflash, suffix, recycling, earlier and draft, with commas in between, or none.");
    }
    sources |= known->bit;
    first = end + 1;
  }
  return sources;
}

void DraftTree::reset(uint32_t root_token) {
  nodes_.clear();
  nodes_.push_back({.token = root_token});
}

uint32_t DraftTree::add(uint32_t parent, uint32_t token, uint32_t rank, double log_q, double score,
                        DraftSources sources) {
  if (parent >= width()) {
    throw bad_input("A draft tree has no node " + std::to_string(parent) + " to add a child to; its nodes are 0 to " +
                    std::to_string(drafted()) + ".");
  }
  nodes_.push_back({token, parent, nodes_[parent].depth + 1, rank, log_q, score, sources});
  return drafted();
}

void DraftTree::cut(uint32_t width) {
  if (width == 0 || width > this->width()) {
    throw bad_input("A draft tree of width " + std::to_string(this->width()) + " cannot be cut to width " +
                    std::to_string(width) + "; allowed: 1 to " + std::to_string(this->width()) + ".");
  }
  nodes_.resize(width);
}

uint32_t DraftTree::child(uint32_t parent, uint32_t token) const {
  for (uint32_t node = parent + 1; node < width(); ++node) {
    if (nodes_[node].parent == parent && nodes_[node].token == token) return node;
  }
  return TreeNode::none;
}

// Best-first, a child comes before its less likely siblings.
uint32_t DraftTree::first_child(uint32_t parent) const {
  for (uint32_t node = parent + 1; node < width(); ++node) {
    if (nodes_[node].parent == parent) return node;
  }
  return TreeNode::none;
}

namespace {

[[noreturn]] void refuse_rate(const std::string& what) {
  throw bad_input(what + "; allowed: numbers from 0 to 1, one for each depth, at most " +
                  std::to_string(kMostAcceptRates) + " with commas in between, as in 0.8,0.7,0.6.");
}

}  // namespace

std::vector<double> parse_accept_rates(std::string_view list) {
  std::vector<double> rates;
  for (size_t first = 0; first <= list.size();) {
    const size_t end = std::min(list.find(',', first), list.size());
    const std::string_view text = list.substr(first, end - first);
    double rate = 0;
    const auto [read, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
    const bool whole = error == std::errc() && read == text.data() + text.size();
    if (!whole || !(rate >= 0 && rate <= 1)) refuse_rate(quoted_name(text) + " is no rate of acceptance");
    rates.push_back(rate);
    first = end + 1;
  }
  validate_accept_rates(rates);
  return rates;
}

std::string list_of(std::span<const double> rates) {
  std::string list;
  for (const double rate : rates) {
    std::array<char, 32> text{};
    const auto written = std::to_chars(text.data(), text.data() + text.size(), rate);
    list += (list.empty() ? "" : ",") + std::string(text.data(), written.ptr);
  }
  return list;
}

void validate_accept_rates(std::span<const double> rates) {
  if (rates.size() > kMostAcceptRates) {
    refuse_rate("There are " + std::to_string(rates.size()) + " rates of acceptance");
  }
  for (const double rate : rates) {
    if (!(rate >= 0 && rate <= 1)) refuse_rate("A rate of acceptance is " + std::to_string(rate));
  }
}

double accept_draw(uint64_t seed, uint64_t turn, uint64_t place) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  // Counters of tokens have the number of a block of words where this has all bits, so the numbers are others.
  const PhiloxCounter words = philox4x32({0xFFFFFFFF, low(place), low(turn), high(turn)}, {low(seed), high(seed)});
  return static_cast<double>(words[0]) / 4294967296.0;
}

uint32_t token_by_rates(const DraftTree& tree, uint32_t node, uint32_t own, std::span<const double> rates, double draw,
                        uint32_t vocab, std::span<const uint32_t> stops) {
  const uint32_t first = tree.first_child(node);
  if (first == TreeNode::none) return own;
  const double rate = rates[std::min<size_t>(tree[node].depth, rates.size() - 1)];
  if (draw < rate) return tree[first].token;
  uint32_t token = own;
  for (uint32_t tried = 0; tried < vocab; ++tried) {
    const bool ends = tried > 0 && std::ranges::binary_search(stops, token);
    if (!ends && tree.child(node, token) == TreeNode::none) return token;
    token = (token + 1) % vocab;
  }
  return own;  // a vocabulary of children and stops alone
}

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

}  // namespace

void TreeBuilder::begin(uint32_t root_token, std::span<const DepthCandidates> depths, uint32_t available,
                        std::span<const DepthCalibration> calibration) {
  if (!calibration.empty() && calibration.size() != depths.size()) {
    throw bad_input("There are calibrations for " + std::to_string(calibration.size()) + " depths, but " +
                    std::to_string(depths.size()) + " depths are drafted.");
  }
  tree_.reset(root_token);
  candidates_.clear();
  levels_.clear();
  frontier_.clear();
  available_ = available;
  starved_depth_ = 0;
  try {
    for (size_t i = 0; i < depths.size(); ++i) {
      const auto depth = static_cast<uint32_t>(i + 1);
      levels_.push_back({.calibration = calibration.empty() ? DepthCalibration{} : calibration[i]});
      check(depth, levels_.back().calibration);
      append_candidates(depth, depths[i]);
    }
  } catch (...) {
    levels_.clear();  // what is left is an ordinary tree without candidates, not half of one
    throw;
  }
  if (!levels_.empty()) push(0, 0);
}

TreeStep TreeBuilder::next() {
  if (starved_depth_ != 0) return TreeStep::needs_candidates;
  if (frontier_.empty()) return TreeStep::complete;
  const Prospect best = pop();
  const uint32_t depth = tree_[best.parent].depth + 1;
  const Candidate& chosen = candidate(depth, best.rank);
  const uint32_t node = tree_.add(best.parent, chosen.token, best.rank, chosen.log_q, best.score, kFromDflash);
  if (best.rank + 1 < levels_[depth - 1].count) {
    push(best.parent, best.rank + 1);
  } else if (best.rank + 1 < available_) {
    // Its sibling may be as probable as it is, so that no other path is known to be next.
    starved_depth_ = depth;
    starved_ = {.parent = best.parent, .rank = best.rank + 1};
  }
  if (depth < levels_.size()) push(node, 0);
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
  for (uint32_t depth = 1; depth <= std::min<size_t>(budget, levels_.size()); ++depth) {
    const Candidate& first = candidate(depth, 0);
    tree_.add(depth - 1, first.token, 0, first.log_q, tree_[depth - 1].score + first.gain, kFromDflash);
  }
}

void TreeBuilder::extend(uint32_t depth, const DepthCandidates& more) {
  if (depth == 0 || depth > levels_.size()) {
    throw bad_input("A draft of " + std::to_string(levels_.size()) + " depths cannot get candidates for depth " +
                    std::to_string(depth) + ".");
  }
  const Level before = levels_[depth - 1];
  if (more.tokens.size() <= before.count) {
    refuse(depth, "were to grow, but there are " + std::to_string(more.tokens.size()) + " now and were " +
                      std::to_string(before.count) + ".");
  }
  check_counts(depth, more, available_);
  if (more.log_sum_exp != before.log_sum_exp) {
    refuse(depth, "come with another log-sum-exp than before: " + std::to_string(more.log_sum_exp) + ", not " +
                      std::to_string(before.log_sum_exp) + ".");
  }
  for (uint32_t rank = 0; rank < before.count; ++rank) {
    const Candidate& known = candidates_[before.first + rank];
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

void TreeBuilder::cut(uint32_t width) {
  tree_.cut(width);
  frontier_.clear();
  starved_depth_ = 0;
}

/// Candidates go behind all others, so that those of a depth lie together; what an extended depth had before stays
/// unused until the next tree.
void TreeBuilder::append_candidates(uint32_t depth, const DepthCandidates& given) {
  check_counts(depth, given, available_);
  check_values(depth, given);
  Level& level = levels_[depth - 1];
  const size_t first = candidates_.size();
  candidates_.resize(first + given.tokens.size());
  for (size_t rank = 0; rank < given.tokens.size(); ++rank) {
    Candidate& made = candidates_[first + rank];
    made.token = given.tokens[rank];
    made.logit = given.logits[rank];
    // Never above 0, whatever the rounding of the sum: a child must not come before its parent.
    made.log_q = std::min(0.0, double{given.logits[rank]} - given.log_sum_exp);
    made.gain = std::min(0.0, level.calibration.scale * made.log_q + level.calibration.shift);
  }
  level.first = first;
  level.log_sum_exp = given.log_sum_exp;
  level.count = static_cast<uint32_t>(given.tokens.size());
}

const TreeBuilder::Candidate& TreeBuilder::candidate(uint32_t depth, uint32_t rank) const {
  return candidates_[levels_[depth - 1].first + rank];
}

void TreeBuilder::push(uint32_t parent, uint32_t rank) {
  const TreeNode& above = tree_[parent];
  frontier_.push_back({above.score + candidate(above.depth + 1, rank).gain, parent, rank});
  std::push_heap(frontier_.begin(), frontier_.end(), [this](const auto& a, const auto& b) { return after(a, b); });
}

TreeBuilder::Prospect TreeBuilder::pop() {
  std::pop_heap(frontier_.begin(), frontier_.end(), [this](const auto& a, const auto& b) { return after(a, b); });
  const Prospect best = frontier_.back();
  frontier_.pop_back();
  return best;
}

bool TreeBuilder::after(const Prospect& a, const Prospect& b) const {
  if (a.score != b.score) return a.score < b.score;
  return lower_ranks(b, a);
}

/// Whether a's tuple of ranks is the lower one: their ranks where the two paths part. They do part: a path waits in the
/// frontier only after the paths it continues have left it.
bool TreeBuilder::lower_ranks(Prospect a, Prospect b) const {
  const auto depth = [this](const Prospect& p) { return tree_[p.parent].depth; };
  const auto climb = [this](Prospect& p) { p = {0, tree_[p.parent].parent, tree_[p.parent].rank}; };
  while (depth(a) > depth(b)) climb(a);
  while (depth(b) > depth(a)) climb(b);
  while (a.parent != b.parent) {
    climb(a);
    climb(b);
  }
  return a.rank < b.rank;
}

}  // namespace canopy

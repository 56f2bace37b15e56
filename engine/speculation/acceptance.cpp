#include "engine/speculation/acceptance.h"

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
    if (node.depth > depths && (node.sources & ~kFreeSources) != 0) {
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

constexpr size_t no_list = SIZE_MAX;

/// The list behind that candidate of another; no_list where there is none.
size_t list_after(std::span<const uint32_t> behind, size_t list, size_t rank, size_t candidates) {
  for (size_t i = list + 1; i < behind.size(); ++i) {
    if (behind[i] == list * candidates + rank) return i;
  }
  return no_list;
}

void predict_chain(std::span<const DepthCandidates> lists, std::span<const uint32_t> behind,
                   std::span<const DepthCalibration> calibration, DraftOutcome& outcome) {
  outcome.chain_predicted.clear();
  double score = 0;
  double sum = 0;
  for (size_t d = 0, list = 0; list < lists.size(); ++d) {
    const DepthCalibration c = calibration.empty() ? DepthCalibration{} : calibration[d];
    score += std::min(0.0, c.scale * log_q_of(lists[list], 0) + c.shift);
    sum += std::exp(score);
    outcome.chain_predicted.push_back(sum);
    list = behind.empty() ? list + 1 : list_after(behind, list, 0, lists[list].tokens.size());
  }
}

/// A calibration by the share that comes again of what stood once behind a match, in ordinary text.
DepthCalibration came(double share) {
  return {1, std::log(share)};
}

}  // namespace

// Of 40 questions of GSM8K, HumanEval, MATH and MT-Bench to SmolLM2-135M-Instruct, 160 tokens each; where texts repeat
// on purpose the shares are larger.
const std::array<DepthCalibration, kFreeGroups> kAssumedFree = {
    came(0.30), came(0.52), came(0.70), came(0.78), came(0.80), came(0.92), came(0.955),  // in the text
    came(0.20), came(0.40), came(0.60), came(0.70), came(0.80), came(0.90), came(0.95),   // in earlier replies
    {},         {},         {},         {}};

uint32_t match_group(uint32_t match) {
  constexpr uint32_t most[] = {1, 2, 3, 5, 8, 16};
  static_assert(std::size(most) + 1 == kMatchGroups);
  return static_cast<uint32_t>(std::lower_bound(std::begin(most), std::end(most), match) - std::begin(most));
}

uint32_t group_of(const FreeDraft& draft, uint32_t depth) {
  if (draft.match == 0) return 2 * kMatchGroups + std::min(depth, kRecycledGroups - 1);
  return (draft.earlier ? kMatchGroups : 0) + match_group(draft.match + depth);
}

FreeCalibration calibration_of(std::span<const DepthCalibration> groups, const FreeDraft& draft) {
  FreeCalibration calibration;
  for (uint32_t depth = 0; depth < calibration.size(); ++depth) calibration[depth] = groups[group_of(draft, depth)];
  return calibration;
}

uint32_t DraftOutcome::accepted(uint32_t width) const {
  return static_cast<uint32_t>(std::upper_bound(reach.begin(), reach.end(), width) - reach.begin());
}

AcceptanceLedger::Pending& AcceptanceLedger::add(const DraftTree& tree) {
  if (spare_.empty()) spare_.emplace_back();
  pending_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  Pending& draft = pending_.back();
  draft.truth.clear();
  draft.nodes.assign(tree.nodes().begin(), tree.nodes().end());
  draft.found.nodes.clear();
  draft.recycled.nodes.clear();
  draft.horizon = 0;
  for (const TreeNode& node : draft.nodes) draft.horizon = std::max(draft.horizon, node.depth);
  predict_tree(tree.nodes(), draft.outcome);
  draft.outcome.found.clear();
  return draft;
}

void AcceptanceLedger::add(const DraftTree& tree, std::span<const DepthCandidates> lists,
                           std::span<const DepthCalibration> calibration, std::span<const uint32_t> behind) {
  size_t depths = lists.size();
  if (!behind.empty() && !lists.empty()) {
    depths = size_t{1} + std::ranges::max(path_lengths(behind, static_cast<uint32_t>(lists[0].tokens.size())));
  }
  check(tree, depths, calibration.size());
  if (lists.empty()) return;
  Pending& draft = add(tree);
  draft.candidates.resize(lists.size());
  draft.behind.assign(behind.begin(), behind.end());
  draft.horizon = std::max(draft.horizon, static_cast<uint32_t>(depths));
  DraftOutcome& outcome = draft.outcome;
  outcome.is_by_token = !behind.empty();
  outcome.listed = listed_candidates;
  for (const DepthCandidates& list : lists) {
    outcome.listed = std::min(outcome.listed, static_cast<uint32_t>(list.tokens.size()));
  }
  draft.log_q.clear();
  for (size_t i = 0; i < lists.size(); ++i) {
    draft.candidates[i].assign(lists[i].tokens.begin(), lists[i].tokens.end());
    for (uint32_t rank = 0; rank < outcome.listed; ++rank) {
      draft.log_q.push_back(static_cast<float>(log_q_of(lists[i], rank)));
    }
  }
  predict_chain(lists, behind, calibration, outcome);
}

void AcceptanceLedger::add(const DraftTree& tree, const FreeDraft& found, const FreeDraft& recycled) {
  if (found.empty() && recycled.empty()) return;
  Pending& draft = add(tree);
  draft.found = found;
  draft.recycled = recycled;
  draft.horizon = std::max({draft.horizon, found.depth, recycled.depth});  // the tree may have less of them
  draft.candidates.clear();
  draft.behind.clear();
  DraftOutcome& outcome = draft.outcome;
  outcome.is_by_token = false;
  outcome.listed = 0;
  outcome.chain_predicted.clear();
}

void AcceptanceLedger::clear() {
  while (!pending_.empty()) retire_oldest();
}

namespace {

/// Follows the true path through what was suggested.
void settle_free(const FreeDraft& draft, std::span<const uint32_t> truth, std::vector<FoundOutcome>& found) {
  uint32_t parent = CandidateNode::root;
  for (uint32_t depth = 0; depth < truth.size(); ++depth) {
    uint32_t next = CandidateNode::root;
    for (uint32_t i = parent == CandidateNode::root ? 0 : parent + 1; i < draft.nodes.size(); ++i) {
      const CandidateNode& node = draft.nodes[i];
      if (node.parent != parent) continue;
      const bool came = node.token == truth[depth];
      found.push_back({group_of(draft, depth), std::log(node.p), came});
      if (came) next = i;
    }
    if (next == CandidateNode::root) return;
    parent = next;
  }
}

}  // namespace

void AcceptanceLedger::settle(Pending& draft) {
  DraftOutcome& outcome = draft.outcome;
  outcome.ranks.clear();
  outcome.log_q.clear();
  for (size_t list = 0; list < draft.candidates.size();) {
    const auto& tokens = draft.candidates[list];
    const auto found = std::find(tokens.begin(), tokens.end(), draft.truth[outcome.ranks.size()]);
    const auto rank = static_cast<size_t>(found - tokens.begin());
    outcome.ranks.push_back(found == tokens.end() ? DraftOutcome::no_rank : static_cast<uint32_t>(rank));
    const auto here = draft.log_q.begin() + static_cast<std::ptrdiff_t>(list * outcome.listed);
    outcome.log_q.insert(outcome.log_q.end(), here, here + outcome.listed);
    list = draft.behind.empty()   ? list + 1
           : rank < tokens.size() ? list_after(draft.behind, list, rank, tokens.size())
                                  : no_list;
  }
  outcome.chain = 0;
  while (outcome.chain < outcome.ranks.size() && outcome.ranks[outcome.chain] == 0) ++outcome.chain;

  // One sweep: the child of the path's end that carries the next true token comes behind it in the order.
  outcome.reach.clear();
  uint32_t end = 0;
  for (uint32_t node = 1; node < draft.nodes.size() && outcome.reach.size() < draft.truth.size(); ++node) {
    const TreeNode& candidate = draft.nodes[node];
    if (candidate.parent != end || candidate.token != draft.truth[outcome.reach.size()]) continue;
    outcome.reach.push_back(node + 1);
    end = node;
  }
  settle_free(draft.found, draft.truth, outcome.found);
  settle_free(draft.recycled, draft.truth, outcome.found);
}

void AcceptanceLedger::retire_oldest() {
  spare_.push_back(std::move(pending_.front()));
  pending_.erase(pending_.begin());
}

namespace {

// Drafts that are assumed to have kept their promise.
constexpr double assumed_drafts = 4;
// Beyond this the weights are divided out, long before they overflow.
constexpr double largest_weight = 1e100;

}  // namespace

void PromiseLines::fade(double factor) {
  weight_ /= factor;
  if (weight_ < largest_weight) return;
  for (Line& line : lines_) {
    line = {line.n / weight_, line.x / weight_, line.y / weight_, line.xx / weight_, line.xy / weight_};
  }
  weight_ = 1;
}

double PromiseLines::expected(size_t i, double promised) const {
  // A size that was seldom built takes the line of the nearest that was built often: its own would be the promise.
  if (!lines_.empty()) {
    i = std::min(i, lines_.size() - 1);
    while (i > 0 && 2 * lines_[i].n < lines_.front().n) --i;
  }
  const Line seen = lines_.empty() ? Line{} : lines_[i];
  const double n = seen.n / weight_;
  // The assumed drafts lie on y = x, half of them at 0 and half at twice the usual promise, which fixes the slope too.
  const double usual = n > 0 ? seen.x / seen.n : promised;
  const double total = n + assumed_drafts;
  const double mean_x = (seen.x / weight_ + assumed_drafts * usual) / total;
  const double mean_y = (seen.y / weight_ + assumed_drafts * usual) / total;
  const double square = 2 * assumed_drafts * usual * usual;
  const double variance = (seen.xx / weight_ + square) / total - mean_x * mean_x;
  const double covariance = (seen.xy / weight_ + square) / total - mean_x * mean_y;
  const double slope = variance > 1e-12 ? std::clamp(covariance / variance, 0.0, 2.0) : 1.0;
  return std::max(0.0, mean_y + slope * (promised - mean_x));
}

double PromiseLines::mean(size_t i) const {
  return i < lines_.size() && lines_[i].n > 0 ? lines_[i].y / lines_[i].n : 0;
}

void PromiseLines::archive(StateArchive& archive) {
  archive.size(lines_, most_sizes);
  for (Line& line : lines_) {
    for (double* value : {&line.n, &line.x, &line.y, &line.xx, &line.xy}) archive.number(*value);
  }
  archive.number(weight_);
}

void HindsightCurve::add(std::vector<Sum>& sums, size_t i, uint32_t accepted) {
  sums[i].accepted += accepted;
  sums[i].drafts += 1;
}

void HindsightCurve::learn(const DraftOutcome& outcome) {
  if (tree_.size() < outcome.built()) tree_.resize(outcome.built());
  for (uint32_t width = 1; width <= outcome.built(); ++width) add(tree_, width - 1, outcome.accepted(width));
  if (chain_.size() < outcome.depths() + 1) chain_.resize(outcome.depths() + 1);
  for (uint32_t length = 0; length <= outcome.depths(); ++length) add(chain_, length, outcome.chain_accepted(length));
}

std::vector<HindsightCurve::Point> HindsightCurve::points(const std::vector<Sum>& sums) {
  std::vector<Point> result;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto drafts = static_cast<double>(std::max<uint64_t>(1, sums[i].drafts));
    result.push_back({static_cast<uint32_t>(i + 1), 1 + sums[i].accepted / drafts, sums[i].drafts});
  }
  return result;
}

void PromiseRecord::learn(double raw, double calibrated, double accepted) {
  n_ += 1;
  raw_ += raw;
  calibrated_ += calibrated;
  accepted_ += accepted;
  raw_squares_ += (raw - accepted) * (raw - accepted);
  calibrated_squares_ += (calibrated - accepted) * (calibrated - accepted);
  cc_ += calibrated * calibrated;
  aa_ += accepted * accepted;
  ca_ += calibrated * accepted;
}

void PromiseRecord::archive(StateArchive& archive) {
  for (double* value : {&n_, &raw_, &calibrated_, &accepted_, &raw_squares_, &calibrated_squares_, &cc_, &aa_, &ca_}) {
    archive.number(*value);
  }
}

double PromiseRecord::raw_error() const {
  return n_ > 0 ? std::sqrt(raw_squares_ / n_) : 0;
}

double PromiseRecord::calibrated_error() const {
  return n_ > 0 ? std::sqrt(calibrated_squares_ / n_) : 0;
}

double PromiseRecord::correlation() const {
  if (n_ < 2) return 0;
  const double c = calibrated_ / n_, a = accepted_ / n_;
  const double spread = (cc_ / n_ - c * c) * (aa_ / n_ - a * a);
  return spread > 1e-18 ? (ca_ / n_ - c * a) / std::sqrt(spread) : 0;
}

namespace {

// Upper ends of the bins of q: dense where a small change of q changes a path's probability most.
constexpr double edges[] = {0.001, 0.003, 0.01, 0.03, 0.1,  0.2,  0.3,   0.4,   0.5, 0.6,
                            0.7,   0.8,   0.9,  0.95, 0.98, 0.99, 0.996, 0.999, 1.01};

// Assumed candidates in each bin that is not empty, which hit as often as the drafter predicted, and a quadratic term
// that pulls (a, b) to (1, 0) where the bins alone do not decide. Empty bins get no assumed candidates: they would hold
// the line of a drafter that never predicts such probabilities.
constexpr double assumed_candidates = 4;
constexpr double pull = 1;
// Factor on a sample's weight for every later draft: half is left after 700 drafts.
constexpr double fading = 0.999;
// Keeps q~ below 1, as log(1 - q~) is needed.
constexpr double largest_log = -1e-4;
// A steeper line would order the candidates of a depth by noise.
constexpr double largest_scale = 4;

// One bin: `hits` of `count` candidates with log q = `x` were right.
struct Evidence {
  double x = 0;
  double count = 0;
  double hits = 0;
};

/// Minus the log-likelihood of q~ = exp(a x + b), infinite where that is no probability, and the pull. Convex in (a,
/// b).
double cost(std::span<const Evidence> points, const DepthCalibration& prior, double a, double b) {
  double sum = pull / 2 * ((a - prior.scale) * (a - prior.scale) + (b - prior.shift) * (b - prior.shift));
  for (const Evidence& p : points) {
    const double z = a * p.x + b;
    if (z >= 0) return INFINITY;
    sum -= p.hits * z + (p.count - p.hits) * std::log(-std::expm1(z));
  }
  return sum;
}

/// One damped Newton step on (a, b); false at the minimum.
bool improve(std::span<const Evidence> points, const DepthCalibration& prior, double& a, double& b) {
  double ga = pull * (a - prior.scale), gb = pull * (b - prior.shift), haa = pull, hab = 0, hbb = pull;
  for (const Evidence& p : points) {
    const double z = a * p.x + b;
    const double miss = -std::expm1(z);
    const double odds = std::exp(z) / miss;
    const double gradient = -p.hits + (p.count - p.hits) * odds;
    const double curvature = (p.count - p.hits) * odds / miss;
    ga += gradient * p.x;
    gb += gradient;
    haa += curvature * p.x * p.x;
    hab += curvature * p.x;
    hbb += curvature;
  }
  const double determinant = haa * hbb - hab * hab;  // at least pull squared
  const double da = (hab * gb - hbb * ga) / determinant;
  const double db = (hab * ga - haa * gb) / determinant;
  const double before = cost(points, prior, a, b);
  for (double step = 1; step > 1e-6; step /= 2) {
    const double after = cost(points, prior, a + step * da, b + step * db);
    if (after >= before) continue;
    a += step * da;
    b += step * db;
    return before - after > 1e-9 * (1 + std::abs(before));
  }
  return false;
}

/// The most likely b for a given scale, by ternary search: the cost is convex in b.
double best_shift(std::span<const Evidence> points, const DepthCalibration& prior, double scale) {
  double low = -20, high = 0;
  for (const Evidence& p : points) high = std::min(high, -scale * p.x);
  for (int i = 0; i < 60; ++i) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    if (cost(points, prior, scale, left) < cost(points, prior, scale, right)) {
      high = right;
    } else {
      low = left;
    }
  }
  return low;
}

}  // namespace

DepthCalibrator::DepthCalibrator(uint32_t depths) : seen_(depths), prior_(depths), calibration_(depths) {}

DepthCalibrator::DepthCalibrator(std::span<const DepthCalibration> prior)
    : seen_(prior.size()), prior_(prior.begin(), prior.end()), calibration_(prior_) {}

uint32_t DepthCalibrator::bin_of(double q) {
  static_assert(std::size(edges) == bins);
  return static_cast<uint32_t>(std::upper_bound(std::begin(edges), std::end(edges) - 1, q) - std::begin(edges));
}

void DepthCalibrator::learn(const DraftOutcome& outcome) {
  const auto known = static_cast<uint32_t>(outcome.ranks.size());
  if (known > seen_.size()) {
    throw bad_input("A draft of " + std::to_string(known) + " depths cannot calibrate " + std::to_string(seen_.size()) +
                    ".");
  }
  ++drafts_;
  const auto followed = static_cast<uint32_t>(outcome.reach.size());
  const uint32_t reached = outcome.is_by_token ? known : std::min(followed + 1, known);
  for (uint32_t d = 0; d < reached; ++d) {
    fade(seen_[d]);
    for (uint32_t rank = 0; rank < outcome.listed; ++rank) {
      count(seen_[d], outcome.log_q[size_t{d} * outcome.listed + rank], outcome.ranks[d] == rank);
    }
  }
  fit_now_and_then();
}

void DepthCalibrator::learn(std::span<const FoundOutcome> found) {
  if (found.empty()) return;
  ++drafts_;
  for (const FoundOutcome& each : found) {
    Bins& seen = seen_.at(each.group);
    fade(seen);
    count(seen, each.log_q, each.came);
  }
  fit_now_and_then();
}

void DepthCalibrator::fade(Bins& seen) {
  for (Bin& bin : seen) bin = {bin.count * fading, bin.hits * fading, bin.log_q * fading, bin.q * fading};
}

void DepthCalibrator::count(Bins& seen, double log_q, bool came) {
  log_q = std::min(log_q, largest_log);
  const double q = std::exp(log_q);
  Bin& bin = seen[bin_of(q)];
  bin.count += 1;
  bin.hits += came ? 1 : 0;
  bin.log_q += log_q;
  bin.q += q;
}

/// Often at first, when every draft changes much, later every few drafts.
void DepthCalibrator::fit_now_and_then() {
  const bool refit = drafts_ <= 16 || drafts_ % 16 == 0 || (drafts_ < 128 && drafts_ % 4 == 0);
  if (!refit) return;
  for (size_t d = 0; d < seen_.size(); ++d) calibration_[d] = fit(seen_[d], prior_[d], calibration_[d]);
}

void DepthCalibrator::archive(StateArchive& archive) {
  const size_t depths = seen_.size();
  archive.size(seen_, static_cast<uint32_t>(depths));
  if (seen_.size() != depths) {
    throw bad_input("A calibration of " + std::to_string(seen_.size()) + " depths was kept; " + std::to_string(depths) +
                    " are drafted.");
  }
  for (Bins& depth : seen_) {
    for (Bin& bin : depth) {
      for (double* value : {&bin.count, &bin.hits, &bin.log_q, &bin.q}) archive.number(*value);
    }
  }
  for (DepthCalibration& depth : calibration_) {
    archive.number(depth.scale);
    archive.number(depth.shift);
    if (depth.scale < 0) throw bad_input("A kept calibration has the scale " + std::to_string(depth.scale) + ".");
  }
  archive.large(drafts_);
}

DepthCalibration DepthCalibrator::fit(const Bins& seen, const DepthCalibration& prior, const DepthCalibration& before) {
  std::array<Evidence, bins> points;
  size_t count = 0;
  for (uint32_t i = 0; i < bins; ++i) {
    const Bin& bin = seen[i];
    if (bin.count == 0) continue;
    const double x = std::min(bin.log_q / bin.count, largest_log);
    const double assumed = std::exp(std::min(0.0, prior.scale * x + prior.shift));
    points[count++] = {x, bin.count + assumed_candidates, bin.hits + assumed_candidates * assumed};
  }
  const auto used = std::span(points).first(count);
  // Starts at the last fit if its cost is finite, else at the prior, whose cost always is.
  double a = before.scale, b = before.shift;
  if (!std::isfinite(cost(used, prior, a, b))) a = prior.scale, b = prior.shift;
  for (int i = 0; i < 30 && improve(used, prior, a, b); ++i) {
  }
  if (a < 0 || a > largest_scale) {  // outside: a < 0 would reverse the order of the candidates
    a = std::clamp(a, 0.0, largest_scale);
    b = best_shift(used, prior, a);
  }
  return {a, b};
}

std::vector<ReliabilityBin> DepthCalibrator::reliability(uint32_t depth) const {
  if (depth > seen_.size()) {
    throw bad_input("There is no depth " + std::to_string(depth) + " to be reliable at; depths go to " +
                    std::to_string(seen_.size()) + ".");
  }
  std::vector<ReliabilityBin> result;
  for (uint32_t i = 0; i < bins; ++i) {
    ReliabilityBin sum;
    for (size_t d = 0; d < seen_.size(); ++d) {
      if (depth != 0 && d + 1 != depth) continue;
      const Bin& bin = seen_[d][i];
      if (bin.count == 0) continue;
      const DepthCalibration& c = calibration_[d];
      sum.predicted += bin.q;
      sum.calibrated += bin.count * std::exp(std::min(0.0, c.scale * bin.log_q / bin.count + c.shift));
      sum.observed += bin.hits;
      sum.count += bin.count;
    }
    if (sum.count == 0) continue;
    result.push_back({sum.predicted / sum.count, sum.calibrated / sum.count, sum.observed / sum.count, sum.count});
  }
  return result;
}

}  // namespace canopy

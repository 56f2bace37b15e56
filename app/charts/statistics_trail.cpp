#include "app/charts/statistics_trail.h"

#include <algorithm>
#include <cmath>

#include "app/charts/budget_view.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

void count(std::array<ReliabilityTally::Bin, ReliabilityTally::kBins>& bins, double log_probability, bool hit) {
  const double probability = std::exp(std::min(0.0, log_probability));
  if (!std::isfinite(probability)) return;
  const auto place = static_cast<size_t>(probability * ReliabilityTally::kBins);
  ReliabilityTally::Bin& bin = bins[std::min(place, ReliabilityTally::kBins - 1)];
  ++bin.nodes;
  bin.hits += hit ? 1 : 0;
  bin.probabilities += probability;
}

}  // namespace

void OracleTally::add(const RoundRecord& record) {
  const BudgetView view = budget_view(record, nullptr);
  WidthSpeed best = view.realised;
  if (view.hindsight && view.hindsight->tokens_per_second() > best.tokens_per_second()) best = *view.hindsight;
  const double plain = view.ar_tokens_per_second;
  if (record.shape != DecodeMode::ar && plain > best.tokens_per_second()) best = {1, 1, 1000 / plain};
  if (best.ms <= 0) return;
  ++rounds;
  tokens += best.expected;
  ms += best.ms;
  real_tokens += view.realised.expected;
  real_ms += view.realised.ms;
}

void ReliabilityTally::add(const RoundRecord& record) {
  if (record.nodes.size() < 2) return;
  const DraftedPart part = drafted_part(record);
  // Where the reply ended inside the tree, it is not known which nodes would have been right.
  if (part.cut) return;
  std::vector<bool> hit(record.nodes.size(), false);
  for (uint32_t node = part.last_node; node < record.nodes.size(); node = record.nodes[node].node.parent)
    hit[node] = true;
  std::vector<double> log_q(record.nodes.size(), 0);
  for (size_t i = 1; i < record.nodes.size(); ++i) {
    const TreeNode& node = record.nodes[i].node;
    if (node.parent >= i) return;
    log_q[i] = log_q[node.parent] + node.log_q;
    count(raw_, log_q[i], hit[i]);
    count(calibrated_, node.score, hit[i]);
    ++nodes_;
  }
}

double ReliabilityTally::error(const std::array<Bin, kBins>& bins) {
  double sum = 0;
  uint64_t nodes = 0;
  for (const Bin& bin : bins) {
    sum += std::abs(bin.predicted() - bin.observed()) * static_cast<double>(bin.nodes);
    nodes += bin.nodes;
  }
  return nodes > 0 ? sum / static_cast<double>(nodes) : 0;
}

void TrailPoint::add(const RoundRecord* record) {
  // A record without its tree cannot be counted: it would look as if every draft had been rejected.
  if (record == nullptr || (record->shape != DecodeMode::ar && record->nodes.empty())) {
    ++missing;
    return;
  }
  rounds.add(*record);
  oracle.add(*record);
  reliability.add(*record);
}

const TrailPoint& StatisticsTrail::up_to(const std::shared_ptr<RoundLog>& log, size_t round, size_t most) {
  const bool exists = log && round < log->rounds();
  size_t first = 0;
  if (exists) first = log->first_of_reply(round);
  if (log != log_ || first != first_ || kept_.empty()) start(log, first);
  done_ = true;
  if (!exists) {
    start(log, 0);
    return answer_;
  }
  advance(round - first_ + 1, most);
  return answer_;
}

void StatisticsTrail::start(const std::shared_ptr<RoundLog>& log, size_t first) {
  log_ = log;
  first_ = first;
  kept_.assign(1, {});
  answer_ = {};
  counted_ = 0;
}

void StatisticsTrail::advance(size_t rounds, size_t most) {
  const size_t kept = std::min(kept_.size() - 1, rounds / kStride);
  // Going back, or far ahead, starts from the nearest copy.
  if (rounds < counted_ || kept * kStride > counted_) {
    answer_ = kept_[kept];
    counted_ = kept * kStride;
  }
  for (size_t read = 0; counted_ < rounds; ++read) {
    if (read >= most) {
      done_ = false;
      return;
    }
    answer_.add(log_->round(first_ + counted_).get());
    ++reads_;
    ++counted_;
    if (counted_ == kept_.size() * kStride) kept_.push_back(answer_);
  }
}

}  // namespace canopy::app

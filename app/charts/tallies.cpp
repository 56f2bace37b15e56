#include "app/charts/tallies.h"

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
  const double plain = view.plain_tokens_per_second;
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
  // Where a reply ended inside the tree, nobody knows how the text would have gone on there.
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

}  // namespace canopy::app

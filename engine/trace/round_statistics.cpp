#include "engine/trace/round_statistics.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

namespace canopy {
namespace {

double ratio(uint64_t part, uint64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

double per_second(uint64_t tokens, double ms) {
  return ms > 0 ? 1000.0 * static_cast<double>(tokens) / ms : 0;
}

void add_times(RoundTimes& sum, const RoundTimes& times) {
  sum.draft += times.draft;
  sum.build += times.build;
  sum.verify += times.verify;
  sum.walk += times.walk;
  sum.commit += times.commit;
  sum.other += times.other;
}

}  // namespace

double ShapeCounts::tau() const {
  return ratio(emitted, rounds);
}

double ShapeCounts::tokens_per_second() const {
  return per_second(emitted, ms);
}

void PredictionError::add(double predicted, double measured) {
  if (predicted <= 0 || measured <= 0) return;
  ++rounds;
  predicted_ms += predicted;
  measured_ms += measured;
  sum_of_errors += std::abs(predicted - measured) / measured;
}

double PredictionError::mean_error() const {
  return rounds > 0 ? sum_of_errors / static_cast<double>(rounds) : 0;
}

double PredictionError::bias() const {
  return measured_ms > 0 ? predicted_ms / measured_ms - 1 : 0;
}

void Correlation::add(double x, double y) {
  ++pairs;
  const double from_x = x - mean_x;
  const double from_y = y - mean_y;
  mean_x += from_x / static_cast<double>(pairs);
  mean_y += from_y / static_cast<double>(pairs);
  squares_x += from_x * (x - mean_x);
  squares_y += from_y * (y - mean_y);
  products += from_x * (y - mean_y);
}

double Correlation::value() const {
  const double scale = std::sqrt(squares_x) * std::sqrt(squares_y);
  return scale > 0 ? std::clamp(products / scale, -1.0, 1.0) : 0;
}

DraftedPart drafted_part(const RoundRecord& record) {
  DraftedPart part;
  const std::span<const RoundNode> nodes(record.nodes);
  const auto child = [&](const std::optional<uint32_t>& token) -> size_t {
    // Children lie behind their parent, so following a whole path is one sweep.
    for (size_t i = part.last_node + 1; i < nodes.size(); ++i) {
      if (nodes[i].node.parent == part.last_node && (!token || nodes[i].node.token == *token)) return i;
    }
    return 0;
  };
  for (const uint32_t token : record.emitted) {
    const size_t next = child(token);
    if (next == 0) break;
    part.last_node = static_cast<uint32_t>(next);
    ++part.tokens;
  }
  part.cut = part.tokens == record.emitted.size();
  part.refused = !part.cut && child(std::nullopt) != 0;
  return part;
}

void RoundStatistics::add(const RoundRecord& record) {
  const DraftedPart part = drafted_part(record);
  const uint64_t emitted = record.emitted.size();
  ++rounds_;
  emitted_ += emitted;
  cut_rounds_ += part.cut ? 1 : 0;
  rows_ += record.width;
  drafted_ += record.width - 1;
  accepted_ += part.tokens;
  ++histogram_[part.tokens];
  ShapeCounts& shape = shapes_.at(static_cast<size_t>(record.shape));
  ++shape.rounds;
  shape.emitted += emitted;
  shape.rows += record.width;
  shape.ms += record.ms.total();
  add_times(ms_, record.ms);
  add_times(device_ms_, record.device_ms);
  add_depths(part);
  add_sources(record, part);
  add_predictions(record, part);
}

void RoundStatistics::add_depths(const DraftedPart& part) {
  const size_t offered = part.tokens + (part.refused ? 1u : 0u);
  if (by_depth_.size() < offered) by_depth_.resize(offered);
  for (size_t i = 0; i < offered; ++i) {
    ++by_depth_[i].offered;
    if (i < part.tokens) ++by_depth_[i].accepted;
  }
}

void RoundStatistics::add_sources(const RoundRecord& record, const DraftedPart& part) {
  ++rounds_by_.at(guessed_by(record));
  if (record.nodes.empty()) return;
  std::vector<bool> in_text(record.nodes.size(), false);
  in_text[0] = true;
  for (uint32_t node = part.last_node; node != 0; node = record.nodes[node].node.parent) in_text[node] = true;
  for (size_t i = 1; i < record.nodes.size(); ++i) {
    const TreeNode& node = record.nodes[i].node;
    if (node.parent >= i || !in_text[node.parent] || (part.cut && node.parent == part.last_node)) continue;
    SourceCounts& counts = by_source_.at(proposed_by(node));
    ++counts.offered;
    counts.accepted += in_text[i] ? 1 : 0;
  }
}

void RoundStatistics::add_predictions(const RoundRecord& record, const DraftedPart& part) {
  total_error_.add(record.predicted.total(), record.ms.total());
  draft_error_.add(record.predicted.draft, record.ms.draft);
  verify_error_.add(record.predicted.verify, record.ms.verify);
  const WidthForecast* chosen = chosen_candidate(record);
  if (chosen != nullptr && !part.cut) expectation_.add(chosen->expected, static_cast<double>(record.emitted.size()));
}

double RoundStatistics::tau() const {
  return ratio(emitted_, rounds_);
}

double RoundStatistics::tokens_per_second() const {
  return per_second(emitted_, ms_.total());
}

double RoundStatistics::node_utilisation() const {
  return ratio(accepted_, drafted_);
}

double RoundStatistics::row_utilisation() const {
  return ratio(emitted_, rows_);
}

}  // namespace canopy

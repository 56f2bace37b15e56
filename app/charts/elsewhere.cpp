#include "app/charts/elsewhere.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "app/charts/budget_view.h"

namespace canopy::app {
namespace {

constexpr uint32_t kUsualBlock = 16;  // rows of a drafter's pass where the round does not say

// Scales with their blocks included. Longer names first: "Q4_K" must not be taken for another one.
constexpr std::pair<std::string_view, double> kWeightTypes[] = {
    {"BF16", 2},        {"F16", 2},        {"F32", 4},       {"Q8_0", 1.0625}, {"Q6_K", 0.8203}, {"Q5_K", 0.6875},
    {"Q5_1", 0.75},     {"Q5_0", 0.6875},  {"Q4_K", 0.5625}, {"Q4_1", 0.625},  {"Q4_0", 0.5625}, {"IQ4_NL", 0.5625},
    {"IQ4_XS", 0.5313}, {"MXFP4", 0.5313}, {"Q3_K", 0.4297}, {"Q2_K", 0.3281},
};

uint32_t block_of(const RoundRecord& record) {
  const uint32_t depth = record.choice.limits.depth;
  return depth == WidthLimits::none || depth == 0 ? kUsualBlock : depth + 1;
}

/// The weights of the drafter over those of the target, by the times of this round: where memory is what takes the time
/// a draft costs as much as its weights, where arithmetic is it costs as much as its weights times its rows. The
/// smaller of the two, as only one of them holds and the other is too large.
double drafter_share(const RoundRecord& record, double plain_ms) {
  const double rows = record.width, block = block_of(record);
  double share = record.ms.verify > 0 ? record.ms.draft / block / (record.ms.verify / rows) : 1;
  if (plain_ms > 0) share = std::min(share, record.ms.draft / plain_ms);
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace

double bytes_per_weight(std::string_view text) {
  for (const auto& [name, bytes] : kWeightTypes)
    if (text.find(name) != std::string_view::npos) return bytes;
  return 0;
}

double pass_seconds(const DeviceProfile& device, const PassNeeds& needs, uint32_t rows, uint32_t context) {
  const double bytes =
      needs.work ? static_cast<double>(needs.work->bytes(rows, context).total()) : needs.bytes_per_weight;
  const double flops = needs.work ? static_cast<double>(needs.work->flops(rows, context)) : 2.0 * rows;
  return std::max(bytes / (device.gb_s * 1e9), flops / (device.tflop_s * 1e12));
}

std::optional<ElsewhereRound> elsewhere_round(const RoundRecord& record, const DeviceProfile& device,
                                              const PassNeeds& needs, double plain_ms) {
  if (record.shape == DecodeMode::ar || record.nodes.empty() || !needs.known()) return std::nullopt;
  const double plain = pass_seconds(device, needs, 1, record.context);
  const double draft =
      drafter_share(record, plain_ms) * pass_seconds(device, needs, block_of(record), record.context) / plain;
  uint32_t best = 1;
  double most = 0, best_cost = 0, expected = 0;
  for (uint32_t width = 1; width <= record.nodes.size(); ++width) {
    expected += width == 1 ? 1 : std::exp(record.nodes[width - 1].node.score);
    const double cost = draft + pass_seconds(device, needs, width, record.context) / plain;
    if (expected / cost <= most) continue;
    most = expected / cost;
    best = width;
    best_cost = cost;
  }
  const std::vector<uint32_t> accepted = accepted_by_width(record);
  const auto emitted = static_cast<uint32_t>(record.emitted.size());
  return ElsewhereRound{best - 1, std::min(emitted, accepted[best - 1] + 1), best_cost, draft};
}

void ElsewhereTrail::read(size_t round, const DeviceProfile& device, const PassNeeds& needs, double plain_ms) {
  if (log_->summary(round).shape == DecodeMode::ar) return;
  const std::shared_ptr<const RoundRecord> record = log_->round(round);
  if (!record) return;
  if (const auto there = elsewhere_round(*record, device, needs, plain_ms)) read_.push_back({round, *there});
  if (read_.size() > kRounds) read_.pop_front();
}

Elsewhere ElsewhereTrail::up_to(const std::shared_ptr<RoundLog>& log, size_t round, const DeviceProfile& device,
                                const PassNeeds& needs, double plain_ms) {
  Elsewhere all;
  all.device = &device;
  if (!log || round >= log->rounds() || !needs.known()) return all;
  const size_t first = log->first_of_reply(round);
  const double weight = needs.work ? -1 : needs.bytes_per_weight;
  // A speed of plain decoding that has hardly changed is no reason to read everything again.
  const bool same_speed = std::abs(plain_ms - plain_ms_) <= 0.1 * plain_ms_;
  if (log != log_ || first != first_ || &device != device_ || weight != weight_ || !same_speed || round + 1 < next_) {
    log_ = log;
    first_ = first;
    device_ = &device;
    weight_ = weight;
    plain_ms_ = plain_ms;
    read_.clear();
    next_ = first;
  }
  next_ = std::max(next_, round + 1 - std::min(round + 1 - first, kRounds));
  for (; next_ <= round; ++next_) read(next_, device, needs, plain_ms_);
  for (const Read& each : read_) {
    ++all.rounds;
    all.tokens += each.there.tokens;
    all.plain_tokens += each.there.plain_tokens;
    all.least = all.rounds == 1 ? each.there.budget : std::min(all.least, each.there.budget);
    all.most = std::max(all.most, each.there.budget);
    if (each.round == round) all.newest = each.there;
  }
  if (all.rounds == 0) return all;
  all.ratio = all.tokens / all.plain_tokens;
  all.tokens /= static_cast<double>(all.rounds);
  all.plain_tokens /= static_cast<double>(all.rounds);
  return all;
}

}  // namespace canopy::app

#include "app/rounds/plain_rounds.h"

#include <algorithm>

namespace canopy::app {
namespace {

// Below this many positions the context hardly changes what a pass costs.
constexpr uint32_t kShortContext = 256;

bool is_near(uint32_t a, uint32_t b) {
  const uint64_t low = std::max(kShortContext, std::min(a, b)), high = std::max(kShortContext, std::max(a, b));
  return high <= 2 * low;
}

}  // namespace

void PlainRounds::add(const RoundRecord& round, int64_t at_ms) {
  const double ms = round.ms.total();
  // A plain round may draft on the side, to see whether drafting would pay.
  if (round.shape != DecodeMode::ar || round.ms.draft > 0 || round.emitted.size() != 1 || ms <= 0) return;
  rounds_.push_back({round.context, ms, at_ms});
  if (rounds_.size() > kMost) rounds_.pop_front();
}

std::optional<PlainSpeed> PlainRounds::near(uint32_t context) const {
  PlainSpeed speed;
  double ms = 0;
  for (auto round = rounds_.rbegin(); round != rounds_.rend() && speed.rounds < kMean; ++round) {
    if (!is_near(round->context, context)) continue;
    if (speed.rounds++ == 0) speed.newest_ms = round->at_ms;
    ms += round->ms;
  }
  if (speed.rounds < kEnough) return std::nullopt;
  speed.tokens_per_second = 1000 * static_cast<double>(speed.rounds) / ms;
  return speed;
}

}  // namespace canopy::app

#include "app/whatif/race.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr double kAxisOfFastest = 6;  // of the axis, at most, so that the fastest is still seen

RaceLane lane_of(const WhatIf& run, size_t there) {
  RaceLane lane;
  lane.there = there;
  lane.plain_ms = run.ar_ms;
  for (const WhatIfRound& round : run.rounds) {
    lane.ms += round.record.ms.total();
    const auto emitted = static_cast<uint32_t>(round.record.emitted.size());
    const uint32_t guessed = std::min(round.record.accepted, emitted);
    lane.tokens += emitted;
    lane.passes.push_back({lane.ms, guessed, emitted - guessed});
  }
  return lane;
}

/// The next of 1, 2 and 5 times a power of ten.
double round_up(double value) {
  if (!(value > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (value <= step * power * (1 + 1e-9)) return step * power;
  }
  return 10 * power;
}

}  // namespace

uint64_t RaceLane::tokens_at(double now) const {
  uint64_t count = 0;
  for (const RacePass& pass : passes) {
    if (pass.end_ms > now) break;
    count += pass.guessed + pass.added;
  }
  return count;
}

Race race_of(const WhatIfAnswer& answer) {
  Race race;
  double last = 0;
  for (size_t i = 0; i < answer.there.size(); ++i) {
    const WhatIfThere& there = *answer.there[i];
    if (there.run.rounds.empty() || there.run.ms <= 0) continue;
    race.lanes.push_back(lane_of(there.run, i));
    const RaceLane& lane = race.lanes.back();
    last = std::max({last, lane.ms, lane.plain_ms});
    race.fastest_ms = race.lanes.size() == 1 ? lane.ms : std::min(race.fastest_ms, lane.ms);
    for (const RacePass& pass : lane.passes) race.most_tokens = std::max(race.most_tokens, pass.guessed + pass.added);
  }
  std::ranges::stable_sort(race.lanes, {}, &RaceLane::ms);
  race.axis_ms = round_up(std::min(last, kAxisOfFastest * race.fastest_ms));
  return race;
}

double race_speed(const Race& race, double seconds) {
  return race.fastest_ms > 0 ? race.fastest_ms / 1000 / seconds : 1;
}

}  // namespace canopy::app

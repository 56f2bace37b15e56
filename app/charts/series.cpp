#include "app/charts/series.h"

#include <algorithm>

namespace canopy::app {
namespace {

constexpr double kWeight = 0.2;  // of the newest round in the moving mean

}  // namespace

SpeedSeries speed_series(const RoundLog& log, size_t first, size_t last, size_t most) {
  SpeedSeries series;
  last = std::min(last, log.rounds() == 0 ? 0 : log.rounds() - 1);
  if (log.rounds() == 0 || first > last || most == 0) return series;
  const size_t rounds = last - first + 1;
  series.rounds_a_point = (rounds + most - 1) / most;
  double mean = 0, tokens = 0, ms = 0;
  bool begun = false;
  for (size_t i = 0; i < rounds; ++i) {
    const RoundSummary& round = log.summary(first + i);
    const double took = round.ms.total();
    if (took > 0) {
      const double speed = 1000.0 * round.emitted / took;
      mean = begun ? mean + kWeight * (speed - mean) : speed;
      begun = true;
    }
    tokens += round.emitted;
    ms += took;
    if ((i + 1) % series.rounds_a_point != 0 && i + 1 != rounds) continue;
    if (ms > 0) {
      series.round.push_back(static_cast<double>(i + 1));
      series.speed.push_back(1000 * tokens / ms);
      series.mean.push_back(mean);
      series.highest = std::max(series.highest, series.speed.back());
    }
    tokens = ms = 0;
  }
  return series;
}

std::vector<RoundResidual> round_residuals(const RoundLog& log, size_t first, size_t last, size_t most) {
  std::vector<RoundResidual> residuals;
  if (log.rounds() == 0) return residuals;
  last = std::min(last, log.rounds() - 1);
  for (size_t i = last + 1; i-- > first && residuals.size() < most;) {
    const RoundSummary& round = log.summary(i);
    if (round.predicted.verify <= 0 || round.ms.verify <= 0) continue;
    residuals.push_back({static_cast<double>(round.width), round.ms.verify / round.predicted.verify - 1});
  }
  return residuals;
}

}  // namespace canopy::app

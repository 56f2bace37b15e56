#pragma once
// Curves over the rounds of a reply, from the summaries that are kept of all of them. Pure.

#include <cstddef>
#include <vector>

#include "app/rounds/round_log.h"

namespace canopy::app {

/// Tokens a second from round to round. Of long replies each point is several rounds: their tokens over their time.
struct SpeedSeries {
  std::vector<double> round;  // number in the reply, from 1; of the last one of a point
  std::vector<double> speed;
  std::vector<double> mean;  // moving, exponential, over rounds
  double highest = 0;        // of `speed`
  size_t rounds_a_point = 1;
};

/// Rounds first ... last of the log; at most `most` points.
SpeedSeries speed_series(const RoundLog& log, size_t first, size_t last, size_t most = 512);

/// How long a round's verify pass took against its prediction.
struct RoundResidual {
  double width = 0;
  double error = 0;  // measured over predicted, less 1
};

/// The newest `most` rounds of first ... last that were predicted.
std::vector<RoundResidual> round_residuals(const RoundLog& log, size_t first, size_t last, size_t most = 1024);

}  // namespace canopy::app

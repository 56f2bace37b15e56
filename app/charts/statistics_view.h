#pragma once
// The figures of the statistics panel, each with what it was counted over. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/charts/statistics_trail.h"
#include "app/rounds/round_log.h"
#include "engine/client/cost_snapshot.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

/// A figure as it is written, and the sentence that says what it is a share of.
struct Figure {
  std::string text;
  std::string denominator;
};

/// A round's time in the three parts that are drawn.
struct StageTimes {
  double draft = 0, verify = 0, rest = 0;  // ms; rest: build, walk, commit and other
  double total() const { return draft + verify + rest; }
};
StageTimes stage_times(const RoundTimes& times);

struct DepthShare {
  uint32_t depth = 0;
  uint64_t accepted = 0;  // rounds that accepted a drafted token there
  uint64_t offered = 0;   // rounds whose text came to the depth above and whose tree had a node here
  double share = 0;       // accepted, of all rounds
};

enum class VerdictKind { none, pays, even, loses, ar };

struct StatisticsView {
  uint64_t rounds = 0;
  double tokens_per_second = 0;
  double ar_tokens_per_second = 0;  // 0 where it is not known
  double ratio = 0;                 // of the two; 0 where the second is not known
  Figure speed, over_ar, tau, node_use, round_time, oracle;
  std::vector<uint64_t> histogram;  // [accepted] rounds
  double mean_accepted = 0;
  std::optional<uint32_t> shown_accepted;  // bar of the shown round
  std::vector<DepthShare> by_depth;
  StageTimes measured;  // of the shown round
  std::optional<StageTimes> predicted;
  VerdictKind verdict = VerdictKind::none;
  std::string verdict_title, verdict_detail;
  std::string cut;      // a sentence where the last round counts fewer tokens than its tree may have got right
  std::string missing;  // a sentence where rounds are not counted
};

/// What there is to compare with: what autoregressive decoding reaches, and where that number comes from.
struct ArSpeed {
  double tokens_per_second = 0;  // 0: not known
  std::string origin;            // "measured", "predicted"
};

/// shown: the newest of the counted rounds; may be null.
StatisticsView statistics_view(const TrailPoint& point, const RoundRecord* shown, DecodeMode mode,
                               const ArSpeed& plain);

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

/// What autoregressive decoding reaches where a round of the log was: measured with its reply; else by the costs of the
/// loaded pair, for its own rounds; else what the round itself expected. shown and costs may be null.
ArSpeed ar_speed(const RoundLog& log, size_t round, const RoundRecord* shown, const CostSnapshot* costs);

}  // namespace canopy::app

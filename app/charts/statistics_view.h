#pragma once
// The figures of the statistics panel, each with what it was computed from. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/charts/statistics_trail.h"
#include "app/rounds/ar_reference.h"
#include "app/rounds/round_log.h"
#include "engine/trace/round_record.h"

namespace canopy::app {

/// A figure as text, and a sentence that says what it is computed from.
struct Figure {
  std::string text;
  std::string denominator;
};

/// The time of a round in the three parts that are drawn.
struct StageTimes {
  double draft = 0, verify = 0, rest = 0;  // ms; rest: build, accept, commit and other
  double total() const { return draft + verify + rest; }
};
StageTimes stage_times(const RoundTimes& times);

struct DepthShare {
  uint32_t depth = 0;
  uint64_t accepted = 0;  // rounds that accepted a drafted token at this depth
  uint64_t offered = 0;   // rounds whose text reached the depth before and whose tree had a node at this one
  double share = 0;       // accepted / all rounds
};

enum class VerdictKind { none, pays, even, loses, ar };

struct StatisticsView {
  uint64_t rounds = 0;
  double tokens_per_second = 0;
  double ar_tokens_per_second = 0;  // of plain decoding; 0 where it is not known
  // speed / speed of plain decoding; 0 where that is not known, and where next to nothing was drafted: then the
  // difference is that of the machine, not of drafting
  double ratio = 0;
  Figure speed, over_ar, tau, node_use, round_time, oracle;
  std::vector<uint64_t> histogram;  // [accepted tokens] number of rounds
  double mean_accepted = 0;
  std::optional<uint32_t> shown_accepted;  // accepted tokens of the shown round
  std::vector<DepthShare> by_depth;
  StageTimes measured;  // of the shown round
  std::optional<StageTimes> predicted;
  VerdictKind verdict = VerdictKind::none;
  std::string verdict_title, verdict_detail;
  std::string cut;      // a sentence if the last round may have had more right tokens than are counted; else empty
  std::string missing;  // a sentence if some rounds are not counted; else empty
};

/// shown: the last of the counted rounds; may be null. plain: what the speed is compared with. now_ms: since 1970, UTC.
StatisticsView statistics_view(const TrailPoint& point, const RoundRecord* shown, DecodeMode mode,
                               const ArReference& plain, int64_t now_ms = 0);

/// Tokens per second, round by round. In long replies a point stands for several rounds: their tokens over their time.
struct SpeedSeries {
  std::vector<double> round;  // number of the round in the reply, from 1; for a point of several that of the last
  std::vector<double> speed;
  std::vector<double> mean;  // exponential moving mean over rounds
  double highest = 0;        // largest value of `speed`
  size_t rounds_a_point = 1;
};

/// The speeds of rounds first ... last of the log, as at most `most` points.
SpeedSeries speed_series(const RoundLog& log, size_t first, size_t last, size_t most = 512);

/// The prediction error of a round's verify pass.
struct RoundResidual {
  double width = 0;
  double error = 0;  // measured time / predicted time - 1
};

/// The last `most` rounds among first ... last that had a prediction.
std::vector<RoundResidual> round_residuals(const RoundLog& log, size_t first, size_t last, size_t most = 1024);

}  // namespace canopy::app

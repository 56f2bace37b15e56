#pragma once
// Statistics of a reply from its first round to the shown one, and the figures made of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/plain_decoding.h"
#include "app/state/round_log.h"
#include "engine/speculation/round_record.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {

// Statistics of a reply from its first round to the shown one. A copy is kept every kStride rounds, so that moving
// through a long reply does not count it from the start each time. Pure.

/// What the reply would have reached if each round had had the width that was best afterwards, plain decoding
/// included. No rule for the width can do better with these drafts.
struct OracleTally {
  uint64_t rounds = 0;  // rounds with forecasts, which give the times of other widths
  double tokens = 0;    // emitted with the best widths
  double ms = 0;
  double real_tokens = 0;  // emitted by the same rounds as they were
  double real_ms = 0;

  void add(const RoundRecord& record);
  double tokens_per_second() const { return ms > 0 ? 1000 * tokens / ms : 0; }
  double real_tokens_per_second() const { return real_ms > 0 ? 1000 * real_tokens / real_ms : 0; }
};

/// Drafted nodes by the predicted probability of their path, and how many of them became text.
class ReliabilityTally {
 public:
  static constexpr size_t kBins = 10;

  struct Bin {
    uint64_t nodes = 0;
    uint64_t hits = 0;         // nodes that became text
    double probabilities = 0;  // sum over the nodes
    double predicted() const { return nodes > 0 ? probabilities / static_cast<double>(nodes) : 0; }
    double observed() const { return nodes > 0 ? static_cast<double>(hits) / static_cast<double>(nodes) : 0; }
  };

  void add(const RoundRecord& record);

  // By the drafter's own probabilities, of rounds in which the text had no say.
  const std::array<Bin, kBins>& raw() const { return raw_; }
  // By the probabilities that the tree was built with.
  const std::array<Bin, kBins>& calibrated() const { return calibrated_; }
  uint64_t nodes() const { return nodes_; }
  /// Mean |predicted - observed| over the bins, weighted by their nodes; 0 without nodes.
  static double error(const std::array<Bin, kBins>& bins);

 private:
  std::array<Bin, kBins> raw_{}, calibrated_{};
  uint64_t nodes_ = 0;
};

inline constexpr uint64_t kEnoughRounds = 8;  // least number of rounds for statistics and a verdict

/// The statistics of some rounds.
struct TrailPoint {
  RoundStatistics rounds;
  OracleTally oracle;
  ReliabilityTally reliability;
  uint64_t missing = 0;  // rounds without a tree, which are not counted in the other fields

  void add(const RoundRecord* record);
};

class StatisticsTrail {
 public:
  static constexpr size_t kStride = 64;         // rounds between two copies
  static constexpr size_t kRoundsAFrame = 512;  // read in one frame; a few milliseconds

  /// Statistics of the reply that `round` belongs to, up to that round. Reads at most `most` new rounds; done() says
  /// whether these were all. The result is valid until the next call.
  const TrailPoint& up_to(const std::shared_ptr<RoundLog>& log, size_t round, size_t most);

  bool done() const { return done_; }
  /// The rounds of the last result: first() is the first round of the reply, rounds() their number.
  size_t first() const { return first_; }
  size_t rounds() const { return counted_; }
  /// Number of rounds read so far; for tests.
  size_t reads() const { return reads_; }

 private:
  void start(const std::shared_ptr<RoundLog>& log, size_t first);
  void advance(size_t rounds, size_t most);

  std::shared_ptr<RoundLog> log_;
  size_t first_ = 0;
  std::vector<TrailPoint> kept_;  // [i]: statistics of the first i * kStride rounds
  TrailPoint answer_;
  size_t counted_ = 0;  // rounds counted in answer_
  bool done_ = true;
  size_t reads_ = 0;
};

// The figures of the statistics panel, each with what it was computed from. Pure.

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

/// A figure of the sources of guesses, with its name.
struct SourceFigure {
  std::string name;
  Figure figure;
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
  std::vector<SourceFigure> by_source;  // empty where no guess was from the text
  StageTimes measured;                  // of the shown round
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

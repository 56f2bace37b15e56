#pragma once
// Statistics of the shown round: of the first rounds of its reply, up to it. Scrubbing through a long reply must not
// count it anew for each round, so every so often a copy is kept to start from. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/rounds/round_log.h"
#include "engine/trace/round_record.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {

/// What the reply would have reached had every round known beforehand what its tree would bring: the best width of each
/// round, autoregressive decoding included. No rule can do better with these drafts.
struct OracleTally {
  uint64_t rounds = 0;  // that had a forecast to take times from
  double tokens = 0;    // of the best widths
  double ms = 0;
  double real_tokens = 0;  // what the same rounds did
  double real_ms = 0;

  void add(const RoundRecord& record);
  double tokens_per_second() const { return ms > 0 ? 1000 * tokens / ms : 0; }
  double real_tokens_per_second() const { return real_ms > 0 ? 1000 * real_tokens / real_ms : 0; }
};

/// Drafted nodes by the probability that their path was given: how many of them the text came through.
class ReliabilityTally {
 public:
  static constexpr size_t kBins = 10;

  struct Bin {
    uint64_t nodes = 0;
    uint64_t hits = 0;         // nodes on the path the target wrote
    double probabilities = 0;  // in sum
    double predicted() const { return nodes > 0 ? probabilities / static_cast<double>(nodes) : 0; }
    double observed() const { return nodes > 0 ? static_cast<double>(hits) / static_cast<double>(nodes) : 0; }
  };

  void add(const RoundRecord& record);

  const std::array<Bin, kBins>& raw() const { return raw_; }                // the drafter's own probabilities
  const std::array<Bin, kBins>& calibrated() const { return calibrated_; }  // those the tree was ordered by
  uint64_t nodes() const { return nodes_; }
  /// Mean distance of predicted from observed, each bin by its nodes; 0 without nodes.
  static double error(const std::array<Bin, kBins>& bins);

 private:
  std::array<Bin, kBins> raw_{}, calibrated_{};
  uint64_t nodes_ = 0;
};

inline constexpr uint64_t kEnoughRounds = 8;  // of a reply; statistics of fewer are not shown

/// What some rounds come to.
struct TrailPoint {
  RoundStatistics rounds;
  OracleTally oracle;
  ReliabilityTally reliability;
  uint64_t missing = 0;  // rounds whose tree was let go, and which are not in any of these

  void add(const RoundRecord* record);
};

class StatisticsTrail {
 public:
  static constexpr size_t kStride = 64;         // rounds from one kept copy to the next
  static constexpr size_t kRoundsAFrame = 512;  // read of a long reply in one frame; takes a few milliseconds

  /// The rounds of the reply that `round` belongs to, up to it. Reads at most `most` rounds that it has not read yet:
  /// done() says whether that was enough. Valid until the next call.
  const TrailPoint& up_to(const std::shared_ptr<RoundLog>& log, size_t round, size_t most);

  bool done() const { return done_; }
  /// Rounds of the last answer, from the first of its reply.
  size_t first() const { return first_; }
  size_t rounds() const { return counted_; }
  /// Rounds read so far, for tests.
  size_t reads() const { return reads_; }

 private:
  void start(const std::shared_ptr<RoundLog>& log, size_t first);
  void advance(size_t rounds, size_t most);

  std::shared_ptr<RoundLog> log_;
  size_t first_ = 0;
  std::vector<TrailPoint> kept_;  // [i]: of the first i * kStride rounds
  TrailPoint answer_;
  size_t counted_ = 0;  // rounds in answer_
  bool done_ = true;
  size_t reads_ = 0;
};

}  // namespace canopy::app

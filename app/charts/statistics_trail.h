#pragma once
// Statistics of a reply from its first round to the shown one. A copy is kept every kStride rounds, so that moving
// through a long reply does not count it from the start each time. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/rounds/round_log.h"
#include "engine/trace/round_record.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {

/// What the reply would have reached if each round had had the width that was best in hindsight, plain decoding
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

  const std::array<Bin, kBins>& raw() const { return raw_; }  // by the drafter's own probabilities
  // By the probabilities that the tree was built with.
  const std::array<Bin, kBins>& calibrated() const { return calibrated_; }
  uint64_t nodes() const { return nodes_; }
  /// Mean |predicted - observed| over the bins, weighted by their nodes; 0 without nodes.
  static double error(const std::array<Bin, kBins>& bins);

 private:
  std::array<Bin, kBins> raw_{}, calibrated_{};
  uint64_t nodes_ = 0;
};

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
  static constexpr size_t kStride = 64;  // rounds between two copies

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

}  // namespace canopy::app

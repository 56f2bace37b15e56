#pragma once
// Statistics of the shown round: of the first rounds of its reply, up to it. Scrubbing through a long reply must not
// count it anew for each round, so every so often a copy is kept to start from. Pure.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/charts/tallies.h"
#include "app/rounds/round_log.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {

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
  static constexpr size_t kStride = 64;  // rounds from one kept copy to the next

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

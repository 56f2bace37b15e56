#pragma once
// The speed of plain decoding as rounds without a draft measured it. Pure.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "engine/trace/round_record.h"

namespace canopy::app {

/// Mean speed of some plain rounds.
struct PlainSpeed {
  double tokens_per_second = 0;
  uint64_t rounds = 0;
  int64_t newest_ms = 0;  // when the newest was measured; 0 where that is not known
};

/// The newest plain rounds, from which the speed at a context is taken. Memory is bounded.
class PlainRounds {
 public:
  static constexpr size_t kMost = 4096;  // rounds that are kept
  static constexpr size_t kEnough = 8;   // least number of rounds for a speed
  static constexpr size_t kMean = 64;    // rounds that a speed is the mean of, at most

  /// Counts the round if it is plain: without a draft, so that nothing but the target's pass is in its time. at_ms:
  /// when it ended, since 1970; 0 where that is not known.
  void add(const RoundRecord& round, int64_t at_ms);
  void clear() { rounds_.clear(); }

  /// The speed of the newest rounds whose context was at most twice as long or as short: a token costs more the more
  /// text is before it. nullopt with fewer than kEnough of them.
  std::optional<PlainSpeed> near(uint32_t context) const;

 private:
  struct Round {
    uint32_t context = 0;
    double ms = 0;
    int64_t at_ms = 0;
  };
  std::deque<Round> rounds_;  // the newest last
};

}  // namespace canopy::app

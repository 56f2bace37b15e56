#pragma once
// What only charts count of rounds, beside RoundStatistics: the widths that would have been best, and how far path
// probabilities were right. Both are plain sums over rounds, so that any number of rounds costs the same room.

#include <array>
#include <cstdint>
#include <vector>

#include "engine/trace/round_record.h"

namespace canopy::app {

/// What the reply would have reached had every round known beforehand what its tree would bring: the best width of each
/// round, plain decoding included. No rule can do better with these drafts.
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

}  // namespace canopy::app

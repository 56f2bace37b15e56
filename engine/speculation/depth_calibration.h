#pragma once
// Calibration of the drafter's probabilities by depth, learnt while it drafts, so that path probabilities are honest
// (design.md, section 3): q~ = exp(min(0, a log q + b)), with one (a, b) for each depth.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/acceptance_ledger.h"
#include "engine/speculation/state_archive.h"
#include "engine/speculation/tree_builder.h"

namespace canopy {

/// One point of the reliability plot: candidates that the drafter gave about the same probability.
struct ReliabilityBin {
  double predicted = 0;   // mean q, as the drafter said
  double calibrated = 0;  // mean calibrated q
  double observed = 0;    // share that the target agreed with
  double count = 0;       // candidates, older ones counting less
};

/// The candidates of a depth count where the true path reached their parent in the tree. They are gathered in bins of
/// q, older ones fading; each bin starts with a few assumed candidates that agree with the drafter, so that few samples
/// change little. (a, b) is the most likely line through the bins: a convex problem in two unknowns.
class DepthCalibrator {
 public:
  /// depths: B - 1 of the drafter.
  explicit DepthCalibrator(uint32_t depths);

  void learn(const DraftOutcome& outcome);

  /// One entry a depth, as TreeBuilder::begin() takes it; the first `depths` of them.
  std::span<const DepthCalibration> calibration(uint32_t depths) const { return std::span(calibration_).first(depths); }

  /// Bins that hold something, ascending q. depth: 1 ...; 0 for all depths together.
  std::vector<ReliabilityBin> reliability(uint32_t depth) const;

  /// Drafts learnt from.
  uint64_t drafts() const { return drafts_; }

  /// Throws Error(bad_input) for one of other depths.
  void archive(StateArchive& archive);

 private:
  struct Bin {
    double count = 0;
    double hits = 0;
    double log_q = 0;  // sum
    double q = 0;      // sum
  };
  static constexpr uint32_t bins = 19;
  using Bins = std::array<Bin, bins>;

  static uint32_t bin_of(double q);
  static DepthCalibration fit(const Bins& seen, const DepthCalibration& before);

  std::vector<Bins> seen_;  // [depths]
  std::vector<DepthCalibration> calibration_;
  uint64_t drafts_ = 0;
};

}  // namespace canopy

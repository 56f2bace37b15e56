#pragma once
// What the adaptive mode has learnt about a drafter, for a front end.

#include <cstdint>
#include <vector>

#include "engine/speculation/controller.h"

namespace canopy {

/// Calibration and reliability of the drafter at one depth.
struct DepthLearnt {
  DepthCalibration calibration;             // log q~ = min(0, scale * log q + shift)
  std::vector<ReliabilityBin> reliability;  // ascending q: how often the target agreed
};

/// Immutable once published.
struct LearntSnapshot {
  uint64_t drafts = 0;                       // number of drafts that the calibration was learnt from, in all replies
  std::vector<DepthLearnt> depths;           // [block - 1], depth 1 first
  std::vector<ReliabilityBin> reliability;   // of all depths together
  PromiseRecord promises;                    // promised against accepted tokens, in all replies
  std::vector<HindsightCurve::Point> tree;   // mean tokens emitted by width, in hindsight, in this reply
  std::vector<HindsightCurve::Point> chain;  // likewise chains, width = tokens + 1
};

LearntSnapshot learnt_snapshot(const Controller& controller, uint32_t block);

}  // namespace canopy

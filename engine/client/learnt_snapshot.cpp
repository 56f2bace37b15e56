#include "engine/client/learnt_snapshot.h"

namespace canopy {

LearntSnapshot learnt_snapshot(const Controller& controller, uint32_t block) {
  const DepthCalibrator& calibrator = controller.calibrator();
  LearntSnapshot snapshot;
  snapshot.drafts = calibrator.drafts();
  for (uint32_t depth = 1; depth < block; ++depth) {
    snapshot.depths.push_back({calibrator.calibration(depth)[depth - 1], calibrator.reliability(depth)});
  }
  snapshot.reliability = calibrator.reliability(0);
  snapshot.promises = controller.promises();
  snapshot.tree = controller.hindsight().tree();
  snapshot.chain = controller.hindsight().chain();
  return snapshot;
}

}  // namespace canopy

#pragma once
// Times passes of a loaded pair for calibrate().

#include <functional>
#include <stop_token>

#include "engine/calibration/calibration.h"
#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Makes the tree of `width` nodes, the root included, that passes are timed with.
void grow_timed_tree(DraftTree& tree, uint32_t width);

/// A pass that took long because it was recorded and its kernels compiled is run and timed again: later passes do not
/// pay for that.
class ModelTimer final : public PassTimer {
 public:
  /// Times passes of a sequence with a drafter, which is cleared before and afterwards. Both must outlive the timer.
  ModelTimer(Model& model, Sequence& sequence, std::stop_token stop);
  ~ModelTimer() override;

  double verify_ms(uint32_t width, uint32_t context) override;
  double draft_ms(uint32_t backlog, uint32_t context) override;
  bool stopped() const override { return stop_.stop_requested(); }

 private:
  Model& model_;
  Sequence& sequence_;
  std::stop_token stop_;
  DraftTree tree_;
};

/// Makes a draft with few and one with many features, so that the first of a reply does not wait for kernels to be
/// compiled. The sequence is cleared.
void prepare_drafts(Model& model, Sequence& sequence, std::stop_token stop);

/// Widths and contexts that can be measured of a pair, in `budget_s` seconds.
CalibrationPlan calibration_plan(const Model& model, const Drafter& drafter, double budget_s);

}  // namespace canopy

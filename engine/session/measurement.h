#pragma once
// What the passes of a loaded model take on this device, by the device's clock and the host's: for the calibration of a
// pair, and for a report that a user can send.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "engine/model/feature_drafter.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/session/draft_model.h"
#include "engine/speculation/calibration.h"
#include "engine/speculation/ddtree.h"

namespace canopy {

// Times passes of a loaded pair for calibrate().

/// A pass that took long because it was recorded and its kernels compiled is run and timed again: later passes do not
/// pay for that.
class ModelTimer final : public PassTimer {
 public:
  /// Times passes of a sequence, and drafts where it has a drafter or `draft_model` is not null; it is cleared before
  /// and afterwards. All must outlive the timer.
  ModelTimer(Model& model, Sequence& sequence, std::stop_token stop, DraftModel* draft_model = nullptr);
  ~ModelTimer() override;

  double verify_ms(uint32_t width, uint32_t context) override;
  double draft_ms(uint32_t backlog, uint32_t context) override;
  bool stopped() const override { return stop_.stop_requested(); }

 private:
  Model& model_;
  Sequence& sequence_;
  std::stop_token stop_;
  DraftModel* draft_model_;
  DraftTree tree_;
};

/// Makes a draft with few and one with many features, so that the first of a reply does not wait for kernels to be
/// compiled. The sequence is cleared.
void prepare_drafts(Model& model, Sequence& sequence, DraftModel* draft_model, std::stop_token stop);

/// Widths and contexts that can be measured of a pair, or of a model alone (both null), in `budget_s` seconds.
CalibrationPlan calibration_plan(const Model& model, const FeatureDrafter* drafter, const DraftModel* draft_model,
                                 double budget_s);

// What the passes of a loaded model take on this device, for a report that a user can send: times by the device's clock
// and the host's, and the rates that the device reaches at all.

struct MeasurementPlan {
  std::vector<uint32_t> widths = {1, 2, 4, 8, 16, 32, 64, 128};  // rows of a pass, ascending
  std::vector<uint32_t> contexts = {0, 4096};                    // positions before it
  double seconds = 60;             // in all; the peak and the first round of passes may exceed it
  uint32_t most_repeats = 15;      // of each point
  double calibration_seconds = 0;  // of a shape's pair, beside `seconds`; 0: it is not calibrated
};

/// Medians over the repeats, in milliseconds.
struct MeasuredTime {
  uint32_t repeats = 0;
  double device_ms = 0;  // by the device's clock; 0 where it has none
  double wall_ms = 0;    // as the host waited, its own work included
  double host_ms = 0;    // of it, the host's own work: what it did not wait for the device

  double host_gap_ms() const { return device_ms > 0 ? wall_ms - device_ms : 0; }
  /// By the device's clock where it has one, else the host's.
  double ms() const { return device_ms > 0 ? device_ms : wall_ms; }
};

struct MeasuredWidth {
  uint32_t width = 0;
  MeasuredTime time;
};

struct MeasuredContext {
  uint32_t context = 0;
  std::vector<MeasuredWidth> passes;  // ascending widths
};

/// A pass of the drafter behind an injection of `backlog` features.
struct MeasuredDraft {
  uint32_t context = 0;
  uint32_t backlog = 0;
  MeasuredTime time;
};

/// A whole round: draft, a pass over its tree, the path committed. What is accepted is given beforehand, since random
/// weights agree on nothing, and costs the same.
struct MeasuredRound {
  uint32_t context = 0;
  uint32_t width = 0;    // rows of the tree's pass
  uint32_t emitted = 0;  // tokens of the round, the bonus included
  MeasuredTime time;     // device: draft, pass and moves of K/V
};

struct ModelMeasurement {
  DevicePeak peak;  // measured before and after, the larger of both
  std::vector<MeasuredContext> contexts;
  std::vector<MeasuredDraft> drafts;
  std::vector<MeasuredRound> rounds;  // at the shortest context, where there is a drafter
  uint64_t pass_bytes = 0;            // of weights that a pass reads
  bool complete = true;               // false: time ran out, some points are missing
  double seconds = 0;

  /// 10^9 bytes of weights a second that a pass of one row reads; 0 where none was measured at this context.
  double weights_gb_s(const MeasuredContext& context) const;
  /// Tokens of a round in its time over those of plain decoding in the same time, by the host's clock; 0 where no pass
  /// of one row was measured.
  double speedup(const MeasuredRound& round) const;
};

/// Contexts and widths of the plan that the model has no room for are left out. The passes are those of draft trees
/// behind `sequence`, with the most probable token of every row; it is cleared before and afterwards. `progress` hears
/// of points done and planned. Throws bad_input for a plan without widths or contexts or without time, and cancelled
/// when stop is requested.
ModelMeasurement measure_model(Model& model, Sequence& sequence, const MeasurementPlan& plan,
                               const std::function<void(uint32_t done, uint32_t total)>& progress,
                               const std::stop_token& stop);

}  // namespace canopy

#pragma once
// Panels of what rounds take of the device: residuals and roofline of the passes, the calibration, and the K/V cache.

#include <cstdint>
#include <vector>

#include "app/charts/statistics_view.h"
#include "app/ui/panel.h"
#include "engine/session/engine_client.h"
#include "engine/speculation/round_record.h"

namespace canopy::app {

// The measured costs of passes and the roofline fitted to them, for each context. Pure.

/// The costs of passes after a certain number of committed positions.
struct ContextCosts {
  uint32_t context = 0;
  std::vector<double> width;                  // ascending
  std::vector<double> ms;                     // time of the pass
  std::vector<double> residual;               // measured / fitted - 1
  std::vector<double> curve_width, curve_ms;  // points of the fitted roofline over the same widths
};

struct CostView {
  std::vector<ContextCosts> contexts;  // ascending
  uint32_t widest = 0;
  double slowest_ms = 0;
  double fit_error = 0;    // mean of |residual| over all points
  double worst_error = 0;  // the largest |residual|
  uint64_t passes = 0;
};

CostView cost_view(const CostSnapshot& costs);

// Panels about the cost of the target's passes: the errors of predictions, and the roofline fitted to the measured
// costs.

/// The costs of the loaded models as CostView, computed once for each snapshot.
class ShownCosts {
 public:
  /// Null where nothing was measured, or where the shown rounds were not written by the loaded models.
  const CostView* of(const ViewModel& view);

 private:
  std::shared_ptr<const CostSnapshot> costs_;
  CostView view_;
};

class ResidualsPanel final : public Panel {
 public:
  const char* name() const override { return "Residuals"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  ShownCosts costs_;
};

class RooflinePanel final : public Panel {
 public:
  const char* name() const override { return "Roofline"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  ShownCosts costs_;
};

// The panel of what was measured and learnt for the loaded models on this device: the calibration with its progress,
// and how reliable the drafter's path probabilities are.

class CalibrationPanel final : public Panel {
 public:
  const char* name() const override { return "Calibration"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  StatisticsTrail trail_;
};

// The contents of the K/V cache at the shown round. Pure.

struct CacheView {
  uint64_t committed = 0;  // positions of text before the shown round
  uint64_t kept = 0;       // rows of its tree whose K/V was moved behind the text: the root and the accepted nodes
  uint64_t dropped = 0;    // all other rows of its tree
  uint64_t capacity = 0;   // positions; 0 where it is not known
  uint64_t slots = 0;      // most rows that a tree may have; 0 where it is not known
  // Device memory; 0 where it is not known. Of states, also where there are none.
  uint64_t cache_bytes = 0, tree_bytes = 0, state_bytes = 0;
  uint64_t used() const { return committed + kept; }
};

/// shown and model may be null; without a round, context_used positions are committed.
CacheView cache_view(const RoundRecord* shown, const ModelReady* model, uint64_t context_used);

// The panel of the K/V cache at the shown round: committed text, rows of the tree, and free room.

class KvPanel final : public Panel {
 public:
  const char* name() const override { return "KV"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app

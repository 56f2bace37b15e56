#pragma once
// The measured times of passes of one model on one device; kept in a file between launches.

#include <optional>
#include <vector>

#include "engine/speculation/cost_surface.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/roofline.h"

namespace canopy {

/// Milliseconds of the rest of a round (build, walk, commit) by its width.
struct OtherCost {
  uint32_t width = 1;
  double ms = 0;
  bool operator==(const OtherCost&) const = default;
};

/// The measured table, as a PassCost. Where nothing was measured the roofline tells, scaled to meet the table at its
/// edge. A table with neither answers with an Error(bad_input).
class CostTable : public PassCost {
 public:
  /// tile: see CostSurface.
  explicit CostTable(uint32_t tile = 1) : verify_(tile) {}

  // Each adds a measurement or replaces the one at the same place. Throw Error(bad_input) for a width of 0, and for
  // times that are not positive (of the rest of a round: negative), not finite or absurd.
  void set_verify(uint32_t width, uint32_t context, double ms);
  void set_draft(uint32_t backlog, uint32_t context, double ms);
  void set_other(uint32_t width, double ms);

  /// The model for passes that were not measured.
  void set_roofline(const Roofline& roofline) { roofline_ = roofline; }
  const std::optional<Roofline>& roofline() const { return roofline_; }

  double verify_ms(uint32_t width, uint32_t context) const override;
  /// A pass of one row where no draft was measured: a guess until the first round.
  double draft_ms(uint32_t backlog, uint32_t context) const override;
  /// 0 where nothing was measured; the nearest width's beyond what was.
  double other_ms(uint32_t width) const override;

  uint32_t tile() const { return verify_.tile(); }
  std::vector<CostPoint> verify_points() const { return verify_.points(); }  // rows are the width
  bool has_draft() const { return !draft_.empty(); }
  std::vector<CostPoint> draft_points() const { return draft_.points(); }  // rows are the backlog
  const std::vector<OtherCost>& other_points() const { return other_; }    // by width

 private:
  CostSurface verify_;
  CostSurface draft_;
  std::vector<OtherCost> other_;
  std::optional<Roofline> roofline_;
};

/// The roofline fitted to the verify times of the table, narrow passes counting most as in the paper; `bare` as it is
/// where the table holds too few.
Roofline calibrated_roofline(const Roofline& bare, const CostTable& table);

}  // namespace canopy

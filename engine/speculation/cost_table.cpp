#include "engine/speculation/cost_table.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/speculation/roofline_fit.h"

namespace canopy {

void CostTable::set_verify(uint32_t width, uint32_t context, double ms) {
  if (width == 0) throw bad_input("A measured pass has a width of 0 rows; at least 1 is needed.");
  verify_.set({width, context, ms});
}

void CostTable::set_draft(uint32_t backlog, uint32_t context, double ms) {
  draft_.set({backlog, context, ms});
}

void CostTable::set_other(uint32_t width, double ms) {
  if (width == 0 || !(ms >= 0) || !(ms <= CostSurface::max_ms)) {
    throw bad_input("The rest of a round of " + std::to_string(width) + " rows was measured as " + std::to_string(ms) +
                    " ms; at least 1 row and 0 to " + std::to_string(CostSurface::max_ms) + " ms are allowed.");
  }
  const auto at = std::lower_bound(other_.begin(), other_.end(), width,
                                   [](const OtherCost& known, uint32_t w) { return known.width < w; });
  if (at != other_.end() && at->width == width) {
    at->ms = ms;
  } else {
    other_.insert(at, {width, ms});
  }
}

double CostTable::verify_ms(uint32_t width, uint32_t context) const {
  if (verify_.empty() && roofline_) return 1e3 * roofline_->seconds(width, context);
  const uint32_t w = verify_.nearest_rows(width);
  const uint32_t c = verify_.nearest_context(context);
  if ((w == width && c == context) || !roofline_) return verify_.at(width, context);
  return verify_.at(w, c) * roofline_->seconds(width, context) / roofline_->seconds(w, c);
}

double CostTable::draft_ms(uint32_t backlog, uint32_t context) const {
  return draft_.empty() ? verify_ms(1, context) : draft_.at(backlog, context);
}

double CostTable::other_ms(uint32_t width) const {
  if (other_.empty()) return 0;
  const auto above = std::lower_bound(other_.begin(), other_.end(), width,
                                      [](const OtherCost& known, uint32_t w) { return known.width < w; });
  if (above == other_.end()) return other_.back().ms;
  if (above->width == width || above == other_.begin()) return above->ms;
  const OtherCost& below = *std::prev(above);
  const double t = static_cast<double>(width - below.width) / static_cast<double>(above->width - below.width);
  return below.ms + t * (above->ms - below.ms);
}

Roofline calibrated_roofline(const Roofline& bare, const CostTable& table) {
  std::vector<RooflinePoint> points;
  std::vector<uint32_t> widths;
  for (const CostPoint& p : table.verify_points()) {
    points.push_back({.memory_s = bare.memory_seconds(p.rows, p.context),
                      .compute_s = bare.compute_seconds(p.rows, p.context),
                      .measured_s = p.ms / 1e3});
    widths.push_back(p.rows);
  }
  if (points.size() < min_roofline_points) return bare.bare();
  const std::vector<double> sigmas = width_sigmas(widths, paper_sigma_scale);
  for (size_t i = 0; i < points.size(); ++i) points[i].sigma = sigmas[i];
  return bare.calibrated(fit_roofline(points).calibration);
}

}  // namespace canopy

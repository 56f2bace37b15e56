#include "engine/speculation/cost_surface.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"

namespace canopy {
namespace {

double mix(double a, double b, double t) {
  return a + t * (b - a);
}

double fraction(uint32_t low, uint32_t high, uint32_t value) {
  return static_cast<double>(value - low) / static_cast<double>(high - low);
}

}  // namespace

void CostSurface::set(const CostPoint& point) {
  if (!(point.ms > 0) || !(point.ms <= max_ms)) {
    throw bad_input("The time measured for " + std::to_string(point.rows) + " rows at context " +
                    std::to_string(point.context) + " is " + std::to_string(point.ms) +
                    " ms; more than 0 and at most " + std::to_string(max_ms) + " ms is allowed.");
  }
  curves_[point.context][point.rows] = point.ms;
  const auto reference = curves_.find(reference_context_);
  if (reference == curves_.end() || curves_[point.context].size() > reference->second.size()) {
    reference_context_ = point.context;
  }
}

std::vector<CostPoint> CostSurface::points() const {
  std::vector<CostPoint> result;
  for (const auto& [context, curve] : curves_) {
    for (const auto& [rows, ms] : curve) result.push_back({rows, context, ms});
  }
  return result;
}

uint32_t CostSurface::nearest_rows(uint32_t rows) const {
  if (empty()) return rows;
  return std::clamp(rows, reference().begin()->first, reference().rbegin()->first);
}

uint32_t CostSurface::nearest_context(uint32_t context) const {
  if (empty()) return context;
  return std::clamp(context, curves_.begin()->first, curves_.rbegin()->first);
}

// `rows` is within the curve's.
double CostSurface::between_rows(const Curve& curve, uint32_t rows) const {
  const auto above = curve.lower_bound(rows);
  if (above->first == rows) return above->second;
  const auto below = std::prev(above);
  const uint64_t padded = (uint64_t{rows} + tile_ - 1) / tile_ * tile_;
  const auto effective = static_cast<uint32_t>(std::min<uint64_t>(padded, above->first));
  const double ms = mix(below->second, above->second, fraction(below->first, above->first, effective));
  return std::max(ms, below->second);
}

// Milliseconds that the curve's context adds to the reference's time of a pass of `rows`: interpolated between the
// measured widths, in proportion to the rows beyond them.
double CostSurface::added_by(const Curve& curve, uint32_t rows) const {
  const auto added_at = [&](Curve::const_iterator known) {
    return known->second - between_rows(reference(), nearest_rows(known->first));
  };
  const auto above = curve.lower_bound(rows);
  if (above == curve.end()) {
    const auto last = std::prev(above);
    return added_at(last) * (last->first == 0 ? 1.0 : static_cast<double>(rows) / last->first);
  }
  if (above->first == rows || above == curve.begin()) return added_at(above);
  const auto below = std::prev(above);
  return mix(added_at(below), added_at(above), fraction(below->first, above->first, rows));
}

// Rows within the reference's, context within the measured ones.
double CostSurface::inside(uint32_t rows, uint32_t context) const {
  const double base = between_rows(reference(), rows);
  const auto added = [&](const auto& entry) {
    return entry.first == reference_context_ ? 0.0 : added_by(entry.second, rows);
  };
  const auto above = curves_.lower_bound(context);
  double more = added(*above);
  if (above->first != context) {
    const auto below = std::prev(above);
    more = mix(added(*below), more, fraction(below->first, above->first, context));
  }
  return std::max(base + more,
                  0.1 * base);  // noise in several measurements must not add up to a pass that costs nothing
}

double CostSurface::at(uint32_t rows, uint32_t context) const {
  if (empty()) throw bad_input("No pass was measured, so no time can be told.");
  const uint32_t r = nearest_rows(rows);
  const uint32_t c = nearest_context(context);
  double ms = inside(r, c);
  if (rows > r) {
    const uint32_t first = reference().begin()->first;
    const double slope = r > first ? std::max(0.0, ms - inside(first, c)) / (r - first) : 0.0;
    ms += slope * (rows - r);
  }
  const uint32_t first = curves_.begin()->first;
  if (context > c && c > first) {
    const double slope = std::max(0.0, inside(r, c) - inside(r, first)) / (c - first);
    ms += slope * (context - c) * (r > 0 ? static_cast<double>(rows) / r : 1.0);
  }
  return ms;
}

}  // namespace canopy

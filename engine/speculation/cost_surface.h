#pragma once
// Measured times of passes at some (rows, context), and interpolation between them.

#include <cstdint>
#include <map>
#include <vector>

namespace canopy {

/// One measured time.
struct CostPoint {
  uint32_t rows = 0;
  uint32_t context = 0;
  double ms = 0;
  bool operator==(const CostPoint&) const = default;
};

/// Many widths were measured at one context, a few at the others. A longer context adds attention only, whose time
/// grows linearly with rows and context, so the difference between two contexts is interpolated, while jumps between
/// neighbouring widths are taken from the context at which they were measured. Nothing is smoothed or made convex.
class CostSurface {
 public:
  /// A pass of any width takes as long as one of the next multiple of `tile`; 1: no such steps. Used between measured
  /// widths only.
  explicit CostSurface(uint32_t tile = 1) : tile_(tile < 1 ? 1 : tile) {}

  /// Adds a point, or replaces the one of the same rows and context. Throws Error(bad_input) unless 0 < ms <= max_ms.
  void set(const CostPoint& point);

  bool empty() const { return curves_.empty(); }
  uint32_t tile() const { return tile_; }
  std::vector<CostPoint> points() const;  // by context, then rows

  /// The nearest rows and context between measured ones; `rows` may be beyond those of a single context.
  uint32_t nearest_rows(uint32_t rows) const;
  uint32_t nearest_context(uint32_t context) const;

  /// Milliseconds: the measured time, or one between its neighbours, which by rows is not below that of fewer rows and
  /// by context is linear. Outside of what was measured it goes on at the mean slope, never falling. Positive. Throws
  /// Error(bad_input) when nothing is measured.
  double at(uint32_t rows, uint32_t context) const;

  static constexpr double max_ms = 1e7;  // nearly three hours

 private:
  using Curve = std::map<uint32_t, double>;  // ms by rows

  const Curve& reference() const { return curves_.at(reference_context_); }
  double between_rows(const Curve& curve, uint32_t rows) const;
  double added_by(const Curve& curve, uint32_t rows) const;
  double inside(uint32_t rows, uint32_t context) const;

  uint32_t tile_;
  std::map<uint32_t, Curve> curves_;  // by context
  uint32_t reference_context_ = 0;    // where most rows are measured
};

}  // namespace canopy

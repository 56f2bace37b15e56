#include "engine/client/cost_snapshot.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace canopy {

CostSnapshot cost_snapshot(const CostTable& table, const Roofline& bare) {
  CostSnapshot snapshot{table, calibrated_roofline(bare, table), {}, 0};
  snapshot.table.set_roofline(bare);
  double error = 0;
  for (const CostPoint& point : table.verify_points()) {
    MeasuredPass pass{point.rows, point.context, point.ms, 1000 * bare.seconds(point.rows, point.context),
                      1000 * snapshot.fitted.seconds(point.rows, point.context)};
    error += std::abs(pass.residual());
    snapshot.passes.push_back(pass);
  }
  if (!snapshot.passes.empty()) snapshot.fit_error = error / static_cast<double>(snapshot.passes.size());
  std::sort(snapshot.passes.begin(), snapshot.passes.end(), [](const MeasuredPass& a, const MeasuredPass& b) {
    return std::tie(a.context, a.width) < std::tie(b.context, b.width);
  });
  return snapshot;
}

}  // namespace canopy

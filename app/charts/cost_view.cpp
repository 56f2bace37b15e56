#include "app/charts/cost_view.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr uint32_t kCurvePoints = 64;

void add_curve(const Roofline& fitted, ContextCosts& costs) {
  const double from = costs.width.front(), to = costs.width.back();
  for (uint32_t i = 0; i <= kCurvePoints; ++i) {
    const double width = std::round(from + (to - from) * i / kCurvePoints);
    if (!costs.curve_width.empty() && costs.curve_width.back() == width) continue;
    costs.curve_width.push_back(width);
    costs.curve_ms.push_back(1000 * fitted.seconds(static_cast<uint32_t>(width), costs.context));
  }
}

}  // namespace

CostView cost_view(const CostSnapshot& costs) {
  CostView view;
  view.fit_error = costs.fit_error;
  view.passes = costs.passes.size();
  for (const MeasuredPass& pass : costs.passes) {
    if (view.contexts.empty() || view.contexts.back().context != pass.context)
      view.contexts.push_back(
          {.context = pass.context, .width = {}, .ms = {}, .residual = {}, .curve_width = {}, .curve_ms = {}});
    ContextCosts& here = view.contexts.back();
    here.width.push_back(pass.width);
    here.ms.push_back(pass.ms);
    here.residual.push_back(pass.residual());
    view.widest = std::max(view.widest, pass.width);
    view.slowest_ms = std::max(view.slowest_ms, pass.ms);
    view.worst_error = std::max(view.worst_error, std::abs(pass.residual()));
  }
  for (ContextCosts& each : view.contexts) add_curve(costs.fitted, each);
  return view;
}

}  // namespace canopy::app

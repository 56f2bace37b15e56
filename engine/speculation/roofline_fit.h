#pragma once
// Calibrates a roofline to measured passes: the paper's weighted least squares, solved so that it does not stall.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/roofline.h"

namespace canopy {

/// One measured pass beside the two bare times of the roofline.
struct RooflinePoint {
  double memory_s = 0;
  double compute_s = 0;
  double measured_s = 0;
  double sigma = 1;  // its residual is divided by this
};

struct RooflineFit {
  RooflineCalibration calibration;
  double weighted_ssr = 0;  // sum of ((predicted - measured) / sigma)^2, seconds squared
};

/// Points that a fit needs: as many as it has parameters.
constexpr size_t min_roofline_points = 4;

/// The calibration with the smallest weighted_ssr, all four values at least 0. Deterministic; a few milliseconds for
/// hundreds of points. A branch that no point is bound by is set as high as the points allow, its alpha at most 1.
/// Throws Error(bad_input) naming the point for fewer than min_roofline_points, and for values that are not finite,
/// negative bare times, or a measured time or sigma that is not positive.
RooflineFit fit_roofline(std::span<const RooflinePoint> points);

/// The paper's sigma by width: 1 at the narrowest, 1 + scale at the widest, linear between, divided by their mean.
/// Scale 0 gives 1 throughout.
std::vector<double> width_sigmas(std::span<const uint32_t> widths, double scale);

/// The scale that the paper's program fits with: narrow passes count most.
constexpr double paper_sigma_scale = 30;

}  // namespace canopy

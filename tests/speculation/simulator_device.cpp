#include "tests/speculation/simulator_device.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/compute/sampling.h"

namespace canopy::test {
namespace {

using Points = std::vector<std::pair<double, double>>;  // width, ms

/// Linear interpolation between measured widths, continued after the last.
std::function<double(uint32_t)> measured(Points points) {
  return [points = std::move(points)](uint32_t width) {
    size_t right = 1;
    while (right + 1 < points.size() && points[right].first < width) ++right;
    const auto [x0, y0] = points[right - 1];
    const auto [x1, y1] = points[right];
    return y0 + (y1 - y0) * (width - x0) / (x1 - x0);
  };
}

double roofline(uint32_t width) {
  // Weights are read once; from about 24 rows on the arithmetic takes longer.
  return std::max(10.0, 10.0 * width / 24) + 0.02 * width;
}

/// A kernel with tiles of 8 rows, and one with tiles of 32 that is slower for few rows.
double cliffs(uint32_t width) {
  if (width <= 8) return 10 + 0.05 * width;
  if (width <= 32) return 22 + 0.02 * width;
  return 29 * std::ceil(width / 32.0);
}

/// Widths 3, 5 and 6 have bad kernels, and whole tiles of 8 are cheaper than slightly narrower passes.
double non_monotone(uint32_t width) {
  const double base = 10 + 0.15 * width;
  if (width == 3 || width == 5 || width == 6) return 3.5 * base;
  return width > 8 && width % 8 != 0 ? 1.6 * base : base;
}

// docs/measurements/2026-11-21-lavapipe.md: medians of one run, wider passes of another scaled to it.
Points lavapipe() {
  constexpr double busier = 22.9 / 29.3;
  return {{1, 22.9},   {2, 31.9},          {3, 47.0},          {4, 54.1},           {5, 72.9},
          {6, 68.2},   {7, 79.6},          {8, 84.0},          {9, 96.4},           {10, 117.0},
          {11, 118.9}, {12, 116.6},        {13, 151.4},        {14, 153.9},         {15, 152.4},
          {16, 156.6}, {32, 434 * busier}, {64, 737 * busier}, {128, 1460 * busier}};
}

std::vector<DeviceSpec> made_up() {
  return {
      {.name = "linear", .verify = [](uint32_t w) { return 9 + 1.0 * w; }, .draft = 3, .per_feature = 0.05},
      {.name = "compute-bound", .verify = [](uint32_t w) { return 4 + 6.0 * w; }, .draft = 12, .per_feature = 0.2},
      {.name = "roofline", .verify = roofline, .draft = 2, .per_feature = 0.03, .per_position = 1e-4},
      {.name = "cliffs at 9, 33", .verify = cliffs, .draft = 2, .per_feature = 0.03},
      {.name = "non-monotone", .verify = non_monotone, .draft = 2.5, .per_feature = 0.03},
      {.name = "noisy", .verify = roofline, .draft = 2, .per_feature = 0.03, .noise = 0.15, .stalls = 0.005},
      {.name = "noisy linear",
       .verify = [](uint32_t w) { return 8 + 2.0 * w; },
       .draft = 4,
       .noise = 0.25,
       .stalls = 0.01},
      {.name = "drifting",
       .verify = roofline,
       .draft = 2,
       .per_feature = 0.03,
       .noise = 0.03,
       .drift = 0.5,
       .wide_drift = 1.0},
  };
}

std::vector<DeviceSpec> recorded() {
  return {
      // SmolLM2; a draft of 8 rows through 3 layers and the head computes as much as two passes of one row.
      {.name = "lavapipe",
       .verify = measured(lavapipe()),
       .draft = 45,
       .per_feature = 0.4,
       .other = 0.5,
       .block_size = 8,
       .noise = 0.08},
      // CUDA MMQ kernels with an 8B model in Q4_K_S: 7 ms for one row, 8.2/9.5/11.9/18.5 for 16/32/64/128.
      {.name = "RTX 4090, 8B",
       .verify = measured({{1, 7.0}, {16, 8.2}, {32, 9.5}, {64, 11.9}, {128, 18.5}}),
       .draft = 1.4,
       .per_feature = 0.01},
      // A mixture of experts: each row uses other experts, which must be read too.
      {.name = "M-series, 30B-A3B",
       .verify = measured({{1, 8.5}, {2, 13.5}, {3, 15.6}, {5, 20.7}, {8, 28.1}}),
       .draft = 2,
       .per_feature = 0.03},
      // The same on RDNA3: flat up to the last matrix-vector kernel, then a matrix kernel.
      {.name = "RX 7900 XTX, 30B-A3B",
       .verify = measured({{1, 5.9}, {8, 15.6}, {9, 35.3}, {32, 42}, {64, 50}}),
       .draft = 1.6,
       .per_feature = 0.02},
      // RDNA3.5: the head in q6_K takes 2.2 ms for most widths and 18.5 ms for 3, 5 and 6 rows; 24 ms for the rest.
      {.name = "Radeon 8060S, 8B",
       .verify = [](uint32_t w) { return 24 + 0.3 * w + (w == 3 || w == 5 || w == 6 ? 18.5 : 2.2); },
       .draft = 5,
       .per_feature = 0.05},
  };
}

}  // namespace

CalibratedCost::CalibratedCost(const DeviceSpec& spec) : spec_(spec) {
  for (uint32_t width = 1; width <= widest; ++width) verify_.push_back(spec.verify(width));
}

double CalibratedCost::verify_ms(uint32_t width, uint32_t context) const {
  return verify_.at(width - 1) * (1 + spec_.per_position * context);
}

double CalibratedCost::draft_ms(uint32_t backlog, uint32_t context) const {
  return spec_.draft * (1 + spec_.per_position * context) + spec_.per_feature * backlog;
}

double CalibratedCost::other_ms(uint32_t width) const {
  return spec_.other + spec_.other_per_row * (width - 1);
}

double VirtualDevice::factor(uint32_t position, uint32_t stage) const {
  const double progress = static_cast<double>(position) / tokens_;
  if (spec_.noise == 0 && spec_.stalls == 0) return 1 + spec_.drift * progress;
  const auto bits = philox4x32({position, stage, 0, 0}, {seed_, 1});
  const auto uniform = [&](int i) { return (bits[i] + 0.5) / 4294967296.0; };
  const double normal = std::sqrt(-2 * std::log(uniform(0))) * std::cos(2 * std::numbers::pi * uniform(1));
  const double stall = uniform(2) < spec_.stalls ? 5 : 1;
  // Has a mean of 1 whatever the noise.
  return std::exp(spec_.noise * normal - spec_.noise * spec_.noise / 2) * stall * (1 + spec_.drift * progress);
}

double VirtualDevice::verify_ms(uint32_t width, uint32_t position) const {
  const double progress = static_cast<double>(position) / tokens_;
  const double wide = 1 + spec_.wide_drift * progress * (1 - 1.0 / width);
  return mean_.verify_ms(width, position) * wide * factor(position, width);
}

double VirtualDevice::draft_ms(uint32_t backlog, uint32_t position) const {
  return mean_.draft_ms(backlog, position) * factor(position, 1u << 20);
}

double VirtualDevice::other_ms(uint32_t width, uint32_t) const {
  return mean_.other_ms(width);
}

CostTable VirtualDevice::calibrate() const {
  CostTable table;
  for (const uint32_t context : {0u, tokens_ / 2, tokens_}) {
    for (uint32_t width = 1; width <= 64; ++width) table.set_verify(width, context, mean_.verify_ms(width, context));
    for (const uint32_t backlog : {0u, 16u}) table.set_draft(backlog, context, mean_.draft_ms(backlog, context));
  }
  for (const uint32_t width : {1u, 16u, 64u}) table.set_other(width, mean_.other_ms(width));
  return table;
}

std::vector<DeviceSpec> simulated_devices() {
  std::vector<DeviceSpec> all = made_up();
  for (DeviceSpec& each : recorded()) all.push_back(std::move(each));
  return all;
}

}  // namespace canopy::test

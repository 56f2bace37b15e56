// The fit of the roofline, compared with bastion_fit.json, with data whose answer is known, and with a slow search.

#include "engine/speculation/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "tests/base/expect_error.h"
#include "tests/speculation/roofline_data.h"
#include "tests/speculation/smollm2_shape.h"

namespace canopy {
namespace {

using nlohmann::json;

double ssr_of(const std::vector<RooflinePoint>& points, const RooflineCalibration& c) {
  double sum = 0;
  for (const RooflinePoint& p : points) {
    const double error = (c.seconds(p.memory_s, p.compute_s) - p.measured_s) / p.sigma;
    sum += error * error;
  }
  return sum;
}

void expect_valid(const RooflineFit& fit, const std::vector<RooflinePoint>& points) {
  const RooflineCalibration& c = fit.calibration;
  for (const double value : {c.alpha_m, c.beta_m, c.alpha_c, c.beta_c}) {
    EXPECT_GE(value, 0);
    EXPECT_TRUE(std::isfinite(value));
  }
  EXPECT_DOUBLE_EQ(fit.weighted_ssr, ssr_of(points, c));
}

TEST(RooflineFit, AsGoodAsTheBestKnownOfEveryGoldenCase) {
  const json file = test::golden_json("bastion_fit.json");
  ASSERT_FALSE(file.at("tables").empty());
  for (const json& table : file.at("tables")) {
    const Roofline roofline = test::golden_roofline(table);
    std::vector<RooflinePoint> points;
    std::vector<uint32_t> widths;
    for (const json& row : table.at("aggregated")) {
      widths.push_back(row[0]);
      const auto context = row[1].get<uint32_t>();
      points.push_back({.memory_s = roofline.memory_seconds(widths.back(), context),
                        .compute_s = roofline.compute_seconds(widths.back(), context),
                        .measured_s = row[2].get<double>()});
    }
    const auto sigma_30 = table.at("sigma_30").get<std::vector<double>>();
    for (const json& golden : table.at("fits")) {
      const auto scale = golden.at("sigma_scale").get<double>();
      SCOPED_TRACE(table.at("name").get<std::string>() + ", sigma scale " + std::to_string(scale));
      const std::vector<double> sigmas = width_sigmas(widths, scale);
      for (size_t i = 0; i < points.size(); ++i) {
        EXPECT_NEAR(sigmas[i], scale == 0 ? 1.0 : sigma_30[i], 1e-12);
        points[i].sigma = sigmas[i];
      }
      const RooflineFit fit = fit_roofline(points);
      expect_valid(fit, points);
      const auto best_known = golden.at("best_known_weighted_ssr").get<double>();
      EXPECT_LE(fit.weighted_ssr, 1.001 * best_known);
      std::printf("%-20s sigma %2.0f: %.9f x the best known residual, %.3f x the published fit's\n",
                  table.at("name").get<std::string>().c_str(), scale, fit.weighted_ssr / best_known,
                  fit.weighted_ssr / golden.at("weighted_ssr").get<double>());
    }
  }
}

// Simulated passes of a device with this calibration, at widths 1, 2, 4 ... 512 and four contexts.
std::vector<RooflinePoint> simulated(const RooflineCalibration& truth, double noise, unsigned seed) {
  const Roofline roofline(test::smollm2_shape(), {.flops_per_second = 2e12, .bytes_per_second = 1e11});
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<RooflinePoint> points;
  for (uint32_t width = 1; width <= 512; width *= 2) {
    for (const uint32_t context : {64u, 512u, 2048u, 8192u}) {
      RooflinePoint p = {.memory_s = roofline.memory_seconds(width, context),
                         .compute_s = roofline.compute_seconds(width, context)};
      p.measured_s = truth.seconds(p.memory_s, p.compute_s) * std::max(0.1, 1 + normal(random));
      points.push_back(p);
    }
  }
  return points;
}

const std::vector<RooflineCalibration> truths = {{1.2, 0, 1.5, 0},     {1.1, 0.002, 2.5, 0.001}, {3, 0.01, 0.2, 0},
                                                 {0.2, 0, 8, 0.004},   {0, 0.05, 2, 0},          {1, 0.0001, 0, 0.01},
                                                 {1.5, 0.001, 1e-3, 0}};

TEST(RooflineFit, FindsTheDeviceBehindExactMeasurements) {
  for (const RooflineCalibration& truth : truths) {
    const auto points = simulated(truth, 0, 0);
    const RooflineFit fit = fit_roofline(points);
    expect_valid(fit, points);
    double sum = 0;
    for (const RooflinePoint& p : points) sum += p.measured_s * p.measured_s;
    EXPECT_LE(fit.weighted_ssr, 1e-12 * sum) << truth.alpha_m << ' ' << truth.beta_m << ' ' << truth.alpha_c;
  }
}

// The best of many random walks from random starts: slow, and independent of the method under test.
double slow_search(const std::vector<RooflinePoint>& points, const RooflineCalibration& scale, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  double best = std::numeric_limits<double>::infinity();
  for (int start = 0; start < 12; ++start) {
    const auto draw = [&] { return std::exp(3 * normal(random)); };
    RooflineCalibration at = {scale.alpha_m * draw(), scale.beta_m * draw(), scale.alpha_c * draw(),
                              scale.beta_c * draw()};
    double ssr = ssr_of(points, at);
    double step = 1;
    for (int i = 0; i < 6000; ++i) {
      const auto move = [&](double v, double unit) {
        return std::max(0.0, v + (uniform(random) < 0.5 ? step * normal(random) * std::max(v, 1e-3 * unit) : 0.0));
      };
      const RooflineCalibration next = {move(at.alpha_m, scale.alpha_m), move(at.beta_m, scale.beta_m),
                                        move(at.alpha_c, scale.alpha_c), move(at.beta_c, scale.beta_c)};
      const double next_ssr = ssr_of(points, next);
      if (next_ssr < ssr) {
        at = next;
        ssr = next_ssr;
        step *= 1.5;
      } else {
        step = std::max(1e-7, step * 0.98);
      }
    }
    best = std::min(best, ssr);
  }
  return best;
}

TEST(RooflineFit, NoRandomSearchFindsBetter) {
  unsigned seed = 1;
  double worst = 0;
  for (const double noise : {0.02, 0.3}) {
    for (const RooflineCalibration& truth : truths) {
      auto points = simulated(truth, noise, seed);
      for (RooflinePoint& p : points) p.sigma = seed % 2 == 0 ? 1 : p.measured_s;
      const RooflineFit fit = fit_roofline(points);
      expect_valid(fit, points);
      const double other = slow_search(points, {1, 0.01, 1, 0.01}, seed++);
      EXPECT_LE(fit.weighted_ssr, 1.0001 * other) << "noise " << noise << ", seed " << seed - 1;
      worst = std::max(worst, fit.weighted_ssr / other);
    }
  }
  std::printf("at most %.6f x the residual of a random search\n", worst);
}

TEST(RooflineFit, DoesNotDependOnUnitsOrOrder) {
  auto points = simulated(truths[1], 0.1, 5);
  const RooflineFit fit = fit_roofline(points);
  for (RooflinePoint& p : points) {
    p.measured_s *= 1e3;
    p.memory_s *= 1e6;
  }
  std::reverse(points.begin(), points.end());
  const RooflineFit other = fit_roofline(points);
  EXPECT_NEAR(other.weighted_ssr / 1e6 / fit.weighted_ssr, 1, 1e-6);
  EXPECT_NEAR(other.calibration.alpha_c / 1e3 / fit.calibration.alpha_c, 1, 1e-3);
}

TEST(RooflineFit, ABranchThatNoPointIsBoundByIsRaisedToMeetThem) {
  // Up to here reading takes all the time. The fit must not conclude that computing costs nothing in wider passes.
  std::vector<RooflinePoint> points;
  for (int i = 1; i <= 8; ++i)
    points.push_back({.memory_s = 1 + 0.01 * i, .compute_s = 0.02 * i, .measured_s = 1 + 0.01 * i});
  const RooflineFit fit = fit_roofline(points);
  EXPECT_NEAR(fit.calibration.seconds(1.05, 0.1), 1.05, 1e-9);
  EXPECT_DOUBLE_EQ(fit.calibration.alpha_c, 1);
  EXPECT_DOUBLE_EQ(fit.calibration.beta_c, 0);
  EXPECT_NEAR(fit.calibration.seconds(1.1, 100), 100, 1e-9);
}

TEST(RooflineFit, AnswersForPointsThatAreAllTheSame) {
  const std::vector<RooflinePoint> points(6, {.memory_s = 2, .compute_s = 1, .measured_s = 3});
  const RooflineFit fit = fit_roofline(points);
  EXPECT_NEAR(fit.calibration.seconds(2, 1), 3, 1e-9);
}

TEST(RooflineFit, RefusesBadData) {
  const RooflinePoint good = {.memory_s = 1, .compute_s = 1, .measured_s = 1};
  test::expect_error("0 measured passes; at least 4", [] { fit_roofline({}); });
  test::expect_error("3 measured passes", [&] { fit_roofline(std::vector<RooflinePoint>(3, good)); });
  const auto expect_refused = [&](const char* message, RooflinePoint bad) {
    std::vector<RooflinePoint> points(5, good);
    points[2] = bad;
    test::expect_error(message, [&] { fit_roofline(points); });
  };
  const double nan = std::nan("");
  expect_refused("Point 2 of the roofline's fit has the measured time 0", {1, 1, 0, 1});
  expect_refused("measured time -1", {1, 1, -1, 1});
  expect_refused("measured time nan", {1, 1, nan, 1});
  expect_refused("measured time inf", {1, 1, std::numeric_limits<double>::infinity(), 1});
  expect_refused("memory time -1", {-1, 1, 1, 1});
  expect_refused("memory time nan", {nan, 1, 1, 1});
  expect_refused("compute time -1", {1, -1, 1, 1});
  expect_refused("sigma 0", {1, 1, 1, 0});
  expect_refused("sigma nan", {1, 1, 1, nan});
  test::expect_error("bare times are all 0", [&] {
    fit_roofline(std::vector<RooflinePoint>(5, {.memory_s = 0, .compute_s = 1, .measured_s = 1}));
  });
}

}  // namespace
}  // namespace canopy

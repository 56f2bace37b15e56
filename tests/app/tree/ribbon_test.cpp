// The shape of limbs: smooth at every length, and soft at the ends where it is asked for.

#include "app/tree/limb_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "app/state/theme.h"

namespace canopy::test {
namespace {

using app::Ribbon;
using app::Spine;
using app::SpinePoint;
using app::TreePoint;

TreePoint edge(const SpinePoint& point, float side) {
  return {point.at.x + point.across.x * point.half * side, point.at.y + point.across.y * point.half * side};
}

float from_line(TreePoint p, TreePoint a, TreePoint b) {
  const float dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
  const float t = square < 1e-6f ? 0 : std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / square, 0.0f, 1.0f);
  return std::hypot(p.x - a.x - dx * t, p.y - a.y - dy * t);
}

/// How far the drawn outer edges are from those of the curve, in pixels.
float error_of(const Ribbon& ribbon) {
  const Spine spine = app::spine_of(ribbon);
  float worst = 0;
  for (const float side : {-1.0f, 1.0f}) {
    for (int i = 0; i <= 2000; ++i) {
      const float v = static_cast<float>(i) / 2000, u = v * v * (3 - 2 * v);
      const TreePoint p = edge(app::on_curve(ribbon, u), side);
      float least = 1e9f;
      for (uint32_t k = 1; k < spine.count; ++k)
        least = std::min(least, from_line(p, edge(spine.point[k - 1], side), edge(spine.point[k], side)));
      worst = std::max(worst, least);
    }
  }
  return worst;
}

// From short twigs to limbs across a window of 2560 x 1440 at 200 %.
TEST(Ribbon, HasNoCornersAtAnyLength) {
  uint32_t most = 0;
  for (const float run : {30.0f, 60.0f, 120.0f, 240.0f})
    for (const float rise : {0.0f, 12.0f, 90.0f, 300.0f, 600.0f, 1200.0f})
      for (const auto& [begin, end] : {std::pair(1.0f, 1.0f), std::pair(6.0f, 9.0f), std::pair(56.0f, 40.0f)}) {
        const Ribbon ribbon = {0, {20, 100}, {20 + run, 100 + rise}, begin, end};
        EXPECT_LT(error_of(ribbon), 0.7f) << run << " x " << rise << ", " << begin << " to " << end;
        most = std::max(most, app::spine_of(ribbon).count);
      }
  EXPECT_LE(most, Spine::most_pieces + 2);
}

TEST(Ribbon, HasPiecesByItsLengthAndBend) {
  const auto pieces = [](float run, float rise, float thick) {
    return app::spine_of({0, {0, 0}, {run, rise}, thick, thick}).count - 1;
  };
  EXPECT_EQ(app::spine_of({0, {50, 0}, {200, 0}, 4, 4}).count, 2u) << "with the level piece before it";
  EXPECT_EQ(pieces(200, 0, 10), 1u) << "a level limb is one piece";
  EXPECT_LT(pieces(60, 20, 2), 8u) << "a short one needs few";
  EXPECT_GT(pieces(150, 800, 20), 1.4f * static_cast<float>(pieces(75, 200, 10)));
  EXPECT_GT(pieces(75, 200, 20), pieces(75, 200, 4));
}

TEST(Ribbon, EndsLevel) {
  const Spine spine = app::spine_of({0, {40, 10}, {90, 400}, 20, 12});
  for (const uint32_t i : {0u, 1u, spine.count - 1}) EXPECT_NEAR(spine.point[i].across.y, 1, 1e-4f) << i;
}

// First downward and then back; nowhere sharper than the curve itself, 6 rise / (1.5 run)^2 at its ends.
TEST(Ribbon, KnowsHowItBends) {
  const Ribbon ribbon = {0, {40, 10}, {140, 160}, 12, 12};
  const Spine spine = app::spine_of(ribbon);
  const float sharpest = 6 * 150.0f / (150.0f * 150);
  EXPECT_NEAR(app::bend_at(spine, 1), sharpest, sharpest * 0.25f);
  EXPECT_NEAR(app::bend_at(spine, spine.count - 1), -sharpest, sharpest * 0.25f);
  const Spine level = app::spine_of({0, {40, 10}, {140, 10}, 12, 12});
  EXPECT_EQ(app::bend_at(level, 0), 0);
  EXPECT_EQ(app::bend_at(level, level.count - 1), 0);
}

TEST(Ribbon, FadesOutAtBothEnds) {
  for (const float reached : {1.0f, 0.6f}) {
    const Spine spine = app::spine_of({0, {40, 10}, {140, 200}, 20, 12}, reached, 12);
    EXPECT_EQ(spine.point[0].alpha, 0);
    EXPECT_NEAR(spine.point[spine.count - 1].alpha, 0, 1e-3f);
    float way = 0;
    bool full = false;
    for (uint32_t i = 1; i < spine.count; ++i) {
      const TreePoint a = spine.point[i - 1].at, b = spine.point[i].at;
      const float step = std::hypot(b.x - a.x, b.y - a.y);
      way += step;
      EXPECT_LE(std::abs(spine.point[i].alpha - spine.point[i - 1].alpha), step / 12 + 1e-3f) << "no sudden end";
      full = full || spine.point[i].alpha > 0.999f;
    }
    EXPECT_TRUE(full) << "its middle is as bright as ever";
    EXPECT_GT(way, 50);
  }
  const Spine short_one = app::spine_of({0, {0, 10}, {10, 10}, 8, 8}, 1, 12);
  for (uint32_t i = 0; i < short_one.count; ++i) EXPECT_LT(short_one.point[i].alpha, 0.5f);
}

// A faint colour that is faded becomes fainter, not as strong as the fading says.
TEST(Ribbon, FadingMultipliesAlpha) {
  const app::Colour faint = app::with_alpha(0xFFF0A050, 0.2f);
  EXPECT_NEAR(static_cast<double>(app::faded(faint, 0.5f) >> 24), 0.1 * 255, 1.0);
  EXPECT_EQ(app::faded(faint, 0.5f) & 0xFFFFFFu, faint & 0xFFFFFFu);
  EXPECT_EQ(app::faded(faint, 1.0f), faint);
  EXPECT_EQ(app::faded(faint, 0.0f) >> 24, 0u);
}

}  // namespace
}  // namespace canopy::test

// The measured cost table: its values for passes that were measured and for others.

#include "engine/speculation/pass_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/base/expect_error.h"
#include "tests/speculation/smollm2_shape.h"

namespace canopy {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinite = std::numeric_limits<double>::infinity();

// A device with cliffs at widths 9 and 33, whose attention takes 1 microsecond for each row and 64 positions.
double cliff_ms(uint32_t width, uint32_t context) {
  const double products = width < 9 ? 10 + 2 * width : width < 33 ? 22 + 0.1 * width : 60;
  return products + 1e-3 * width * context / 64.0;
}

CostTable measured() {
  CostTable table(16);
  for (uint32_t width = 1; width <= 64; ++width) table.set_verify(width, 512, cliff_ms(width, 512));
  for (uint32_t width = 80; width <= 128; width += 16) table.set_verify(width, 512, cliff_ms(width, 512));
  for (const uint32_t context : {64u, 2048u, 8192u}) {
    for (const uint32_t width : {1u, 4u, 16u, 64u}) table.set_verify(width, context, cliff_ms(width, context));
  }
  return table;
}

Roofline roofline() {
  ModelShape shape = test::smollm2_shape();
  shape.weight_bytes = 0.625;
  return {shape, {.flops_per_second = 1e11, .bytes_per_second = 1e10}};
}

TEST(CostTable, GivesBackWhatWasMeasured) {
  const CostTable table = measured();
  ASSERT_EQ(table.verify_points().size(), 68u + 12u);
  for (const CostPoint& p : table.verify_points()) {
    EXPECT_NEAR(table.verify_ms(p.rows, p.context), cliff_ms(p.rows, p.context), 1e-9) << p.rows << ' ' << p.context;
  }
  CostTable again = table;
  again.set_verify(3, 512, 99);
  EXPECT_DOUBLE_EQ(again.verify_ms(3, 512), 99);
  EXPECT_EQ(again.verify_points().size(), table.verify_points().size());
}

TEST(CostTable, KeepsCliffsAtEveryContext) {
  // At the other contexts only four widths were measured; the cliffs are known from the context with all widths.
  const CostTable table = measured();
  for (const uint32_t context : {64u, 100u, 512u, 1000u, 2048u, 5000u, 8192u}) {
    for (uint32_t width = 1; width <= 64; ++width) {
      EXPECT_NEAR(table.verify_ms(width, context), cliff_ms(width, context), 1e-6) << width << ' ' << context;
    }
  }
}

TEST(CostTable, APassBetweenTwoTilesCostsTheNextTile) {
  CostTable table(16);
  table.set_verify(1, 100, 10);
  table.set_verify(64, 100, 40);
  table.set_verify(96, 100, 60);
  EXPECT_DOUBLE_EQ(table.verify_ms(65, 100), 50);
  EXPECT_DOUBLE_EQ(table.verify_ms(80, 100), 50);
  EXPECT_DOUBLE_EQ(table.verify_ms(81, 100), 60);
  CostTable smooth(1);
  for (const CostPoint& p : table.verify_points()) smooth.set_verify(p.rows, p.context, p.ms);
  EXPECT_DOUBLE_EQ(smooth.verify_ms(72, 100), 45);
}

TEST(CostTable, APassBetweenTwoIsNotBelowTheNarrower) {
  CostTable table;
  table.set_verify(8, 100, 80);
  table.set_verify(16, 100, 30);  // another kernel, so this is really faster
  for (uint32_t width = 9; width < 16; ++width) EXPECT_DOUBLE_EQ(table.verify_ms(width, 100), 80);
  EXPECT_DOUBLE_EQ(table.verify_ms(16, 100), 30);
}

TEST(CostTable, BeyondItsEdgesTheRooflineGoesOnFromThem) {
  CostTable table = measured();
  const Roofline model = roofline();
  table.set_roofline(model);
  EXPECT_NEAR(table.verify_ms(256, 512), cliff_ms(128, 512) * model.seconds(256, 512) / model.seconds(128, 512), 1e-9);
  EXPECT_NEAR(table.verify_ms(4, 32768), cliff_ms(4, 8192) * model.seconds(4, 32768) / model.seconds(4, 8192), 1e-9);
  EXPECT_NEAR(table.verify_ms(4, 0), cliff_ms(4, 64) * model.seconds(4, 0) / model.seconds(4, 64), 1e-9);
  EXPECT_GT(table.verify_ms(129, 512), table.verify_ms(128, 512));
  EXPECT_LT(table.verify_ms(129, 512), 1.02 * table.verify_ms(128, 512));
}

TEST(CostTable, WithoutARooflineItGoesOnAtItsMeanSlope) {
  const CostTable table = measured();
  const double slope = (cliff_ms(128, 512) - cliff_ms(1, 512)) / 127;
  EXPECT_NEAR(table.verify_ms(256, 512), cliff_ms(128, 512) + 128 * slope, 1e-9);
  EXPECT_NEAR(table.verify_ms(4, 16384), cliff_ms(4, 16384), 1e-9);
  EXPECT_NEAR(table.verify_ms(4, 0), cliff_ms(4, 64), 1e-9);
}

TEST(CostTable, AnswersFromAnyMeasurementWithPositiveTimes) {
  const std::vector<std::function<void(CostTable&)>> steps = {
      [](CostTable& t) { t.set_verify(5, 100, 3); },    [](CostTable& t) { t.set_verify(2, 4000, 1e-3); },
      [](CostTable& t) { t.set_verify(64, 100, 0.5); }, [](CostTable& t) { t.set_verify(64, 4000, 1e-4); },
      [](CostTable& t) { t.set_verify(1, 50, 1e6); },
  };
  for (const bool with_roofline : {false, true}) {
    CostTable table(8);
    if (with_roofline) table.set_roofline(roofline());
    for (const auto& step : steps) {
      step(table);
      for (const uint32_t width : {1u, 2u, 3u, 5u, 33u, 64u, 65u, 1025u}) {
        for (const uint32_t context : {0u, 50u, 99u, 100u, 2000u, 4000u, 100000u}) {
          const double ms = table.verify_ms(width, context);
          EXPECT_TRUE(std::isfinite(ms) && ms > 0) << ms << " at " << width << ", " << context;
        }
      }
    }
  }
}

TEST(CostTable, AnEmptyTableIsTheRoofline) {
  CostTable table;
  test::expect_error("No pass was measured", [&] { table.verify_ms(1, 1); });
  table.set_roofline(roofline());
  EXPECT_DOUBLE_EQ(table.verify_ms(7, 300), 1e3 * roofline().seconds(7, 300));
  EXPECT_DOUBLE_EQ(table.draft_ms(1, 300), table.verify_ms(1, 300));
  EXPECT_DOUBLE_EQ(table.other_ms(9), 0);
}

TEST(CostTable, DraftsByBacklogAndContext) {
  CostTable table;
  const auto draft = [](uint32_t backlog, uint32_t context) { return 5 + 0.25 * backlog + 1e-3 * context; };
  for (const uint32_t backlog : {1u, 8u, 32u}) table.set_draft(backlog, 512, draft(backlog, 512));
  for (const uint32_t context : {128u, 2048u}) table.set_draft(1, context, draft(1, context));
  for (const uint32_t backlog : {1u, 3u, 8u, 20u, 32u}) {
    EXPECT_NEAR(table.draft_ms(backlog, 512), draft(backlog, 512), 1e-9);
  }
  EXPECT_NEAR(table.draft_ms(1, 1000), draft(1, 1000), 1e-9);
  // A long stretch of plain decoding before, all of which must be injected.
  EXPECT_GT(table.draft_ms(500, 512), draft(400, 512));
}

TEST(CostTable, TheRestOfARoundByWidth) {
  CostTable table;
  table.set_other(64, 1.0);
  table.set_other(1, 0.1);
  table.set_other(16, 0.4);
  EXPECT_DOUBLE_EQ(table.other_ms(1), 0.1);
  EXPECT_DOUBLE_EQ(table.other_ms(16), 0.4);
  EXPECT_DOUBLE_EQ(table.other_ms(40), 0.7);
  EXPECT_DOUBLE_EQ(table.other_ms(500), 1.0);
  table.set_other(16, 0);
  EXPECT_DOUBLE_EQ(table.other_ms(16), 0);
  EXPECT_EQ(table.other_points().size(), 3u);
}

TEST(CostTable, RefusesTimesThatCannotBe) {
  CostTable table;
  for (const double bad : {0.0, -1.0, nan, infinite, 1e8}) {
    test::expect_error("time measured for 3 rows at context 7", [&] { table.set_verify(3, 7, bad); });
    test::expect_error("time measured for 3 rows at context 7", [&] { table.set_draft(3, 7, bad); });
  }
  for (const double bad : {-1.0, nan, infinite, 1e8}) {
    test::expect_error("rest of a pass of 3 rows", [&] { table.set_other(3, bad); });
  }
  test::expect_error("width of 0 rows", [&] { table.set_verify(0, 1, 1); });
  test::expect_error("at least 1 row", [&] { table.set_other(0, 1); });
  EXPECT_TRUE(table.verify_points().empty() && table.draft_points().empty() && table.other_points().empty());
}

TEST(CostTable, TheRooflineFittedToATableFollowsIt) {
  const Roofline bare = roofline();
  const Roofline device = bare.calibrated({.alpha_m = 1.4, .beta_m = 0.002, .alpha_c = 1.8, .beta_c = 0.001});
  CostTable table;
  EXPECT_EQ(calibrated_roofline(bare, table).calibration().alpha_m, 1);  // nothing to fit, so it stays uncalibrated
  for (const uint32_t context : {64u, 512u, 4096u}) {
    for (uint32_t width = 1; width <= 256; width *= 2) {
      table.set_verify(width, context, 1e3 * device.seconds(width, context));
    }
  }
  const Roofline fitted = calibrated_roofline(bare, table);
  for (const uint32_t width : {1u, 3u, 30u, 100u, 512u}) {
    EXPECT_NEAR(fitted.seconds(width, 1000) / device.seconds(width, 1000), 1, 1e-4);
  }
}

}  // namespace
}  // namespace canopy

// The snapshots of costs and of learnt values that front ends are given.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/session/engine_client.h"

namespace canopy::test {
namespace {

Roofline small_device() {
  ModelShape shape;
  shape.layers = 4;
  shape.hidden = 256;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 64;
  shape.ffn = 512;
  shape.vocab = 1000;
  return Roofline(shape, {1e9, 1e9});
}

TEST(CostSnapshot, SetsEachMeasuredPassBesideTheFittedRoofline) {
  // A device that takes three times as long as the counted work says, and 0.1 ms more.
  const Roofline bare = small_device();
  const RooflineCalibration truth{.alpha_m = 3, .beta_m = 1e-4, .alpha_c = 3, .beta_c = 1e-4};
  CostTable table(16);
  for (const uint32_t context : {64u, 1024u}) {
    for (uint32_t width = 1; width <= 64; width *= 2) {
      table.set_verify(width, context, 1000 * bare.calibrated(truth).seconds(width, context));
    }
  }
  table.set_draft(1, 64, 2.0);
  const CostSnapshot snapshot = cost_snapshot(table, bare);
  ASSERT_EQ(snapshot.passes.size(), 14u);
  for (size_t i = 0; i < snapshot.passes.size(); ++i) {
    const MeasuredPass& pass = snapshot.passes[i];
    EXPECT_EQ(pass.context, i < 7 ? 64u : 1024u);
    EXPECT_EQ(pass.width, 1u << (i % 7));
    EXPECT_EQ(pass.ms, table.verify_ms(pass.width, pass.context));
    EXPECT_NEAR(pass.residual(), 0, 0.02);
  }
  EXPECT_LT(snapshot.fit_error, 0.02);
  EXPECT_GT(snapshot.table.verify_ms(100, 5000), 0.0);  // beyond what was measured, the roofline
  EXPECT_EQ(snapshot.table.draft_points().size(), 1u);

  table.set_verify(8, 64, 2 * table.verify_ms(8, 64));  // one that is off the fitted line
  EXPECT_GT(cost_snapshot(table, bare).fit_error, snapshot.fit_error + 0.01);
}

TEST(LearntSnapshot, OfAControllerThatSawNothingSaysThatTheDrafterIsBelieved) {
  const LearntSnapshot snapshot = learnt_snapshot(Controller(ControllerOptions(), 8), 8);
  EXPECT_EQ(snapshot.drafts, 0u);
  ASSERT_EQ(snapshot.depths.size(), 7u);
  for (const DepthLearnt& depth : snapshot.depths) {
    EXPECT_EQ(depth.calibration.scale, 1.0);
    EXPECT_EQ(depth.calibration.shift, 0.0);
    EXPECT_TRUE(depth.reliability.empty());
  }
  EXPECT_TRUE(snapshot.tree.empty());
  EXPECT_EQ(snapshot.promises.drafts(), 0u);
}

}  // namespace
}  // namespace canopy::test

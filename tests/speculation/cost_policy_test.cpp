// What each policy predicts, and what it learns from observed passes.

#include "engine/speculation/pass_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/speculation/roofline.h"
#include "tests/base/expect_error.h"

namespace canopy {
namespace {

constexpr std::array all_policies = {CostPolicy::static_roofline, CostPolicy::ema, CostPolicy::ema_calib,
                                     CostPolicy::measured, CostPolicy::paper};

Roofline bare_roofline() {
  ModelShape shape;
  shape.layers = 36;
  shape.hidden = 2560;
  shape.query_heads = 32;
  shape.kv_heads = 8;
  shape.head_dim = 128;
  shape.ffn = 9728;
  shape.vocab = 151936;
  return {shape, {.flops_per_second = 1e13, .bytes_per_second = 5e11}};
}

// A device twice as slow as its roofline, with a cliff at width 9 that a roofline cannot describe.
double device_ms(uint32_t width, uint32_t context) {
  return 2e3 * bare_roofline().seconds(width, context) + (width >= 9 ? 15 : 0);
}

CostTable measured_table() {
  CostTable table;
  for (const uint32_t context : {64u, 1024u, 4096u}) {
    for (uint32_t width = 1; width <= 32; ++width) table.set_verify(width, context, device_ms(width, context));
  }
  table.set_draft(1, 1024, 8);
  table.set_other(1, 0.5);
  return table;
}

double bare_ms(uint32_t width, uint32_t context) {
  return 1e3 * bare_roofline().seconds(width, context);
}

double fitted_ms(uint32_t width, uint32_t context) {
  return 1e3 * calibrated_roofline(bare_roofline(), measured_table()).seconds(width, context);
}

TEST(CostPolicy, NamesAreReadBack) {
  for (const CostPolicy policy : all_policies) EXPECT_EQ(cost_policy_of(to_string(policy)), policy);
  EXPECT_EQ(to_string(CostPolicy::ema_calib), "ema+calib");
  EXPECT_EQ(to_string(CostPolicy::static_roofline), "static");
  EXPECT_FALSE(cost_policy_of("best"));
  EXPECT_FALSE(cost_policy_of(""));
}

TEST(CostPolicy, EachStartsFromItsOwnModel) {
  for (const uint32_t width : {1u, 8u, 9u, 32u, 100u}) {
    for (const CostPolicy policy : {CostPolicy::static_roofline, CostPolicy::ema_calib, CostPolicy::paper}) {
      EXPECT_DOUBLE_EQ(make_cost(policy, bare_roofline(), measured_table())->verify_ms(width, 1024),
                       fitted_ms(width, 1024));
    }
    EXPECT_DOUBLE_EQ(make_cost(CostPolicy::ema, bare_roofline(), measured_table())->verify_ms(width, 1024),
                     bare_ms(width, 1024));
    if (width > 32) continue;
    EXPECT_NEAR(make_cost(CostPolicy::measured, bare_roofline(), measured_table())->verify_ms(width, 1024),
                device_ms(width, 1024), 1e-9);
  }
}

TEST(CostPolicy, StaticLearnsNothingOfPasses) {
  for (const CostPolicy policy : {CostPolicy::static_roofline, CostPolicy::paper}) {
    const auto cost = make_cost(policy, bare_roofline(), measured_table());
    const double before = cost->verify_ms(4, 1024);
    for (int i = 0; i < 50; ++i) cost->observe_verify(4, 1024, 10 * before);
    EXPECT_DOUBLE_EQ(cost->verify_ms(4, 1024), before);
  }
}

TEST(CostPolicy, TheEmaPoliciesHaveOneBias) {
  // c <- (1 - a) c + a observed / predicted, from c = 1, the same for every width
  for (const CostPolicy policy : {CostPolicy::ema, CostPolicy::ema_calib}) {
    const auto cost = make_cost(policy, bare_roofline(), measured_table(), {.alpha = 0.25});
    const auto model = policy == CostPolicy::ema ? bare_ms : fitted_ms;
    double bias = 1;
    for (const double observed : {1.0, 3.0, 2.0, 0.5}) {
      cost->observe_verify(16, 512, observed * model(16, 512));
      bias = 0.75 * bias + 0.25 * observed;
      EXPECT_NEAR(cost->verify_ms(16, 512), bias * model(16, 512), 1e-9);
      EXPECT_NEAR(cost->verify_ms(1, 4000), bias * model(1, 4000), 1e-9);
    }
  }
}

TEST(CostPolicy, MeasuredLearnsByWidth) {
  const auto cost = make_cost(CostPolicy::measured, bare_roofline(), measured_table());
  for (int i = 0; i < 40; ++i) {
    cost->observe_verify(1, 1024, device_ms(1, 1024));
    cost->observe_verify(16, 1024, 1.3 * device_ms(16, 1024));
  }
  EXPECT_NEAR(cost->verify_ms(1, 1024) / device_ms(1, 1024), 1, 0.02);
  EXPECT_NEAR(cost->verify_ms(16, 1024) / device_ms(16, 1024), 1.3, 0.03);
  EXPECT_NEAR(cost->verify_ms(12, 64) / device_ms(12, 64), 1.3, 0.03);
}

TEST(CostPolicy, WhatWasObservedRefreshesTheTable) {
  const auto cost = make_cost(CostPolicy::measured, bare_roofline(), measured_table());
  EXPECT_FALSE(cost->refreshed_table()) << "nothing was observed yet";
  for (int i = 0; i < 60; ++i) {
    cost->observe_verify(4, 1024, 1.5 * device_ms(4, 1024));
    cost->observe_draft(1, 1024, 12);
    cost->observe_other(8, 2);
  }
  const auto table = cost->refreshed_table();
  ASSERT_TRUE(table);
  EXPECT_EQ(table->verify_points().size(), measured_table().verify_points().size());
  EXPECT_NEAR(table->verify_ms(4, 1024) / device_ms(4, 1024), 1.5, 0.03);
  EXPECT_NEAR(table->verify_ms(4, 1024), cost->verify_ms(4, 1024), 1e-9);
  EXPECT_NEAR(table->draft_ms(1, 1024), 12, 0.2);
  EXPECT_NEAR(table->other_ms(8), 2, 0.1);
  // A session that starts from this table predicts the same.
  EXPECT_NEAR(make_cost(CostPolicy::measured, bare_roofline(), *table)->verify_ms(9, 64), cost->verify_ms(9, 64), 1e-9);
  // The roofline's policies leave the table as it was.
  const auto ema = make_cost(CostPolicy::ema, bare_roofline(), measured_table());
  ema->observe_verify(4, 1024, 10);
  EXPECT_FALSE(ema->refreshed_table());
}

TEST(CostPolicy, AllLearnTheDraftAndTheRestOfARound) {
  for (const CostPolicy policy : all_policies) {
    const auto cost = make_cost(policy, bare_roofline(), measured_table());
    EXPECT_DOUBLE_EQ(cost->draft_ms(1, 1024), 8);
    EXPECT_DOUBLE_EQ(cost->other_ms(1), 0.5);
    for (int i = 0; i < 60; ++i) {
      cost->observe_draft(1, 1024, 10);
      cost->observe_other(1, 0.8);
      cost->observe_other(30, 3);
    }
    EXPECT_NEAR(cost->draft_ms(1, 1024), 10, 0.1);
    EXPECT_NEAR(cost->other_ms(1), 0.8, 0.02);
    EXPECT_NEAR(cost->other_ms(32), 3, 0.02);
    cost->observe_other(1, 1e6);  // as after a laptop has slept
    EXPECT_LT(cost->other_ms(1), 1.1);
  }
}

TEST(CostPolicy, EveryPolicyAnswersWithNothingMeasured) {
  for (const CostPolicy policy : all_policies) {
    const auto cost = make_cost(policy, bare_roofline(), CostTable());
    EXPECT_DOUBLE_EQ(cost->verify_ms(7, 300), bare_ms(7, 300)) << to_string(policy);
    EXPECT_GT(cost->draft_ms(1, 300), 0);
    EXPECT_DOUBLE_EQ(cost->other_ms(7), 0);
    cost->observe_draft(1, 300, 0.1);  // far from the guess, so it replaces the guess
    EXPECT_DOUBLE_EQ(cost->draft_ms(1, 300), 0.1);
    EXPECT_FALSE(cost->refreshed_table());
  }
}

// The first draft may take a hundred times as long as later ones, as caches are cold.
TEST(CostPolicy, AFirstDraftFarFromTheOthersIsForgotten) {
  for (const CostPolicy policy : all_policies) {
    for (const double first : {2000.0, 0.01}) {
      const auto cost = make_cost(policy, bare_roofline(), CostTable());
      cost->observe_draft(1, 300, first);
      for (int i = 0; i < 3; ++i) cost->observe_draft(1, 300, 10);
      EXPECT_NEAR(cost->draft_ms(1, 300), 10, 0.5) << to_string(policy) << ", first " << first;
      for (int i = 0; i < 40; ++i) cost->observe_draft(1, 300, 14);
      EXPECT_NEAR(cost->draft_ms(1, 300), 14, 0.5) << "and what changes later is followed";
    }
  }
}

TEST(CostPolicy, NoObservationMakesACostUnusable) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const CostPolicy policy : all_policies) {
    const auto cost = make_cost(policy, bare_roofline(), measured_table());
    const double verify = cost->verify_ms(8, 1024), draft = cost->draft_ms(1, 1024), other = cost->other_ms(1);
    for (const double bad : {0.0, -1.0, std::nan(""), infinite, -infinite}) {
      cost->observe_verify(8, 1024, bad);
      cost->observe_verify(0, 1024, 5);
      cost->observe_draft(1, 1024, bad);
      if (bad != 0) cost->observe_other(1, bad);
      cost->observe_other(0, 5);
    }
    EXPECT_DOUBLE_EQ(cost->verify_ms(8, 1024), verify) << to_string(policy);
    EXPECT_DOUBLE_EQ(cost->draft_ms(1, 1024), draft);
    EXPECT_DOUBLE_EQ(cost->other_ms(1), other);
  }
}

TEST(CostPolicy, RefusesAnAlphaOutOfRange) {
  for (const double bad : {0.0, -0.1, 1.5, std::nan("")}) {
    test::expect_error("weight alpha", [&] { make_cost(CostPolicy::ema, bare_roofline(), CostTable(), {bad}); });
  }
}

}  // namespace
}  // namespace canopy

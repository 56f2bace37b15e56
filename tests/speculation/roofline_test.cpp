// Counts and times of the roofline, compared with bastion_cost.json and with counts made by hand.

#include "engine/speculation/roofline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/expect_error.h"
#include "tests/speculation/roofline_data.h"

namespace canopy {
namespace {

using nlohmann::json;

TEST(Roofline, CountsOfTheGoldenGrid) {
  const json file = test::golden_json("bastion_cost.json");
  ASSERT_FALSE(file.at("grid").empty());
  for (const json& row : file.at("grid")) {
    const PassWork work(test::golden_shape(file.at("models").at(row[0].get<std::string>())));
    SCOPED_TRACE(row.dump());
    const auto width = row[1].get<uint32_t>();
    const auto context = row[2].get<uint32_t>();
    EXPECT_EQ(work.flops(width, context), row[3].get<uint64_t>());
    const PassWork::Bytes bytes = work.bytes(width, context);
    EXPECT_EQ(bytes.weights, row[4].get<uint64_t>());
    EXPECT_EQ(bytes.kv, row[5].get<uint64_t>());
    EXPECT_EQ(bytes.activations, row[6].get<uint64_t>());
    EXPECT_EQ(bytes.total(), row[7].get<uint64_t>());
  }
}

void expect_close(double actual, double expected) {
  EXPECT_LE(std::abs(actual - expected), 1e-9 * std::abs(expected)) << actual << " instead of " << expected;
}

TEST(Roofline, TimesOfTheGoldenEstimates) {
  const json file = test::golden_json("bastion_cost.json");
  ASSERT_FALSE(file.at("estimates").empty());
  for (const json& golden : file.at("estimates")) {
    const Roofline roofline(test::golden_shape(file.at("models").at(golden.at("model").get<std::string>())),
                            test::golden_peaks(file.at("gpus").at(golden.at("gpu").get<std::string>())),
                            test::golden_calibration(golden.at("calibration")));
    SCOPED_TRACE(golden.dump());
    const auto width = golden.at("s").get<uint32_t>();
    const auto context = golden.at("c").get<uint32_t>();
    expect_close(roofline.compute_seconds(width, context), golden.at("raw_compute_s"));
    expect_close(roofline.memory_seconds(width, context), golden.at("raw_memory_s"));
    expect_close(roofline.seconds(width, context), golden.at("estimate_s"));
    EXPECT_NEAR(roofline.seconds(width + 1, context) - roofline.seconds(width, context),
                golden.at("next_delta_s").get<double>(), 1e-12);
  }
}

ModelShape small_shape() {
  ModelShape shape;
  shape.layers = 4;
  shape.hidden = 8;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 4;
  shape.ffn = 32;
  shape.vocab = 100;
  return shape;
}

TEST(Roofline, BytesFollowTheTypesOfTheirElements) {
  ModelShape shape = small_shape();
  const PassWork::Bytes plain = PassWork(shape).bytes(3, 5);
  shape.weight_bytes = 0.625;
  shape.kv_bytes = 4;
  shape.activation_bytes = 4;
  const PassWork::Bytes mixed = PassWork(shape).bytes(3, 5);
  EXPECT_DOUBLE_EQ(static_cast<double>(mixed.weights), static_cast<double>(plain.weights) / 2 * 0.625);
  EXPECT_EQ(mixed.kv, 2 * plain.kv);
  EXPECT_EQ(mixed.activations, 2 * plain.activations);
  EXPECT_EQ(PassWork(shape).flops(3, 5), PassWork(small_shape()).flops(3, 5));
}

ModelShape mixture_shape() {
  ModelShape shape = small_shape();
  shape.moe_layers = 3;
  shape.experts = 8;
  shape.experts_per_row = 2;
  shape.expert_ffn = 16;
  return shape;
}

TEST(Roofline, AMixtureReadsTheExpertsThatItsRowsTouch) {
  const ModelShape shape = mixture_shape();
  const PassWork work(shape);
  const uint64_t expert = uint64_t{3} * 3 * 8 * 16 * 2;  // bytes of one expert in each of the three layers
  EXPECT_EQ(work.bytes(1, 0).weights - work.bytes(0, 0).weights, 2 * expert);
  // Two rows: 8 (1 - (3/4)^2) = 3.5 experts; many rows: all of them and no more.
  EXPECT_EQ(work.bytes(2, 0).weights - work.bytes(0, 0).weights, 7 * expert / 2);
  EXPECT_EQ(work.bytes(1000, 0).weights - work.bytes(0, 0).weights, 8 * expert);
}

TEST(Roofline, AMixtureComputesTheExpertsThatEachRowUses) {
  // If one expert as wide as the dense layer is used, only the router is added.
  ModelShape shape = small_shape();
  const uint64_t dense = PassWork(shape).flops(5, 7);
  shape.moe_layers = shape.layers;
  shape.experts = 8;
  shape.experts_per_row = 1;
  shape.expert_ffn = shape.ffn;
  EXPECT_EQ(PassWork(shape).flops(5, 7), dense + uint64_t{5} * 4 * 2 * 8 * 8);
}

TEST(Roofline, ASharedExpertIsOfAllRows) {
  ModelShape shape = mixture_shape();
  const PassWork without(shape);
  shape.shared_ffn = 24;
  const PassWork with(shape);
  const uint64_t weights = uint64_t{3} * 3 * 8 * 24;  // three matrices in three layers
  EXPECT_EQ(with.bytes(5, 0).weights - without.bytes(5, 0).weights, 2 * weights);
  EXPECT_EQ(with.flops(5, 0) - without.flops(5, 0), 5 * 2 * weights);
}

ModelShape hybrid_shape() {
  ModelShape shape = small_shape();
  shape.recurrent_layers = 3;
  shape.recurrent_keys = 12;
  shape.recurrent_values = 20;
  shape.recurrent_key_dim = 6;
  return shape;
}

// A state is read and written once a pass, however wide; keys and values are of the layers that are left.
TEST(Roofline, AHybridHasStates) {
  const PassWork work(hybrid_shape());
  EXPECT_EQ(work.bytes(1, 0).states, uint64_t{3} * 20 * 6 * 4 * 2);
  EXPECT_EQ(work.bytes(9, 100).states, work.bytes(1, 0).states);
  EXPECT_EQ(4 * work.bytes(2, 9).kv, PassWork(small_shape()).bytes(2, 9).kv);
  ModelShape gated = hybrid_shape();
  gated.gated = 1;
  const uint64_t gate = uint64_t{gated.hidden} * gated.query_heads * gated.head_dim;  // of the layer of attention
  EXPECT_EQ(PassWork(gated).bytes(1, 0).weights - work.bytes(1, 0).weights, 2 * gate);
}

// Of each position one key is kept, which has the value in it, and heads have matrices between it and theirs.
TEST(Roofline, LatentsAreKeptOnce) {
  ModelShape shape = small_shape();
  shape.kv_heads = 1;
  shape.head_dim = 12;
  shape.latent_rank = 8;
  shape.latent_key_dim = 3;
  shape.latent_value_dim = 5;
  const PassWork work(shape);
  EXPECT_EQ(work.bytes(1, 9).kv - work.bytes(1, 8).kv, uint64_t{4} * 12 * 2);
  EXPECT_EQ(work.flops(1, 9) - work.flops(1, 8), uint64_t{4} * 2 * 4 * (12 + 8));
  const uint64_t queries = 4 * (3 + 4), values = 4 * 5;
  const uint64_t weights = 8 * queries + 8 * 12 + 4 * 3 * 12 + values * 8 + values * 8;
  const uint64_t others = 3 * 8 * 32;  // of the feed-forward
  EXPECT_EQ(work.bytes(1, 0).weights, 2 * (4 * (weights + others) + 2 * 8 * 100));
  shape.latent_query_rank = 6;
  EXPECT_EQ(PassWork(shape).bytes(1, 0).weights - work.bytes(1, 0).weights, 2 * 4 * (6 * (8 + queries) - 8 * queries));
}

TEST(Roofline, LayersMayBeAMixerOrAFeedForwardAlone) {
  ModelShape shape = small_shape();
  shape.layers_without_mixer = 1;
  shape.layers_without_ffn = 2;
  shape.ungated_ffn = 1;
  const PassWork work(shape);
  const uint64_t attention = 8 * (2 * 16 + 2 * 8), feed_forward = 2 * 8 * 32;
  EXPECT_EQ(work.bytes(1, 0).weights, 2 * (3 * attention + 2 * feed_forward + 2 * 8 * 100));
  EXPECT_EQ(4 * work.bytes(2, 9).kv, 3 * PassWork(small_shape()).bytes(2, 9).kv);
}

TEST(Roofline, RefusesShapesThatCannotBe) {
  const auto expect_refused = [](const char* message, auto change) {
    ModelShape shape = mixture_shape();
    change(shape);
    test::expect_error(message, [&] { PassWork{shape}; });
  };
  expect_refused("number of layers is 0", [](ModelShape& s) { s.layers = 0, s.moe_layers = 0; });
  expect_refused("hidden size is 0", [](ModelShape& s) { s.hidden = 0; });
  expect_refused("5 layers without a mixer", [](ModelShape& s) { s.layers_without_mixer = 5; });
  expect_refused("2 without a feed-forward", [](ModelShape& s) { s.layers_without_ffn = 2; });
  expect_refused("latents of 4 elements in 2 keys", [](ModelShape& s) {
    s.latent_rank = 4;
    s.latent_key_dim = s.latent_value_dim = 2;
  });
  expect_refused("hidden size is 4294967295", [](ModelShape& s) { s.hidden = UINT32_MAX; });
  expect_refused("query heads is 0", [](ModelShape& s) { s.query_heads = 0; });
  expect_refused("K/V heads is 0", [](ModelShape& s) { s.kv_heads = 0; });
  expect_refused("head size is 0", [](ModelShape& s) { s.head_dim = 0; });
  expect_refused("feed-forward size is 0", [](ModelShape& s) { s.ffn = 0; });
  expect_refused("vocabulary size is 0", [](ModelShape& s) { s.vocab = 0; });
  expect_refused("5 layers with experts among 4", [](ModelShape& s) { s.moe_layers = 5; });
  expect_refused("number of experts a row uses is 9", [](ModelShape& s) { s.experts_per_row = 9; });
  expect_refused("5 recurrent layers among 4", [](ModelShape& s) { s.recurrent_layers = 5; });
  expect_refused("gates 2 times", [](ModelShape& s) { s.gated = 2; });
  expect_refused("size of a recurrent key is 0", [](ModelShape& s) {
    s = hybrid_shape();
    s.recurrent_key_dim = 0;
  });
  expect_refused("one weight element", [](ModelShape& s) { s.weight_bytes = 0; });
  expect_refused("one K/V element", [](ModelShape& s) { s.kv_bytes = -1; });
  expect_refused("one activation element", [](ModelShape& s) { s.activation_bytes = std::nan(""); });
  expect_refused("overflows",
                 [](ModelShape& s) { s.layers = s.hidden = s.ffn = s.query_heads = s.head_dim = 1 << 24; });
}

TEST(Roofline, RefusesAPassTooLargeToCount) {
  const PassWork work(small_shape());
  test::expect_error("overflows", [&] { work.flops(UINT32_MAX, UINT32_MAX); });
}

TEST(Roofline, RefusesPeaksAndCalibrationsThatCannotBe) {
  const double nan = std::nan("");
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, nan, infinite}) {
    test::expect_error("operations per second", [&] { Roofline(small_shape(), {bad, 1e9}); });
    test::expect_error("bandwidth", [&] { Roofline(small_shape(), {1e9, bad}); });
  }
  for (const double bad : {-1e-9, nan, infinite}) {
    test::expect_error("at least 0 and finite", [&] { Roofline(small_shape(), {1e9, 1e9}, {1, bad, 1, 0}); });
  }
  test::expect_error("zero throughout", [&] { Roofline(small_shape(), {1e9, 1e9}, {0, 0, 0, 0}); });
}

}  // namespace
}  // namespace canopy

// Which variants of the products of GPUs are chosen.

#include "engine/vulkan/product_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/vulkan/kernel.h"
#include "engine/vulkan/spirv.h"

namespace canopy::vk {
namespace {

ProductShape shape(uint32_t rows, uint32_t cols, uint32_t width) {
  return {rows, cols, chunk_columns(rows, cols), width};
}

constexpr MatrixShape kProductHalves{
    16, 16, 16, MatrixType::f16, MatrixType::f16, MatrixType::f32, MatrixType::f32, MatrixScope::subgroup};

constexpr MatrixShape kIntegers{
    16, 16, 16, MatrixType::s8, MatrixType::s8, MatrixType::s32, MatrixType::s32, MatrixScope::subgroup};

DeviceLimits gpu_limits() {
  DeviceLimits limits = baseline_limits();
  limits.max_invocations = 1024;
  limits.max_shared_bytes = 48 << 10;
  limits.pinned_subgroup = 32;
  return limits;
}

// What reflection counts of the op that needs the most, with heads of any size.
uint64_t shared_bytes(const std::string& type, const ProductVariant& variant) {
  uint64_t most = reflect(find_shader("product_add_" + type).words, variant.options.spec).shared_bytes;
  for (const uint32_t head : {8u, 80u, 256u}) {
    std::vector<SpecConstant> spec = variant.options.spec;
    spec.push_back({10, head});
    most = std::max(most, reflect(find_shader("product_heads_" + type).words, spec).shared_bytes);
  }
  return most;
}

TEST(ProductConfigTest, MultiplyAddsFitTheSmallestUsableDevice) {
  const DeviceLimits limits = baseline_limits();
  for (const uint32_t cols : {20u, 256u, 1024u, 4096u, 16384u}) {
    for (uint32_t width = 1; width <= 130; ++width) {
      const FmaConfig config = choose_fma(shape(4096, cols, width), kMostFmaColumns, false, limits);
      ASSERT_TRUE(config.fits(limits)) << width << " rows, " << cols << " columns";
      ASSERT_LE(shared_bytes("q4_1", config.variant()), config.shared_bytes());
      ASSERT_GE(config.columns, std::min(width, kMostFmaColumns));
    }
  }
}

TEST(ProductConfigTest, MatrixTilesFitTheDeviceAndHaveRoomForEveryRow) {
  for (const uint32_t shared : {32u << 10, 48u << 10, 64u << 10}) {
    DeviceLimits limits = gpu_limits();
    limits.max_shared_bytes = shared;
    for (uint32_t width = 1; width <= 130; ++width) {
      const MatrixConfig config =
          choose_matrix(shape(4096, 4096, width), kProductHalves, kMostMatrixColumns, false, limits);
      ASSERT_TRUE(config.fits(limits)) << width << " rows, " << shared << " bytes";
      ASSERT_LE(shared_bytes("q4_1_matrix", config.variant()), config.shared_bytes());
      ASSERT_EQ(config.tile_rows() % 64, 0u);
      ASSERT_GE(config.columns, std::min(width, kMostMatrixColumns));
    }
  }
}

// A row of activations is padded to 64 columns; behind them is the next row.
TEST(ProductConfigTest, MatrixStepsEndWithTheRowsOfActivations) {
  for (const uint32_t cols : {20u, 64u, 128u, 576u, 800u, 1536u, 4096u}) {
    for (const uint32_t width : {1u, 32u, 64u}) {
      for (const MatrixConfig& config :
           matrix_candidates(shape(4096, cols, width), kProductHalves, kMostMatrixColumns, false, gpu_limits())) {
        EXPECT_EQ((cols + 63) / 64 * 64 % config.step, 0u) << cols << " columns, " << config.variant().text;
      }
    }
  }
  EXPECT_EQ(choose_matrix(shape(4096, 4096, 1), kProductHalves, kMostMatrixColumns, false, gpu_limits()).step, 128u);
}

// Widths of a bucket share their kernel.
TEST(ProductConfigTest, MatrixTilesAreOfFewWidths) {
  for (uint32_t width = 1; width <= 300; ++width) {
    const MatrixConfig config =
        choose_matrix(shape(4096, 4096, width), kProductHalves, kMostMatrixColumns, false, gpu_limits());
    EXPECT_EQ(config.columns, width <= 16 ? 16u : width <= 32 ? 32u : 64u) << width;
  }
}

// Tiles of 256 rows read activations least often; two of 32 columns stand in for one of 64, which has no room.
TEST(ProductConfigTest, TimesTilesOf256Rows) {
  for (const uint32_t width : {1u, 32u, 64u}) {
    uint32_t tall = 0;
    for (const MatrixConfig& config :
         matrix_candidates(shape(4096, 4096, width), kProductHalves, kMostMatrixColumns, false, gpu_limits())) {
      EXPECT_TRUE(config.fits(gpu_limits())) << config.variant().text;
      EXPECT_LE(config.columns, std::max(16u, width)) << config.variant().text;
      if (config.tile_rows() == 256) ++tall;
    }
    EXPECT_EQ(tall, 1u) << width;
    for (const MatrixConfig& config :
         matrix_candidates(shape(4096, 4096, width), kProductHalves, kMostMatrixColumns, true, gpu_limits())) {
      EXPECT_LE(config.tile_rows(), 128u) << config.variant().text;
    }
  }
}

TEST(ProductConfigTest, TakesTheLargestMatricesThatDivideTheTiles) {
  DeviceReport report;
  report.limits = gpu_limits();
  DeviceFeatures features;
  features.cooperative_matrix = features.memory_model_device_scope = features.shader_float16 = true;
  MatrixShape small = kProductHalves, half_sums = kProductHalves, odd = kProductHalves, of_workgroup = kProductHalves;
  small.m = small.n = small.k = 8;
  half_sums.result = half_sums.c = MatrixType::f16;
  odd.n = 24;
  of_workgroup.scope = MatrixScope::workgroup;
  report.matrix_shapes = {half_sums, odd, of_workgroup, small, kProductHalves};
  ASSERT_NE(product_matrix(report, features), nullptr);
  EXPECT_EQ(product_matrix(report, features)->m, 16u);
  report.matrix_shapes.pop_back();
  EXPECT_EQ(product_matrix(report, features)->m, 8u);
  report.matrix_shapes.pop_back();
  EXPECT_EQ(product_matrix(report, features), nullptr);
  report.matrix_shapes.push_back(kProductHalves);
  features.shader_float16 = false;
  EXPECT_EQ(product_matrix(report, features), nullptr);
}

TEST(ProductConfigTest, IntegersNeedTheirMatricesBesideThoseOfHalves) {
  DeviceReport report;
  report.limits = gpu_limits();
  DeviceFeatures features;
  features.memory_model_device_scope = features.shader_float16 = true;
  EXPECT_NE(missing_for_integers(report, features).find("VK_KHR_cooperative_matrix"), std::string::npos);
  features.cooperative_matrix = true;
  report.matrix_shapes = {kIntegers};
  EXPECT_NE(missing_for_integers(report, features).find("halves"), std::string::npos);
  report.matrix_shapes = {kProductHalves};
  EXPECT_NE(missing_for_integers(report, features).find("shaderInt8"), std::string::npos);
  features.shader_int8 = true;
  EXPECT_NE(missing_for_integers(report, features).find("signed 8-bit integers"), std::string::npos);
  EXPECT_EQ(integer_matrix(report, features), nullptr);
  MatrixShape saturating = kIntegers, deep = kIntegers;
  saturating.saturating = true;
  deep.k = 64;  // more than a block
  report.matrix_shapes = {kProductHalves, saturating, deep, kIntegers};
  EXPECT_EQ(missing_for_integers(report, features), "");
  ASSERT_NE(integer_matrix(report, features), nullptr);
  EXPECT_EQ(integer_matrix(report, features)->k, 16u);
  EXPECT_EQ(product_matrix(report, features)->a, MatrixType::f16);
}

TEST(ProductConfigTest, IntegerTilesFitTheDevice) {
  const char* types[] = {"q8_0_matrix_i8", "q4_k_matrix_i8", "q6_k_matrix_i8", "q2_k_matrix_i8"};
  for (const uint32_t depth : {8u, 16u, 32u}) {
    MatrixShape integers = kIntegers;
    integers.k = depth;
    for (const uint32_t width : {1u, 32u, 64u}) {
      for (const MatrixConfig& config :
           matrix_candidates(shape(4096, 4096, width), integers, kMostMatrixColumns, false, gpu_limits())) {
        EXPECT_EQ(config.variant().family, KernelFamily::matrix_i8);
        uint64_t most = 0;
        for (const char* type : types) most = std::max(most, shared_bytes(type, config.variant()));
        EXPECT_LE(most, config.shared_bytes()) << config.variant().text << ", depth " << depth;
        EXPECT_GE(most + 64, config.shared_bytes()) << config.variant().text << ", depth " << depth;
      }
    }
  }
}

TEST(ProductConfigTest, DenseWeightsStayOnHalves) {
  EXPECT_EQ(product_family(KernelFamily::matrix_i8, WeightType::bf16), KernelFamily::matrix);
  EXPECT_EQ(product_family(KernelFamily::matrix_i8, WeightType::q8_0), KernelFamily::matrix_i8);
  EXPECT_EQ(product_family(KernelFamily::fma, WeightType::f16), KernelFamily::fma);
}

// The order of a row's sum follows from this: part of the numeric contract.
TEST(ProductSplitTest, DependsOnTheShapeOfTheWeightAlone) {
  EXPECT_EQ(chunk_columns(4096, 4096), 1024u);
  EXPECT_EQ(chunk_columns(4096, 12288), 1536u);
  EXPECT_EQ(chunk_columns(24576, 4096), 2048u);
  EXPECT_EQ(chunk_columns(151936, 4096), 4096u);
  EXPECT_EQ(chunk_columns(576, 1536), 1536u);
  EXPECT_EQ(chunk_columns(3, 20), 256u);
  for (const uint32_t rows : {1u, 64u, 65u, 4096u, 32768u, 40000u}) {
    for (const uint32_t cols : {1u, 255u, 257u, 2047u, 2048u, 12288u, 100'000u}) {
      EXPECT_EQ(chunk_columns(rows, cols) % 256, 0u);
      EXPECT_GE(uint64_t{chunk_count(rows, cols)} * chunk_columns(rows, cols), cols);
      EXPECT_LT(uint64_t{chunk_count(rows, cols) - 1} * chunk_columns(rows, cols), cols);
    }
  }
}

}  // namespace
}  // namespace canopy::vk

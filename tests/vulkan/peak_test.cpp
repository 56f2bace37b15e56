#include "engine/vulkan/peak.h"

#include <chrono>

#include "engine/vulkan/context.h"
#include "engine/vulkan/product_config.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {
namespace {

class PeakTest : public testing::DeviceTest {};
CANOPY_ON_EVERY_DEVICE(PeakTest);

TEST_P(PeakTest, measuresWhatADeviceCanDo) {
  const auto context = open();
  const auto start = std::chrono::steady_clock::now();
  const DevicePeak peak = measure_peak(*context);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  RecordProperty("fma_gflop_s", std::to_string(peak.fma_gflop_s));
  RecordProperty("read_gb_s", std::to_string(peak.read_gb_s));
  // Wide bounds, as the machine may be busy and the device any. They find work that the compiler removed, and units
  // wrong by a factor of a thousand.
  EXPECT_GT(peak.fma_gflop_s, 0.01);
  EXPECT_LT(peak.fma_gflop_s, 1e6);
  EXPECT_GT(peak.plain_fma_gflop_s, 0.001);
  EXPECT_LT(peak.plain_fma_gflop_s, 1e6);
  EXPECT_GT(peak.read_gb_s, 0.05);
  EXPECT_LT(peak.read_gb_s, 2e4);
  EXPECT_LT(took.count(), 20);
}

TEST_P(PeakTest, aProbeTellsTheRateOfTheMoment) {
  const auto context = open();
  FmaProbe probe(*context);
  EXPECT_GT(probe.best(), 0.01);
  for (int i = 0; i < 3; ++i) {
    const double rate = probe.run();
    EXPECT_GT(rate, 0.001);
    EXPECT_LT(rate, 1e6);
  }
}

TEST_P(PeakTest, measuresMatrixCoresWhereThereAreSome) {
  const auto context = open();
  EXPECT_EQ(measure_peak(*context).matrix_gflop_s, 0);
  const MatrixShape* shape = product_matrix(context->report(), context->features());
  if (shape == nullptr) GTEST_SKIP() << "the device has no such matrices";
  const DevicePeak peak = measure_peak(*context, shape);
  EXPECT_GT(peak.matrix_gflop_s, 0.01);
  EXPECT_LT(peak.matrix_gflop_s, 1e7);
  EXPECT_EQ(peak.product_gflop_s(), peak.matrix_gflop_s);
}

TEST_P(PeakTest, makesDoWithLittleMemory) {
  const auto context = open({.max_storage_range = 8U << 20, .max_allocation = 4U << 20});
  EXPECT_GT(measure_peak(*context).read_gb_s, 0.05);
}

}  // namespace
}  // namespace canopy::vk

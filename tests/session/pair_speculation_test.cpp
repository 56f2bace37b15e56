// What the statistics of a pair know of its device.

#include "engine/session/reply_writer.h"

#include <gtest/gtest.h>

#include "engine/session/engine.h"
#include "tests/compute/forwarding_device.h"
#include "tests/model/golden_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

/// A device with matrix cores, or without, where that is 0.
class PeakedDevice : public ForwardingDevice {
 public:
  explicit PeakedDevice(double matrix_gflop_s)
      : ForwardingDevice(make_reference_device()), matrix_gflop_s_(matrix_gflop_s) {}
  DevicePeak measure_peak() override { return {100, 200, 50, matrix_gflop_s_}; }

 private:
  double matrix_gflop_s_;
};

DevicePeaks peaks_on(double matrix_gflop_s) {
  PeakedDevice device(matrix_gflop_s);
  OpenRequest request;
  request.path = golden_folder() / "tiny-qwen3";
  request.drafter = golden_folder() / "tiny-qwen3-dflash-b8";
  request.context = 64;
  request.self_test = false;
  const auto engine = Engine::open(device, request, {});
  return engine->speculation->roofline().peaks();
}

// A roofline by multiply-adds would call passes slow that matrix cores make for nothing.
TEST(PairSpeculation, TheRooflineIsOfWhatMakesProducts) {
  EXPECT_DOUBLE_EQ(peaks_on(0).flops_per_second, 200e9);
  EXPECT_DOUBLE_EQ(peaks_on(7000).flops_per_second, 7000e9);
  EXPECT_DOUBLE_EQ(peaks_on(7000).bytes_per_second, 100e9);
}

}  // namespace
}  // namespace canopy::test

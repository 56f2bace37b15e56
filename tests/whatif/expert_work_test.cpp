// What mixtures of experts are priced as: rows with the same expert are computed together, on all kernels of GPUs.
#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/whatif/model_shapes.h"
#include "engine/whatif/op_work.h"
#include "engine/whatif/prediction.h"

namespace canopy::predict {
namespace {

constexpr const char* kShape = "qwen3-coder-30b-a3b-q4_k";

/// The experts' product with gate and up of the first layer, in a pass of `width` rows.
Work experts_of(uint32_t width, Kernels kernels, const char* device) {
  RecordedModel model(model_shape(kShape));
  for (const Op& op : model.record(width, 0, 0)) {
    if (std::holds_alternative<ExpertSwigluArgs>(op)) {
      return work_of(op, rules_of(kernels), device_profile(device));
    }
  }
  throw std::runtime_error("no experts");
}

// 64 rows have each of 128 experts four times: decoded once for all of them, not for each.
TEST(ExpertWork, TilesDecodeTheWeightsOfTheirPairsOnce) {
  constexpr double weights = 1536.0 * 2048;
  for (const auto& [kernels, device] : {std::pair{Kernels::matrix, "rx7900xtx"}, {Kernels::cuda, "h100"}}) {
    const Work one = experts_of(1, kernels, device), wide = experts_of(64, kernels, device);
    EXPECT_LT(wide.lane_ops / (126 * weights), 1.6 * one.lane_ops / (8 * weights)) << device;
    EXPECT_NEAR(wide.memory_bytes / one.memory_bytes, 126.0 / 8, 0.1) << device;
    EXPECT_LT(wide.cache_bytes, 0.5 * wide.memory_bytes) << device;
  }
}

// As wide trees are for dense models: what a pass waits for is the memory.
TEST(ExpertWork, MatrixCoresKeepUpWithTheMemory) {
  for (const char* device : {"rx7900xtx", "rx9070xt", "h100", "rtx4090"}) {
    const WorkTime cores = time_of(experts_of(64, Kernels::matrix, device), device_profile(device));
    const WorkTime adds = time_of(experts_of(64, Kernels::fma, device), device_profile(device));
    EXPECT_LT(cores.arithmetic, cores.memory) << device;
    EXPECT_LT(cores.total, adds.total) << device;
  }
}

TEST(ExpertWork, GroupingIsAStepWhereItPays) {
  for (const auto& [kernels, device] : {std::pair{Kernels::matrix, "rx7900xtx"}, {Kernels::cuda, "h100"}}) {
    EXPECT_EQ(experts_of(1, kernels, device).steps, 1);
    EXPECT_EQ(experts_of(64, kernels, device).steps, 2);
  }
}

}  // namespace
}  // namespace canopy::predict

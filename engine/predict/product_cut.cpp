#include "engine/predict/product_cut.h"

#include <algorithm>

#include "engine/compute/product_split.h"
#include "engine/vulkan/linear_config.h"
#include "engine/vulkan/product_config.h"

namespace canopy::predict {
namespace {

constexpr uint32_t kSubgroup = 32;
constexpr vk::MatrixShape kMatrix{.m = 16, .n = 16, .k = 16};

/// What drivers of such a device report, as far as the choices read it.
vk::DeviceLimits limits_of(const DeviceProfile& device) {
  vk::DeviceLimits limits;
  limits.max_invocations = 1024;
  limits.max_group_size = {1024, 1024, 64};
  limits.max_shared_bytes = static_cast<uint32_t>(device.workgroup_shared_bytes());
  limits.pinned_subgroup = kSubgroup;
  return limits;
}

ProductCut cut_of_today(const Weight& weight, uint32_t width, const vk::DeviceLimits& limits) {
  const uint32_t tiles = (width + 7) / 8;
  const uint32_t columns = (width + tiles - 1) / tiles;
  // The last candidate works on most segments at once.
  const vk::LinearShapeKey key{weight.type(), weight.rows(), weight.cols(), columns};
  const vk::LinearConfig config = vk::linear_candidates(false, key, limits).back();
  return {.rows = 1.0 * config.lanes * config.rows,
          .columns = 1.0 * columns,
          .slices = 1.0 * config.split,
          .invocations = 1.0 * config.lanes * config.split};
}

ProductCut chosen_cut(const Weight& weight, uint32_t width, Kernels kernels, const DeviceProfile& device) {
  const vk::DeviceLimits limits = limits_of(device);
  const vk::ProductShape shape{weight.rows(), weight.cols(), chunk_columns(weight.rows(), weight.cols()), width};
  switch (kernels) {
    case Kernels::today: return cut_of_today(weight, width, limits);
    case Kernels::fma: {
      const vk::FmaConfig config = vk::choose_fma(shape, vk::kMostFmaColumns, false, limits);
      return {1.0 * config.tile_rows(), 1.0 * config.columns, 1.0 * config.slices, 1.0 * config.invocations(),
              1.0 * config.shared_bytes()};
    }
    case Kernels::matrix: {
      const vk::MatrixConfig config = vk::choose_matrix(shape, kMatrix, vk::kMostMatrixColumns, false, limits);
      return {1.0 * config.tile_rows(), 1.0 * config.columns, 1, 1.0 * config.invocations(),
              1.0 * config.shared_bytes()};
    }
    case Kernels::llama_cpp: return {.rows = 2, .columns = 1, .invocations = 64};
  }
  return {};
}

}  // namespace

ProductCut cut_of(const Weight& weight, uint32_t width, const KernelRules& rules, const DeviceProfile& device) {
  ProductCut cut = chosen_cut(weight, width, rules.kernels, device);
  if (rules.tile_rows > 0) cut.rows = rules.tile_rows;
  if (rules.tile_columns > 0) cut.columns = rules.tile_columns;
  if (rules.invocations > 0) cut.invocations = rules.invocations;
  return cut;
}

}  // namespace canopy::predict

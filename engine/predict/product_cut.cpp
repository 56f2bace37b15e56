#include "engine/predict/product_cut.h"

#include <algorithm>

#include "engine/compute/product_split.h"

namespace canopy::predict {
namespace {

constexpr uint32_t kSubgroup = 32;
constexpr uint32_t kBlock = 32;  // columns that an invocation of the products by multiply-adds fetches at a time
// Of llama.cpp's mat-vec kernels: 32 bytes of a 4-bit type in flight for each of 64 invocations, over two rows.
constexpr double kMatVecColumns = 1800;
constexpr vk::MatrixShape kMatrix{.m = 16, .n = 16, .k = 16};

/// Of 8-bit integers.
vk::MatrixShape integer_shape(const DeviceProfile& device) {
  return {16,
          16,
          device.integer_depth,
          vk::MatrixType::s8,
          vk::MatrixType::s8,
          vk::MatrixType::s32,
          vk::MatrixType::s32,
          vk::MatrixScope::subgroup};
}

/// What drivers of such a device report, as far as the choices read it.
vk::DeviceLimits limits_of(const DeviceProfile& device) {
  vk::DeviceLimits limits;
  limits.max_invocations = 1024;
  limits.max_group_size = {1024, 1024, 64};
  limits.max_shared_bytes = static_cast<uint32_t>(device.workgroup_shared_bytes());
  limits.pinned_subgroup = kSubgroup;
  return limits;
}

ProductCut cut_of(const vk::FmaConfig& config) {
  const double step = 1.0 * kBlock * config.slices;
  return {1.0 * config.tile_rows(),   1.0 * config.columns,       step, step,
          1.0 * config.invocations(), 1.0 * config.shared_bytes()};
}

ProductCut cut_of(const vk::MatrixConfig& config, bool dense) {
  const double step = config.step, steps = dense ? 1 : config.ahead;
  return {1.0 * config.tile_rows(),   1.0 * config.columns,       steps * step, step,
          1.0 * config.invocations(), 1.0 * config.shared_bytes()};
}

std::vector<ProductCut> named_cuts(const Weight& weight, uint32_t width, Kernels kernels, const DeviceProfile& device) {
  const vk::DeviceLimits limits = limits_of(device);
  const vk::ProductShape shape{weight.rows(), weight.cols(), chunk_columns(weight.rows(), weight.cols()), width};
  switch (kernels) {
    case Kernels::fma: return {cut_of(vk::choose_fma(shape, vk::kMostFmaColumns, false, limits))};
    case Kernels::matrix:
    case Kernels::matrix_i8: {
      const vk::MatrixShape matrix = kernels == Kernels::matrix ? kMatrix : integer_shape(device);
      std::vector<ProductCut> cuts;
      for (const vk::MatrixConfig& config :
           vk::matrix_candidates(shape, matrix, vk::kMostMatrixColumns, false, limits)) {
        cuts.push_back(cut_of(config, is_dense(weight.type())));
      }
      return cuts;
    }
    case Kernels::cuda: break;  // cuda_work.h
    case Kernels::llama_cpp:
      return {
          {.rows = 2, .columns = 1, .columns_in_flight = kMatVecColumns, .step = kMatVecColumns, .invocations = 64}};
  }
  return {{}};
}

}  // namespace

std::vector<ProductCut> cuts_of(const Weight& weight, uint32_t width, const KernelRules& rules,
                                const DeviceProfile& device) {
  std::vector<ProductCut> cuts = named_cuts(weight, width, rules.kernels, device);
  for (ProductCut& cut : cuts) {
    if (rules.tile_rows > 0) cut.rows = rules.tile_rows;
    if (rules.tile_columns > 0) cut.columns = rules.tile_columns;
    if (rules.invocations > 0) cut.invocations = rules.invocations;
    if (rules.columns_in_flight > 0) cut.columns_in_flight = cut.step = rules.columns_in_flight;
  }
  return cuts;
}

ExpertCut cut_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width, bool matrix_cores,
                         const DeviceProfile& device) {
  const vk::ExpertShape shape{experts, weight.rows() / experts.all,       weight.cols(),
                              width,   matrix_cores ? &kMatrix : nullptr, false};
  const vk::ExpertVariant variant = vk::choose_experts_by_rule(shape, limits_of(device));
  return {variant.tiles, variant.matrix ? cut_of(*variant.matrix, is_dense(weight.type())) : ProductCut{}};
}

}  // namespace canopy::predict

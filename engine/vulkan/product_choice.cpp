#include "engine/vulkan/product_choice.h"

#include <algorithm>
#include <vector>

#include "engine/compute/product_split.h"
#include "engine/vulkan/product_tuner.h"

namespace canopy::vk {

namespace {

constexpr uint64_t kSmallWeight = 128 * 1024;  // elements

template <class Config>
std::vector<ProductVariant> variants_of(const std::vector<Config>& configs) {
  std::vector<ProductVariant> variants;
  for (const Config& config : configs) variants.push_back(config.variant());
  return variants;
}

std::vector<ProductVariant> product_candidates(const DeviceState& state, KernelFamily family,
                                               const ProductShape& shape) {
  const DeviceLimits& limits = state.context->limits();
  if (on_matrix_cores(family)) {
    return variants_of(matrix_candidates(shape, state.matrix_of(family), state.max_tile, state.software, limits));
  }
  return variants_of(fma_candidates(shape, state.max_tile, state.software, limits));
}

ProductVariant variant_by_rule(const DeviceState& state, KernelFamily family, const ProductShape& shape) {
  const DeviceLimits& limits = state.context->limits();
  if (on_matrix_cores(family)) {
    return choose_matrix(shape, state.matrix_of(family), state.max_tile, state.software, limits).variant();
  }
  return choose_fma(shape, state.max_tile, state.software, limits).variant();
}

VariantCandidate candidate_of(const ProductVariant& variant) {
  VariantCandidate candidate{{variant.options.subgroup_size}, variant.text};
  for (const SpecConstant& constant : variant.options.spec) candidate.numbers.push_back(constant.value);
  return candidate;
}

ProductVariant timed_variant(DeviceState& state, const VariantKey& key, const VulkanWeight& weight) {
  const ProductShape shape{key.rows, key.cols, chunk_columns(key.rows, key.cols), key.width};
  const std::vector<ProductVariant> variants = product_candidates(state, key.family, shape);
  std::vector<VariantCandidate> candidates;
  std::ranges::transform(variants, std::back_inserter(candidates), candidate_of);
  const auto force = [&](std::optional<size_t> candidate) {
    state.timed_product = candidate ? std::optional(variants[*candidate]) : std::nullopt;
  };
  return variants[state.tuner->choose(key, weight, candidates, force)];
}

}  // namespace

bool is_small(const VulkanWeight& weight) {
  return uint64_t{weight.rows()} * weight.cols() < kSmallWeight;
}

ProductVariant choose_product(DeviceState& state, ProductOp op, const VulkanWeight& weight, uint32_t width) {
  if (state.timed_product) return *state.timed_product;
  const KernelFamily family = product_family(state.family, weight.type());
  if (on_matrix_cores(family) && state.forced_matrix) {
    MatrixConfig forced = *state.forced_matrix;
    if (family == KernelFamily::matrix || !forced.integers()) forced.shape = state.matrix_of(family);
    return forced.variant();
  }
  if (state.family == KernelFamily::fma && state.forced_fma) return state.forced_fma->variant();
  const uint32_t rows = weight.rows(), cols = weight.cols();
  if (!state.tuner || is_small(weight)) {
    return variant_by_rule(state, family, {rows, cols, chunk_columns(rows, cols), width});
  }
  return timed_variant(state, {family, op, weight.type(), rows, cols, tuned_width(family, width)}, weight);
}

}  // namespace canopy::vk

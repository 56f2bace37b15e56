#include "engine/vulkan/expert_choice.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/vulkan/product_choice.h"
#include "engine/vulkan/product_tuner.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kWidestTimed = 512;  // rows of a pass: wider ones take what is best there

ExpertShape shape_of(const DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                     uint32_t width) {
  return {experts,
          weight.rows() / experts.all,
          weight.cols(),
          width,
          on_matrix_cores(state.family) ? &*state.matrix : nullptr,
          state.software};
}

/// The variant with the kernel that a test wants.
ExpertVariant forced(const DeviceState& state, ExpertVariant variant) {
  if (!variant.matrix || !state.forced_matrix || state.forced_matrix->integers()) return variant;
  variant.matrix = *state.forced_matrix;
  variant.matrix->shape = *state.matrix;
  if (variant.tiles.grouped) variant.tiles.columns = variant.matrix->columns;
  return variant;
}

ExpertVariant timed_variant(DeviceState& state, const VulkanWeight& weight, const ExpertShape& shape) {
  const std::vector<ExpertVariant> variants = expert_candidates(shape, state.context->limits());
  std::vector<VariantCandidate> candidates;
  for (const ExpertVariant& variant : variants) candidates.push_back({variant.numbers(), variant.text()});
  const auto force = [&](std::optional<size_t> candidate) {
    state.timed_experts = candidate ? std::optional(variants[*candidate]) : std::nullopt;
  };
  const KernelFamily family = on_matrix_cores(state.family) ? KernelFamily::matrix : state.family;
  const VariantKey key{.family = family,
                       .op = ProductOp::experts,
                       .type = weight.type(),
                       .rows = shape.rows,
                       .cols = shape.cols,
                       .width = shape.width,
                       .experts = shape.experts.all,
                       .used = shape.experts.used};
  return variants[state.tuner->choose(key, weight, candidates, force)];
}

}  // namespace

ExpertVariant choose_experts(DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                             uint32_t width) {
  if (state.timed_experts) return *state.timed_experts;
  ExpertShape shape = shape_of(state, weight, experts, width);
  if (!state.tuner || is_small(weight) || state.forced_matrix) {
    return forced(state, choose_experts_by_rule(shape, state.context->limits()));
  }
  shape.width = std::bit_ceil(std::min(width, kWidestTimed));
  ExpertVariant variant = timed_variant(state, weight, shape);
  variant.tiles.width = width;
  return variant;
}

ExpertVariant experts_like(const DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                           uint32_t width, std::optional<uint32_t> columns) {
  const ExpertShape shape = shape_of(state, weight, experts, width);
  const DeviceLimits& limits = state.context->limits();
  return forced(
      state, columns ? experts_in_tiles(shape, *columns, *columns > 1, limits) : choose_experts_by_rule(shape, limits));
}

}  // namespace canopy::vk

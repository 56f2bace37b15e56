#pragma once
// Chooses the variant of a matrix product of the family that reads texels by timing the candidates on the device, once
// per shape.

#include "engine/vulkan/device_state.h"

namespace canopy::vk {

/// The first push constants of every shaders/linear*.comp: what is multiplied, and where the dispatch begins.
struct ProductPush {
  uint32_t rows, cols, first_column, first_quad;
};

/// Those of shaders/linear.comp.
struct LinearPush {
  ProductPush product;
  uint32_t width, stride, offset;
  float norm_eps;
};

/// The variant for products of `weight` with tiles of `columns`. Small weights take a rule of thumb; for the others the
/// candidates are timed on the first call for a shape and the choice is kept in DeviceState::choices.
LinearConfig choose_linear(DeviceState& state, const VulkanWeight& weight, uint32_t columns);

}  // namespace canopy::vk

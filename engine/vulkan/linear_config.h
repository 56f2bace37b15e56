#pragma once
// Which of the bitwise equal variants of the matrix product runs in the family that reads texels: the choices of
// shaders/linear_core.glsl. They change who computes what, never the order of a row's sum.

#include <cstdint>
#include <vector>

#include "engine/compute/types.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {

struct LinearConfig {
  uint32_t rows = 4;    // of an invocation: 4, 8 or 16
  uint32_t lanes = 8;   // invocations along the rows
  uint32_t body = 512;  // multiply-adds a loop body is unrolled to at most
  auto operator<=>(const LinearConfig&) const = default;
};

/// Specialisation for a tile of n columns. How far loops are unrolled follows from n and the rows: bodies of a few
/// hundred multiply-adds run fastest on software devices (instruction caches) and keep compile times low.
/// quads: rows, strides and offsets are multiples of 4, and rows one of config.rows.
KernelOptions linear_options(const LinearConfig& config, WeightType type, uint32_t n, bool ragged, bool quads);

/// Variants worth measuring for tiles of so many columns, the likeliest first; there is at least one.
std::vector<LinearConfig> linear_candidates(uint32_t columns);

}  // namespace canopy::vk

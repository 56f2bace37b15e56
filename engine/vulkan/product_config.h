#pragma once
// Which variant of a GPU's matrix product runs (shaders/product*.glsl). Variants of a family are bitwise equal;
// families are not, so a device keeps to one.

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/compute/types.h"
#include "engine/vulkan/device_report.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {

/// How a device computes products and attention; one of these for an opened device.
enum class KernelFamily {
  texel,   // llvmpipe: reads through texel buffers, interleaved activations (shaders/linear_core.glsl)
  fma,     // multiply-adds (shaders/product_fma.glsl)
  matrix,  // cooperative matrices (shaders/product_matrix.glsl)
};
const char* to_string(KernelFamily family);
/// Nothing for another word.
std::optional<KernelFamily> kernel_family(std::string_view name);

/// Columns of the widest tile of the family of multiply-adds.
inline constexpr uint32_t kMostFmaColumns = 8;

/// A variant of shaders/product_fma.glsl.
struct FmaConfig {
  uint32_t columns = 1;  // of a tile: 1, 2, 4 or 8
  uint32_t lanes = 64;   // invocations along the rows of the weight
  uint32_t slices = 1;   // slices of 256 columns of the weight worked on at once
  uint32_t rows = 1;     // of an invocation
  uint32_t stage = 1;    // blocks of 32 columns staged at once
  auto operator<=>(const FmaConfig&) const = default;

  uint32_t tile_rows() const { return lanes * rows; }
  uint32_t invocations() const { return lanes * slices; }
  /// Of a workgroup, in each of the ops (product_add needs the most).
  uint64_t shared_bytes() const;
  bool fits(const DeviceLimits& limits) const {
    return invocations() <= limits.max_invocations && shared_bytes() <= limits.max_shared_bytes;
  }
  KernelOptions options() const;
};

/// The variant for a pass of `width` rows over a weight whose chunks have `chunk_columns` columns.
FmaConfig choose_fma(uint32_t width, uint32_t chunk_columns, uint32_t max_columns, bool software,
                     const DeviceLimits& limits);

}  // namespace canopy::vk

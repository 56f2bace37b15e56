#pragma once
// Which variant of a matrix product runs (shaders/product*.glsl). Variants of a family are bitwise equal;
// families are not, so a device keeps to one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/types.h"
#include "engine/vulkan/device_report.h"
#include "engine/vulkan/kernel.h"

namespace canopy::vk {

/// How a device computes products and attention; one of these for an opened device.
enum class KernelFamily {
  fma,        // multiply-adds (shaders/product_fma.glsl)
  matrix,     // cooperative matrices of halves (shaders/product_matrix.glsl)
  matrix_i8,  // of 8-bit integers, for quantized weights (shaders/product_i8.glsl); others as `matrix`. Only by name
};
const char* to_string(KernelFamily family);
/// Whether its products are those of matrix cores.
constexpr bool on_matrix_cores(KernelFamily family) {
  return family == KernelFamily::matrix || family == KernelFamily::matrix_i8;
}
/// What a device of the family computes products of a type of weights with: families for a type are among the others.
KernelFamily product_family(KernelFamily family, WeightType type);
/// Nothing for another word.
std::optional<KernelFamily> kernel_family(std::string_view name);

/// A variant of a product's kernel as it is dispatched.
struct ProductVariant {
  KernelFamily family = KernelFamily::fma;
  uint32_t columns = 1;  // of a tile: rows of the pass
  uint32_t rows = 64;    // of a tile: of the weight
  KernelOptions options;
  std::string text;  // "8 columns, 64 lanes, 2 slices, 1 row, stage 2"
};

/// Columns of the widest tiles.
inline constexpr uint32_t kMostFmaColumns = 8;
inline constexpr uint32_t kMostMatrixColumns = 64;

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
  /// Of a workgroup, in whichever op needs the most.
  uint64_t shared_bytes() const;
  bool fits(const DeviceLimits& limits) const;
  ProductVariant variant() const;
};

/// A variant of shaders/product_matrix.glsl or, where its matrices are of integers, of shaders/product_i8.glsl.
struct MatrixConfig {
  uint32_t columns = 16;   // of a tile: 16, 32 or 64
  uint32_t subgroups = 1;  // each has row_tiles of the tile's rows
  uint32_t row_tiles = 1;
  uint32_t step = 32;  // columns of the weight staged at once: 32, 64 or 128
  uint32_t ahead = 1;  // steps whose weights are under way: 1, or 2 of halves
  uint32_t subgroup_size = 32;
  MatrixShape shape;
  /// Of one device, whose matrices are of one shape.
  bool same_as(const MatrixConfig& other) const {
    return columns == other.columns && subgroups == other.subgroups && row_tiles == other.row_tiles &&
           step == other.step && ahead == other.ahead;
  }

  uint32_t tile_rows() const { return subgroups * row_tiles * shape.m; }
  uint32_t invocations() const { return subgroups * subgroup_size; }
  bool integers() const { return shape.a == MatrixType::s8; }
  /// As for FmaConfig; of integers, those of the type of weights that needs the most.
  uint64_t shared_bytes() const;
  bool fits(const DeviceLimits& limits) const;
  ProductVariant variant() const;
};

/// What variants are chosen for: a weight [rows, cols] in chunks of chunk_columns, and the rows of a pass.
struct ProductShape {
  uint32_t rows = 0;
  uint32_t cols = 0;
  uint32_t chunk_columns = 0;
  uint32_t width = 0;
};

/// The matrices that products on matrix cores are made of: halves with sums in f32, the largest of those that divide
/// the tiles of MatrixConfig. Null where the device has none, or lacks what the kernels need beside them: a subgroup
/// size that is asked for, and the memory model.
const MatrixShape* product_matrix(const DeviceReport& report, const DeviceFeatures& features);
/// The same of signed 8-bit integers with sums in 32 bits, and what is missing for products with them beside halves: a
/// part of a sentence, empty where nothing is.
const MatrixShape* integer_matrix(const DeviceReport& report, const DeviceFeatures& features);
std::string missing_for_integers(const DeviceReport& report, const DeviceFeatures& features);

/// The variants without a measurement: by shape and limits.
FmaConfig choose_fma(const ProductShape& shape, uint32_t max_columns, bool software, const DeviceLimits& limits);
MatrixConfig choose_matrix(const ProductShape& shape, const MatrixShape& matrix, uint32_t max_columns, bool software,
                           const DeviceLimits& limits);

/// The variants among which timing chooses for a weight and a width: the one above first, then others that fit the
/// device. The ISA gate has each of them.
std::vector<FmaConfig> fma_candidates(const ProductShape& shape, uint32_t max_columns, bool software,
                                      const DeviceLimits& limits);
std::vector<MatrixConfig> matrix_candidates(const ProductShape& shape, const MatrixShape& matrix, uint32_t max_columns,
                                            bool software, const DeviceLimits& limits);

}  // namespace canopy::vk

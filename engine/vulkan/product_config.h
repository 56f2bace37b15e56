#pragma once
// Variants of the kernels of matrix products and of a mixture's experts: which there are, which rules choose, and how
// products are cut. None of it but the cut of the columns changes a bit of a result.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compute/ops.h"
#include "engine/compute/types.h"
#include "engine/vulkan/kernel.h"
#include "engine/vulkan/physical_device.h"

namespace canopy {

// How devices that split a matrix product over K cut it: part of the numeric contract, as the order of a row's sum
// follows from it. Shared by the backends that do so and by what predicts their times.

/// Rows of a weight that are handed to a workgroup are multiples of this.
inline constexpr uint32_t kProductBand = 64;
/// Chunks have at least so many columns: with fewer, the sums of wide passes would be as much traffic as the weights.
inline constexpr uint32_t kLeastChunk = 1024;
/// Workgroups of one band each that a product should have, so that all of a large GPU works on it.
inline constexpr uint32_t kProductGroups = 512;

/// Columns of a weight [rows, cols] that are summed in one go; sums of chunks are then added in ascending order. A
/// multiple of 256. Depends on the weight's shape alone, never on the width of a pass or on what a device is busy with:
/// the same row has the same bits in every pass.
inline uint32_t chunk_columns(uint32_t rows, uint32_t cols) {
  const uint32_t bands = (rows + kProductBand - 1) / kProductBand;
  const uint32_t wanted = (kProductGroups + bands - 1) / bands;
  const uint32_t chunks = std::clamp(wanted, 1u, std::max(1u, cols / kLeastChunk));
  const uint32_t columns = (cols + chunks - 1) / chunks;
  return (columns + 255) / 256 * 256;
}

/// Chunks of a weight [rows, cols].
inline uint32_t chunk_count(uint32_t rows, uint32_t cols) {
  const uint32_t columns = chunk_columns(rows, cols);
  return (cols + columns - 1) / columns;
}

}  // namespace canopy

namespace canopy::vk {

// Which variant of a matrix product runs (shaders/product*.glsl). Variants of a family are bitwise equal;
// families are not, so a device keeps to one.

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

// How the products of a mixture's experts are cut into tiles. None of it changes a bit of a result. What predicts times
// goes by the rules here, too.

/// Pairs of a row and one of its experts, and how a product's workgroups take them: one by one, or up to `columns` of
/// one expert.
struct PairTiles {
  ExpertCounts experts;
  uint32_t width = 0;  // rows of the pass
  uint32_t columns = 1;
  bool grouped = false;

  uint32_t pairs() const { return width * experts.used; }
  /// Tiles that there is room for.
  uint32_t most() const { return grouped ? experts.most_tiles(pairs(), columns) : pairs(); }
};

/// What a product with experts is computed by: by multiply-adds, whose tiles have a few pairs, or on matrix cores,
/// whose tiles have 16 pairs or 32, or one of them.
struct ExpertVariant {
  PairTiles tiles;
  std::optional<MatrixConfig> matrix;  // nothing: multiply-adds

  /// "16 pairs, 4 subgroups, ...", "1 pair"
  std::string text() const;
  std::vector<uint32_t> numbers() const;
};

/// What variants are chosen for.
struct ExpertShape {
  ExpertCounts experts;
  uint32_t rows = 0;  // of an expert's weight
  uint32_t cols = 0;
  uint32_t width = 0;                   // rows of the pass
  const MatrixShape* matrix = nullptr;  // null: multiply-adds
  bool software = false;                // on the processor
};

/// The variant without a measurement.
ExpertVariant choose_experts_by_rule(const ExpertShape& shape, const DeviceLimits& limits);
/// With tiles that are given, or were made for another op.
ExpertVariant experts_in_tiles(const ExpertShape& shape, uint32_t columns, bool grouped, const DeviceLimits& limits);
/// The variants among which timing chooses: the one by rule first, then the other way to take pairs, and on matrix
/// cores other kernels for the tiles by rule.
std::vector<ExpertVariant> expert_candidates(const ExpertShape& shape, const DeviceLimits& limits);

}  // namespace canopy::vk

#include "engine/vulkan/product_config.h"

#include <bit>

namespace canopy::vk {
namespace {

constexpr uint32_t kSlice = 256;         // columns of a weight; shaders/product_fma.glsl
constexpr uint32_t kEnoughGroups = 512;  // workgroups that keep a large GPU busy
constexpr uint32_t kStageBytes = 8192;   // of staged activations, so that several workgroups fit a compute unit
constexpr uint32_t kRowPadding = 64;     // columns that rows of activations are padded to with zeros

constexpr uint32_t kLeastHead = 8, kMostHead = 256;  // elements of a head of a K/V cache

// The factors of the norm, and what an op keeps of a tile: product_add the word that tells who is last and sums of
// squares, product_heads the places of the columns and a word for each head.
uint64_t finishing_floats(uint32_t columns, uint32_t rows) {
  const uint64_t adding = 4 + uint64_t{columns} * rows / 8;
  const uint64_t heads = 4 * uint64_t{columns} + (rows / kLeastHead + 2 + 3) / 4 * 4;
  return (columns + 3) / 4 * 4 + std::max(adding, heads);
}

// Of staged values or sums, and where heads are finished; a head and 16 sums fit at least.
uint64_t pool_floats(uint64_t staged, uint64_t sums) {
  return std::max({staged, sums, uint64_t{kMostHead} + 16});
}

// "1 lane", "64 lanes"
std::string counted(uint32_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Tiles have 64 rows of the weight at least, 16 columns, and steps of 32 columns of the weight; in shared memory eight
// halves, eight or sixteen codes or four sums lie together.
bool divides_tiles(const MatrixShape& shape) {
  const auto divides = [](uint32_t part, uint32_t whole) { return part > 0 && whole % part == 0; };
  return shape.scope == MatrixScope::subgroup && !shape.saturating && divides(shape.m, 64) && shape.m % 4 == 0 &&
         divides(shape.n, 16) && shape.n % 4 == 0 && divides(shape.k, 32) && shape.k % 8 == 0;
}

bool has_products(const DeviceReport& report, const DeviceFeatures& features) {
  return features.cooperative_matrix && features.memory_model_device_scope && features.shader_float16 &&
         report.limits.pinned_subgroup != 0;
}

const MatrixShape* largest_shape(const DeviceReport& report, MatrixType operand, MatrixType sum) {
  const MatrixShape* best = nullptr;
  for (const MatrixShape& shape : report.matrix_shapes) {
    const auto size = [](const MatrixShape& s) { return uint64_t{s.m} * s.n * s.k; };
    const bool typed = shape.a == operand && shape.b == operand && shape.c == sum && shape.result == sum;
    if (typed && divides_tiles(shape) && (best == nullptr || size(shape) > size(*best))) best = &shape;
  }
  return best;
}

}  // namespace

const char* to_string(KernelFamily family) {
  switch (family) {
    case KernelFamily::fma: return "fma";
    case KernelFamily::matrix: return "matrix";
    case KernelFamily::matrix_i8: return "matrix_i8";
  }
  return "unknown";
}

KernelFamily product_family(KernelFamily family, WeightType type) {
  const bool dense = is_dense(type);
  return family == KernelFamily::matrix_i8 && dense ? KernelFamily::matrix : family;
}

std::optional<KernelFamily> kernel_family(std::string_view name) {
  for (const KernelFamily family : {KernelFamily::fma, KernelFamily::matrix, KernelFamily::matrix_i8}) {
    if (name == to_string(family)) return family;
  }
  return std::nullopt;
}

uint64_t FmaConfig::shared_bytes() const {
  const uint64_t staged = uint64_t{slices} * columns * stage * 32;
  const uint64_t sums = uint64_t{slices} * columns * tile_rows();
  return 4 * (pool_floats(staged, sums) + finishing_floats(columns, tile_rows()));
}

bool FmaConfig::fits(const DeviceLimits& limits) const {
  return invocations() <= limits.max_invocations && shared_bytes() <= limits.max_shared_bytes;
}

ProductVariant FmaConfig::variant() const {
  const std::string text = counted(columns, "column") + ", " + counted(lanes, "lane") + ", " +
                           counted(slices, "slice") + ", " + counted(rows, "row") + ", stage " + std::to_string(stage);
  return {KernelFamily::fma,
          columns,
          tile_rows(),
          {{{0, columns}, {1, lanes}, {2, slices}, {3, rows}, {4, stage}}, 0},
          text};
}

namespace {

// Floats that a tile of integers is staged in: two scales and minima of a block, and, where a matrix is deeper than
// what has one scale, codes with as many zeros.
uint64_t staged_integers(const MatrixConfig& config) {
  const uint64_t unit = std::min(config.shape.k, 16u);
  const uint64_t row = config.step / unit * (config.shape.k > 16 ? 2 : 1) + 1, column = config.step / unit + 1;
  const uint64_t scales = config.step / 32 * (4 * config.tile_rows() + 3 * config.columns);
  return 4 * (config.tile_rows() * row + config.columns * column) + scales;
}

}  // namespace

uint64_t MatrixConfig::shared_bytes() const {
  const uint64_t staged = integers() ? staged_integers(*this) : uint64_t{tile_rows() + columns} * (step / 8 + 1) * 4;
  const uint64_t sums = uint64_t{columns} * tile_rows();
  return 4 * (pool_floats(staged, sums) + finishing_floats(columns, tile_rows()));
}

bool MatrixConfig::fits(const DeviceLimits& limits) const {
  return invocations() <= limits.max_invocations && shared_bytes() <= limits.max_shared_bytes;
}

ProductVariant MatrixConfig::variant() const {
  const std::string text = counted(columns, "column") + ", " + counted(subgroups, "subgroup") + ", " +
                           counted(row_tiles, "row tile") + ", step " + std::to_string(step) +
                           (ahead > 1 ? ", " + std::to_string(ahead) + " ahead" : "");
  std::vector<SpecConstant> spec = {{0, columns}, {1, invocations()}, {2, subgroups}, {3, shape.m},
                                    {4, shape.n}, {5, shape.k},       {6, row_tiles}, {7, step}};
  if (!integers()) spec.push_back({8, ahead});
  return {
      integers() ? KernelFamily::matrix_i8 : KernelFamily::matrix, columns, tile_rows(), {spec, subgroup_size}, text};
}

const MatrixShape* product_matrix(const DeviceReport& report, const DeviceFeatures& features) {
  return has_products(report, features) ? largest_shape(report, MatrixType::f16, MatrixType::f32) : nullptr;
}

const MatrixShape* integer_matrix(const DeviceReport& report, const DeviceFeatures& features) {
  const bool has_types = has_products(report, features) && features.shader_int8;
  return has_types ? largest_shape(report, MatrixType::s8, MatrixType::s32) : nullptr;
}

std::string missing_for_integers(const DeviceReport& report, const DeviceFeatures& features) {
  if (!features.cooperative_matrix) return "cooperative matrices (VK_KHR_cooperative_matrix)";
  if (product_matrix(report, features) == nullptr) return "cooperative matrices of halves with sums in f32";
  if (!features.shader_int8) return "8-bit integers in shaders (shaderInt8)";
  if (integer_matrix(report, features) == nullptr) {
    return "cooperative matrices of signed 8-bit integers with sums in 32 bits";
  }
  return "";
}

namespace {

uint32_t stage_of(const FmaConfig& config) {
  return std::bit_floor(std::clamp(kStageBytes / (config.slices * config.columns * 128), 1u, 8u));
}

// Whether the last step ends with the row: one that reached into the next would multiply what is there.
bool steps_end_with_rows(uint32_t step, uint32_t cols) {
  return (cols + kRowPadding - 1) / kRowPadding * kRowPadding % step == 0;
}

}  // namespace

FmaConfig choose_fma(const ProductShape& shape, uint32_t max_columns, bool software, const DeviceLimits& limits) {
  FmaConfig config;
  config.columns = std::bit_floor(std::min({std::bit_ceil(shape.width), max_columns, kMostFmaColumns}));
  const uint32_t slices = (shape.chunk_columns + kSlice - 1) / kSlice;
  config.slices = software ? 1 : std::bit_floor(std::min({slices, 4u, limits.max_invocations / config.lanes}));
  while (config.slices > 1 && !config.fits(limits)) config.slices /= 2;
  config.stage = stage_of(config);
  return config;
}

MatrixConfig choose_matrix(const ProductShape& shape, const MatrixShape& matrix, uint32_t max_columns, bool software,
                           const DeviceLimits& limits) {
  MatrixConfig config;
  config.shape = matrix;
  config.subgroup_size = limits.pinned_subgroup;
  config.columns =
      std::clamp(std::bit_ceil(shape.width), 16u, std::max(16u, std::min(max_columns, kMostMatrixColumns)));
  // Tiles of 128 rows read the activations half as often, which counts for more the more columns have them; tiles of 64
  // make more workgroups.
  const uint32_t chunks = (shape.cols + shape.chunk_columns - 1) / shape.chunk_columns;
  const uint32_t enough = config.columns == 16 ? kEnoughGroups : kEnoughGroups / 2;
  const bool tall = !software && (config.columns == 64 || shape.rows / 128 * chunks >= enough);
  for (const uint32_t rows : {tall ? 128u : 64u, 64u}) {
    config.subgroups = std::min(8u, rows / matrix.m);
    config.row_tiles = rows / matrix.m / config.subgroups;
    // Where there are few rows of the pass, there are few invocations: each has more of the weight on its way.
    config.step = software ? 32 : config.columns == 16 && rows == 64 ? 128 : 64;
    while (config.step > 32 && !(config.fits(limits) && steps_end_with_rows(config.step, shape.cols))) config.step /= 2;
    if (config.fits(limits)) break;
  }
  // Two steps of weights under way take few registers, and no shared memory.
  config.ahead = software || config.integers() ? 1 : 2;
  return config;
}

std::vector<FmaConfig> fma_candidates(const ProductShape& shape, uint32_t max_columns, bool software,
                                      const DeviceLimits& limits) {
  std::vector<FmaConfig> candidates = {choose_fma(shape, max_columns, software, limits)};
  const uint32_t columns = candidates[0].columns;
  const uint32_t most_slices = std::bit_ceil((shape.chunk_columns + kSlice - 1) / kSlice);
  const auto add = [&](FmaConfig config) {
    config.columns = columns;
    config.stage = stage_of(config);
    const bool known = std::ranges::find(candidates, config) != candidates.end();
    if (!known && config.slices <= most_slices && config.fits(limits)) candidates.push_back(config);
  };
  for (const uint32_t slices : {1u, 2u, 4u, 8u}) add({.lanes = 64, .slices = slices});
  for (const uint32_t slices : {1u, 2u, 4u}) add({.lanes = 128, .slices = slices});
  // Two rows of more columns do not stay in the registers of every device.
  if (columns > 2) return candidates;
  for (const uint32_t slices : {2u, 4u}) add({.lanes = 64, .slices = slices, .rows = 2});
  return candidates;
}

std::vector<MatrixConfig> matrix_candidates(const ProductShape& shape, const MatrixShape& matrix, uint32_t max_columns,
                                            bool software, const DeviceLimits& limits) {
  std::vector<MatrixConfig> candidates = {choose_matrix(shape, matrix, max_columns, software, limits)};
  const uint32_t widest = candidates[0].columns;
  const auto add = [&](uint32_t rows, uint32_t row_tiles, uint32_t step, uint32_t ahead, uint32_t columns) {
    MatrixConfig config = candidates[0];
    config.columns = columns;
    config.ahead = config.integers() ? 1 : ahead;
    config.row_tiles = row_tiles;
    config.subgroups = rows / matrix.m / row_tiles;
    config.step = step;
    const bool known = std::ranges::any_of(candidates, [&](const auto& other) { return other.same_as(config); });
    const bool sane =
        config.subgroups > 0 && config.subgroups <= 8 && config.fits(limits) && steps_end_with_rows(step, shape.cols);
    if (!known && sane) candidates.push_back(config);
  };
  for (const uint32_t rows : {64u, 128u}) {
    add(rows, 1, 32, 1, widest);
    for (const uint32_t ahead : {1u, 2u}) add(rows, 1, 64, ahead, widest);
    // Of the widest tiles too few waves have room beside each other.
    if (widest < kMostMatrixColumns) add(rows, 1, 128, 2, widest);
  }
  add(128, 2, 64, 1, widest);
  if (software || candidates[0].integers()) return candidates;
  // Where the activations come from a cache that gives little more than the memory, tiles of 256 rows, which read them
  // least often. Of 64 columns such a tile has no room: two of 32 each decode the weights, and read them at once.
  add(256, 2, 64, 2, std::min(widest, 32u));
  if (widest > 32) add(128, 1, 64, 2, 32);
  return candidates;
}

namespace {

// Rows of a pass from which on pairs are grouped by their expert on the processor.
constexpr uint32_t kGroupedWidth = 8;
constexpr uint32_t kLeastMatrixColumns = 16, kLeastColumns = 4;

bool are_grouped(const ExpertShape& shape) {
  if (shape.software) return shape.width >= kGroupedWidth;
  return shape.experts.read_again(shape.width) >= kEnoughReadAgain;
}

/// Of a tile that is grouped: of wider ones half would be empty.
uint32_t columns_by_rule(const ExpertShape& shape) {
  const uint32_t pairs = shape.width * shape.experts.used;
  if (shape.matrix != nullptr) {
    return pairs >= 24 * shape.experts.all ? 2 * kLeastMatrixColumns : kLeastMatrixColumns;
  }
  return !shape.software && pairs >= 8 * shape.experts.all ? 2 * kLeastColumns : kLeastColumns;
}

/// The experts [rows, cols] are one chunk.
ProductShape product_of(const ExpertShape& shape, uint32_t columns) {
  return {shape.rows, shape.cols, shape.cols, std::max(columns, kLeastMatrixColumns)};
}

}  // namespace

std::string ExpertVariant::text() const {
  const std::string pairs = std::to_string(tiles.columns) + (tiles.columns == 1 ? " pair" : " pairs");
  return matrix ? pairs + ", " + matrix->variant().text : pairs;
}

std::vector<uint32_t> ExpertVariant::numbers() const {
  std::vector<uint32_t> numbers = {tiles.grouped ? 1u : 0u, tiles.columns};
  if (!matrix) return numbers;
  const ProductVariant variant = matrix->variant();
  numbers.push_back(variant.options.subgroup_size);
  for (const SpecConstant& constant : variant.options.spec) numbers.push_back(constant.value);
  return numbers;
}

ExpertVariant experts_in_tiles(const ExpertShape& shape, uint32_t columns, bool grouped, const DeviceLimits& limits) {
  ExpertVariant variant{{shape.experts, shape.width, grouped ? columns : 1, grouped}, std::nullopt};
  if (shape.matrix != nullptr) {
    const ProductShape product = product_of(shape, variant.tiles.columns);
    variant.matrix = choose_matrix(product, *shape.matrix, product.width, shape.software, limits);
  }
  return variant;
}

ExpertVariant choose_experts_by_rule(const ExpertShape& shape, const DeviceLimits& limits) {
  return experts_in_tiles(shape, columns_by_rule(shape), are_grouped(shape), limits);
}

std::vector<ExpertVariant> expert_candidates(const ExpertShape& shape, const DeviceLimits& limits) {
  const ExpertVariant by_rule = choose_experts_by_rule(shape, limits);
  std::vector<ExpertVariant> candidates = {by_rule};
  if (shape.width > 1) {
    candidates.push_back(experts_in_tiles(shape, columns_by_rule(shape), !by_rule.tiles.grouped, limits));
  }
  if (shape.matrix == nullptr) return candidates;
  const ProductShape product = product_of(shape, by_rule.tiles.columns);
  for (const MatrixConfig& config : matrix_candidates(product, *shape.matrix, product.width, shape.software, limits)) {
    if (!config.same_as(*by_rule.matrix)) candidates.push_back({by_rule.tiles, config});
  }
  return candidates;
}

}  // namespace canopy::vk

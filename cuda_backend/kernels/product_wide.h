#pragma once
// Products with 16, 32 or 64 rows of the pass at a time. Each warp has 32 or 48 rows of the weight, which it decodes
// once for all rows of the pass; those are brought by the block, a stage ahead, to one of two buffers. A block has one
// segment of a chunk of the weight's columns: all units of a large GPU would not be busy otherwise, and there are not
// enough registers for the sums of two. What comes of the parts is added by the block that comes last for a tile.
//
// Tensor cores multiply for each warp by itself, or on Hopper for four at a time: that reads rows of the pass from
// shared memory by itself and goes on while warps decode. Both add the same products in the same order.
//
// Grid: tiles of the pass (neighbours share weights in the L2 cache), blocks of rows of the first weight, then of the
// second, parts of the columns.

#include "cuda_backend/kernels/product_finish.h"

namespace canopy::cuda {

// Shared memory: the norm's factors, flags and where tiles are, two buffers of rows of the pass, the warps' rings. Sums
// take the place of all but the first.
constexpr uint32_t kWideFlags = 256, kWideTiles = 320;

/// The rows of activations that a block's columns are: of the pass, those of a tile; behind its end its last one.
template <uint32_t COLUMNS>
struct PassTile {
  uint32_t first = gpu::block_x() * COLUMNS;

  CANOPY_DEVICE uint32_t row(const ProductParams& p, uint32_t n) const {
    return first + n < p.width ? first + n : p.width - 1;
  }
  CANOPY_DEVICE void factors(const ProductParams& p, const gpu::Shared<float>& to) const {
    make_factors(p, first, COLUMNS, gpu::block_y() == 0 && gpu::block_z() == 0, to);
  }
};

/// How a wide product is computed: FRAGMENTS times 16 rows of the weight to each of WARPS warps, TILES times 8 rows of
/// the pass.
template <uint32_t TILES_, uint32_t WARPS_, uint32_t FRAGMENTS_ = kWideWarpTiles, bool WARPGROUPS_ = false>
struct WideShape {
  static constexpr uint32_t TILES = TILES_, WARPS = WARPS_, FRAGMENTS = FRAGMENTS_;
  static constexpr bool WARPGROUPS = WARPGROUPS_;
};

template <class F, class Shape, class Columns = PassTile<Shape::TILES * 8>>
struct WideProduct {
  static constexpr uint32_t TILES = Shape::TILES, WARPS = Shape::WARPS, FRAGMENTS = Shape::FRAGMENTS;
  static constexpr uint32_t kColumns = TILES * 8;                   // rows of the pass
  static constexpr uint32_t kRows = WARPS * FRAGMENTS * kTileRows;  // of the weight
  static constexpr uint32_t kRowsAtOnce = 32 / kStepUnits;  // of the pass, that a warp stages a unit of for each lane
  static constexpr uint32_t kUnits = (kColumns / kRowsAtOnce + WARPS - 1) / WARPS;  // that a lane stages in a step
  static constexpr uint32_t kBatches = kUnits <= 2 ? 1 : kUnits == 4 && F::kCodeBytes < 32 ? 2 : 4;
  static constexpr uint32_t kBatch = (kUnits + kBatches - 1) / kBatches;
  static constexpr uint32_t kOctets = 4 / kBatches;  // of columns, while a batch is under way
  // What an octet's number chooses is known where the loop over them is unrolled: that saves a third of the
  // instructions. F32 would take more registers than there are, and is no type of large weights.
  static constexpr uint32_t kOctetsTogether = F::kCodeBytes >= 32 ? 1 : F::kCodeBytes == 8 && TILES == 8 ? 2 : 4;
  static constexpr uint32_t kSteps = wide_steps(F::kBytes, kColumns, gpu::kArchitecture);  // of a stage
  static constexpr uint32_t kStageBytes = kSteps * F::kStepBytes + F::kSuperBytes;         // of 16 rows
  using Rows = std::conditional_t<Shape::WARPGROUPS, WarpgroupRows<kColumns>, WarpRows<kColumns>>;
  static constexpr uint32_t kHead = kWideHead, kSlot = Rows::kSlot, kStagedBytes = 8 * kSlot;
  static constexpr uint32_t kRings = kHead + 2 * kSteps * kStagedBytes;
  static_assert(kWideTiles + WARPS * FRAGMENTS * 8 <= kWideHead);

  const ProductParams& p;
  const WeightParams& weight;
  Columns columns = {};
  gpu::Shared<float> factors{0, kColumns};
  static constexpr uint32_t kSums = FRAGMENTS * TILES * 4;  // of a lane
  float sums[FRAGMENTS][TILES][4] = {};
  CANOPY_DEVICE float& sum(uint32_t i) { return sums[i / (TILES * 4)][i / 4 % TILES][i % 4]; }

  struct Steps {
    uint32_t begin, end;
  };

  CANOPY_DEVICE uint32_t ring() const { return kRings + gpu::warp() * p.stages * FRAGMENTS * kStageBytes; }

  CANOPY_DEVICE Steps steps() const {
    const bool two = p.segment_supers < p.chunk_supers;
    const uint32_t part = gpu::block_z();
    const ChunkSteps chunk = chunk_steps(p, weight, two ? part / 2 : part);
    if (!two) return {chunk.begin, chunk.end};
    return part % 2 == 0 ? Steps{chunk.begin, chunk.middle} : Steps{chunk.middle, chunk.end};
  }

  /// Where the steps end, and where the tiles of this warp's rows begin: looked up, not kept, as registers are few.
  CANOPY_DEVICE gpu::Shared<uint32_t> steps_end() const { return {kWideFlags + 16, 1}; }
  CANOPY_DEVICE gpu::Shared<uint64_t> tiles() const { return {kWideTiles + gpu::warp() * FRAGMENTS * 8, FRAGMENTS}; }
  CANOPY_DEVICE void find_tiles(const WeightParams& weight, uint32_t row_tile) const {
    if (gpu::lane() < FRAGMENTS) {
      const uint32_t wanted = (row_tile * WARPS + gpu::warp()) * FRAGMENTS + gpu::lane(), last = weight.groups() - 1;
      tiles()[gpu::lane()] = weight.tiles + uint64_t{wanted < last ? wanted : last} * weight.supers() * F::kBytes;
    }
    gpu::sync_warp();
  }

  CANOPY_DEVICE void copy(uint32_t step, uint32_t stage) const {
    const uint64_t policy = gpu::read_once();
    CANOPY_UNROLL
    for (uint32_t m = 0; m < FRAGMENTS; ++m) {
      copy_steps<F, kSteps>(ring() + (stage * FRAGMENTS + m) * kStageBytes, tiles()[m] + uint64_t{step / 2} * F::kBytes,
                            step % 2, policy);
    }
  }

  CANOPY_DEVICE static Rows rows_of(uint32_t step) { return Rows(kHead + step % (2 * kSteps) * kStagedBytes); }

  /// Of a step, a lane has a unit of some rows of the pass. Behind the last one warps have nothing to do.
  CANOPY_DEVICE static uint32_t row_of(uint32_t batch, uint32_t i) {
    return ((batch * kBatch + i) * WARPS + gpu::warp()) * kRowsAtOnce + gpu::lane() / kStepUnits;
  }
  CANOPY_DEVICE static bool is_one(uint32_t row) {
    return kBatches * kBatch * WARPS * kRowsAtOnce == kColumns || row < kColumns;
  }
  CANOPY_DEVICE void load(Unit (&units)[kBatch], uint32_t batch, uint32_t step) const {
    const uint32_t first = step * kStepUnits + gpu::lane() % kStepUnits, row_units = p.in.stride / kStep * kStepUnits;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t row = row_of(batch, i);
      if (is_one(row)) units[i] = Span<const Unit>{p.in.halves}[columns.row(p, row) * row_units + first];
    }
  }
  CANOPY_DEVICE void stage(Unit (&units)[kBatch], uint32_t batch, uint32_t step) const {
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kBatch; ++i) {
      const uint32_t row = row_of(batch, i);
      if constexpr (kAddsHalves<F>) {
        const uint32_t raise = raise_step(units[i]);
        if (is_one(row) && gpu::lane() % kStepUnits == 0) lowers_of(step, row)[0] = lower_of(raise);
      }
      if (is_one(row)) rows_of(step).store(row, gpu::lane() % kStepUnits, units[i]);
    }
  }
  /// What sums with a step of a row and those behind it are multiplied by: behind the rows' slots, eight in each.
  CANOPY_DEVICE static gpu::Shared<float> lowers_of(uint32_t step, uint32_t row) {
    return {rows_of(step).begin + row / 8 * kSlot + kColumns * 32 + row % 8 * 4, 8 - row % 8};
  }

  /// Halves of the weights for tensor cores. Those of warpgroups read one set while warps make the other.
  struct Decoded {
    uint32_t words[2][FRAGMENTS][4];
  };
  using Weights = Fragment<F>[FRAGMENTS];

  CANOPY_DEVICE void multiply_octet_to_halves(const Weights& weights, uint32_t octet, uint32_t step) {
    const Rows rows = rows_of(step);
    uint32_t a[FRAGMENTS][2][4];
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 2 * FRAGMENTS; ++i) weights[i / 2].decode(octet, i % 2, a[i / 2][i % 2]);
    CANOPY_UNROLL
    for (uint32_t tile = 0; tile < TILES; ++tile) {
      uint32_t b[2][2];
      CANOPY_UNROLL
      for (uint32_t half = 0; half < 2; ++half) rows.load(tile * 8 + gpu::lane() / 4, octet * 2 + half, b[half]);
      const gpu::Shared<float> lowers = lowers_of(step, tile * 8 + gpu::lane() % 4 * 2);
      const float lower[2] = {lowers[0], lowers[1]};
      CANOPY_UNROLL
      for (uint32_t m = 0; m < FRAGMENTS; ++m) multiply_raised(sums[m][tile], a[m], b, lower);
    }
  }

  CANOPY_DEVICE void multiply_octet_by_warps(const Weights& weights, uint32_t octet, uint32_t step) {
    const Rows rows = rows_of(step);
    CANOPY_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      uint32_t a[FRAGMENTS][4];
      CANOPY_UNROLL
      for (uint32_t m = 0; m < FRAGMENTS; ++m) weights[m].decode(octet, half, a[m]);
      CANOPY_UNROLL
      for (uint32_t tile = 0; tile < TILES; ++tile) {
        uint32_t b[2];
        rows.load(tile * 8 + gpu::lane() / 4, octet * 2 + half, b);
        CANOPY_UNROLL
        for (uint32_t m = 0; m < FRAGMENTS; ++m) gpu::multiply(sums[m][tile], a[m], b);
      }
    }
  }

  CANOPY_DEVICE void multiply_octet_by_warpgroups(const Weights& weights, Decoded& decoded, uint32_t octet,
                                                  uint32_t step) {
    const Rows rows = rows_of(step);
    CANOPY_UNROLL
    for (uint32_t half = 0; half < 2; ++half) {
      gpu::wait_for_warpgroup_products<1>();  // those that read this half's set
      CANOPY_UNROLL
      for (uint32_t m = 0; m < FRAGMENTS; ++m) {
        weights[m].decode(octet, half, decoded.words[half][m]);
        gpu::begin_warpgroup_products();
        gpu::begin_warpgroup_product(sums[m], decoded.words[half][m], rows.operand(octet * 2 + half));
      }
      gpu::end_warpgroup_products();
    }
  }

  CANOPY_DEVICE void multiply_octet(const Weights& weights, [[maybe_unused]] Decoded& decoded, uint32_t octet,
                                    uint32_t step) {
    if constexpr (Shape::WARPGROUPS) {
      multiply_octet_by_warpgroups(weights, decoded, octet, step);
    } else if constexpr (kAddsHalves<F>) {
      multiply_octet_to_halves(weights, octet, step);
    } else {
      multiply_octet_by_warps(weights, octet, step);
    }
  }

  CANOPY_DEVICE void multiply_step(const Weights& weights, Decoded& decoded, uint32_t step) {
    const uint32_t next = step + kSteps;
    const bool has_next = next < steps_end()[0];
    Unit units[kBatch];
    CANOPY_UNROLL_BY(kOctetsTogether)
    for (uint32_t octet = 0; octet < 4; ++octet) {
      if (has_next && octet % kOctets == 0) load(units, octet / kOctets, next);
      multiply_octet(weights, decoded, octet, step);
      if (has_next && octet % kOctets == kOctets - 1) stage(units, octet / kOctets, next);
    }
  }

  /// The fragments of a step, from byte `at` of the ring on.
  template <uint32_t... M>
  struct StepWeights {
    Weights fragments;
    CANOPY_DEVICE StepWeights(uint32_t at, uint32_t super, uint32_t parity)
        : fragments{{at + M * kStageBytes, super + M * kStageBytes, parity}...} {}
  };
  using OfStep = std::conditional_t<FRAGMENTS == 2, StepWeights<0, 1>, StepWeights<0, 1, 2>>;

  /// The steps of a stage from `step` on.
  CANOPY_DEVICE void multiply_stage(uint32_t step, uint32_t stage_number) {
    const uint32_t at = ring() + stage_number * FRAGMENTS * kStageBytes, super = at + kSteps * F::kStepBytes;
    Decoded decoded;
    if constexpr (kSteps == 1) {
      const OfStep weights(at, super, step % 2);
      multiply_step(weights.fragments, decoded, step);
    } else {
      const OfStep weights[2] = {{at, super, 0}, {at + F::kStepBytes, super, 1}};
      multiply_step(weights[0].fragments, decoded, step);
      if (step + 1 < steps_end()[0]) multiply_step(weights[1].fragments, decoded, step + 1);
    }
    if constexpr (Shape::WARPGROUPS) gpu::wait_for_warpgroup_products<0>();
  }

  /// Asks for the first weights, and has the first step's rows ready.
  CANOPY_DEVICE void begin(uint32_t row_tile, const Steps& range) {
    find_tiles(weight, row_tile);
    steps_end()[0] = range.end;  // all threads write the same
    for (uint32_t i = 0; i < p.stages; ++i) {
      if (range.begin + i * kSteps < range.end) copy(range.begin + i * kSteps, i);
      gpu::end_copy_group();
    }
    gpu::let_next_start();
    gpu::wait_for_earlier();
    columns.factors(p, factors);  // for later
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kSteps * kBatches; ++i) {
      const uint32_t step = range.begin + i / kBatches, batch = i % kBatches;
      if (step >= range.end) break;
      Unit units[kBatch];
      load(units, batch, step);
      stage(units, batch, step);
    }
  }

  /// Adds what a stage brings, and asks for the weights of a later one.
  CANOPY_DEVICE void add_stage(uint32_t step, uint32_t& stage_number) {
    wait_for_stage(p.stages);
    if constexpr (Shape::WARPGROUPS) gpu::show_to_warpgroups();
    gpu::sync();  // these steps' rows are there, the other buffer is free
    multiply_stage(step, stage_number);
    gpu::sync_warp();
    if (step + p.stages * kSteps < steps_end()[0]) copy(step + p.stages * kSteps, stage_number);
    gpu::end_copy_group();
    stage_number = stage_number + 1 == p.stages ? 0 : stage_number + 1;
  }

  /// The sums of this block's part of the columns.
  CANOPY_DEVICE void sum_part(uint32_t row_tile) {
    const Steps range = steps();
    begin(row_tile, range);
    uint32_t stage_number = 0;
    for (uint32_t step = range.begin; step < steps_end()[0]; step += kSteps) add_stage(step, stage_number);
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kSums; ++i) sum(i) = 0.0f + sum(i) * weight.unit;  // as narrow products begin a chunk
  }

  /// Where sum i of this lane is among those of a block, whose rows have `stride` of them.
  CANOPY_DEVICE static uint32_t place(uint32_t i, uint32_t stride) {
    const uint32_t m = i / (TILES * 4), n = i / 4 % TILES * 8 + gpu::lane() % 4 * 2 + i % 2;
    return ((gpu::warp() * FRAGMENTS + m) * kTileRows + gpu::lane() / 4 + i % 4 / 2 * 8) * stride + n;
  }

  /// Leaves them in shared memory, where finish_wide() takes them.
  CANOPY_DEVICE void leave_sums() {
    gpu::sync();
    const gpu::Shared<float> shared(kHead, kRows * (kColumns + 1));
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kSums; ++i) {
      shared[place(i, kColumns + 1)] = sum(i);
    }
    gpu::sync();
  }
};

/// The order in which the parts of a tile are added, where a block has a part of the columns: chunks one by one, and
/// the two segments of a chunk before it.
CANOPY_DEVICE float sum_of_parts(const Span<const float>& partials, uint64_t first, uint64_t each, uint32_t parts,
                                 bool are_segments) {
  float sum = 0;
  for (uint32_t part = 0; part < parts; part += are_segments ? 2 : 1) {
    float chunk = partials[first + part * each];
    if (are_segments) chunk = chunk + partials[first + (part + 1) * each];
    sum = part == 0 ? chunk : sum + chunk;
  }
  return sum;
}

/// The sums of a part of the columns are in shared memory, of `rows` rows of the weight and `columns` rows of the pass.
/// The block that comes last for a tile adds those of all parts and does the op's own part.
CANOPY_CALLED void finish_wide(const ProductParams& p, uint32_t rows, uint32_t columns, bool are_segments) {
  const uint32_t pass_tile = gpu::block_x(), tile = gpu::block_y() * gpu::blocks_x() + pass_tile;
  const uint32_t first = pass_tile * columns, left = p.width - first, count = left < columns ? left : columns;
  const uint32_t stride = columns + 1, parts = gpu::blocks_z();
  const gpu::Shared<float> sums(kWideHead, rows * stride), factors(0, columns);
  const gpu::Shared<uint32_t> flags(kWideFlags, 2);
  if (parts > 1) {
    const uint64_t each = uint64_t{rows} * columns, all = tile * parts * each;
    const Span<float> partials{p.partials};
    for (uint32_t i = gpu::thread(); i < rows * count; i += gpu::threads()) {
      partials[all + gpu::block_z() * each + i] = sums[i % rows * stride + i / rows];
    }
    if (!comes_last(p.counters, tile, parts, flags)) return;
    for (uint32_t i = gpu::thread(); i < rows * count; i += gpu::threads()) {
      const float sum = sum_of_parts({p.partials}, all + i, each, parts, are_segments);
      sums[i % rows * stride + i / rows] = sum * factors[i / rows];
    }
  } else {
    for (uint32_t i = gpu::thread(); i < rows * count; i += gpu::threads()) {
      float& sum = sums[i % rows * stride + i / rows];
      sum = sum * factors[i / rows];
    }
  }
  gpu::sync();
  const RowTile place(p, gpu::block_y());
  const TileSums sums_of_tile{sums,  stride, rows, place.tile * rows, p.weights[place.weight].rows, place.first_out,
                              first, count};
  finish_tile(p, sums_of_tile, pass_tile, flags, kWideHead);
}

template <class F, class SECOND, class Shape>
CANOPY_DEVICE void wide_products_of(const ProductParams& p) {
  const RowTile place(p, gpu::block_y());
  if (std::is_same_v<F, SECOND> || place.weight == 0) {
    WideProduct<F, Shape> product{p, p.weights[place.weight]};
    product.sum_part(place.tile);
    product.leave_sums();
  } else {
    WideProduct<SECOND, Shape> product{p, p.weights[1]};
    product.sum_part(place.tile);
    product.leave_sums();
  }
  using Product = WideProduct<F, Shape>;
  finish_wide(p, Product::kRows, Product::kColumns, p.segment_supers < p.chunk_supers);
}

template <class F, class SECOND>
CANOPY_DEVICE void wide_products_of_fewer_warps(const ProductParams& p) {
  static_assert(wide_warps(F::kCodeBytes, 64) > kFewerWarps && wide_warps(SECOND::kCodeBytes, 64) > kFewerWarps);
  if constexpr (64 <= most_columns(F::kCodeBytes, gpu::kCopiesAside)) {
    wide_products_of<F, SECOND, WideShape<8, kFewerWarps>>(p);
  }
}

template <class F, class SECOND, uint32_t TILES>
CANOPY_DEVICE void wide_products_of_many_rows(const ProductParams& p) {
  if constexpr (is_roomy(gpu::kArchitecture)) {
    wide_products_of<F, SECOND, WideShape<TILES, kManyRows.warps, kManyRows.warp_tiles>>(p);
  }
}

template <class F, class SECOND, uint32_t TILES>
CANOPY_DEVICE void wide_products(const ProductParams& p) {
  constexpr uint32_t columns = TILES * 8;
  constexpr uint32_t warps = wide_warps(F::kCodeBytes, columns);
  if constexpr (columns <= most_columns(F::kCodeBytes, gpu::kCopiesAside) &&
                (warps < 8 || has_eight_warps(gpu::kArchitecture))) {
    static_assert(warps == wide_warps(SECOND::kCodeBytes, columns));
    wide_products_of<F, SECOND, WideShape<TILES, warps>>(p);
  }
}

/// Of 64 rows of the pass: with fewer, tensor cores have time to spare, and warps by themselves take fewer
/// instructions.
template <class F, class SECOND, WideBlock BLOCK>
CANOPY_DEVICE void warpgroup_products(const ProductParams& p) {
  static_assert(BLOCK.warps % 4 == 0);
  if constexpr (gpu::kHasWarpgroups) {
    wide_products_of<F, SECOND, WideShape<8, BLOCK.warps, BLOCK.warp_tiles, true>>(p);
  }
}

}  // namespace canopy::cuda

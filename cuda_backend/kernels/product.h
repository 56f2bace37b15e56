#pragma once
// Matrix products on tensor cores: the blocks, narrow and wide products, what becomes of the sums, and the kernels by
// type of weight and rows of the pass.

#include <type_traits>

#include "cuda_backend/kernels/cache.h"
#include "cuda_backend/kernels/weights.h"

// The kernels of products, by type of weight and rows of the pass at a time.

/// product_NAME_8, _16, _32 for weights of type F, the second of type SECOND.
#define CANOPY_PRODUCTS_TO_32(NAME, F, SECOND)                          \
  CANOPY_STREAMING_KERNEL(product_##NAME##_8, ProductParams, 256, 2) {  \
    narrow_products<F, SECOND>(p);                                      \
  }                                                                     \
  CANOPY_STREAMING_KERNEL(product_##NAME##_16, ProductParams, 128, 4) { \
    wide_products<F, SECOND, 2>(p);                                     \
  }                                                                     \
  CANOPY_STREAMING_KERNEL(product_##NAME##_32, ProductParams, 128, 4) { \
    wide_products<F, SECOND, 4>(p);                                     \
  }
/// With kManyRows.
#define CANOPY_PRODUCTS_OF_MANY_ROWS(NAME, F, SECOND)                       \
  CANOPY_STREAMING_KERNEL(product_##NAME##_16_384, ProductParams, 256, 1) { \
    wide_products_of_many_rows<F, SECOND, 2>(p);                            \
  }                                                                         \
  CANOPY_STREAMING_KERNEL(product_##NAME##_32_384, ProductParams, 256, 1) { \
    wide_products_of_many_rows<F, SECOND, 4>(p);                            \
  }
#define CANOPY_PRODUCTS_OF_64(NAME, F)                                  \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64, ProductParams, 256, 2) { \
    wide_products<F, F, 8>(p);                                          \
  }
/// With kFewerWarps.
#define CANOPY_PRODUCTS_OF_64_6(NAME, F, SECOND)                          \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_6, ProductParams, 192, 2) { \
    wide_products_of_fewer_warps<F, SECOND>(p);                           \
  }
/// By warpgroups, with blocks of so many rows of the weight.
#define CANOPY_PRODUCTS_OF_WARPGROUPS(NAME, F, SECOND)                                 \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_warpgroups_384, ProductParams, 256, 1) { \
    warpgroup_products<F, SECOND, kManyRows>(p);                                       \
  }                                                                                    \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_warpgroups_256, ProductParams, 256, 2) { \
    warpgroup_products<F, SECOND, kTwoWarpgroups>(p);                                  \
  }                                                                                    \
  CANOPY_STREAMING_KERNEL(product_##NAME##_64_warpgroups_192, ProductParams, 128, 3) { \
    warpgroup_products<F, SECOND, kOneWarpgroup>(p);                                   \
  }
#define CANOPY_PRODUCTS(NAME, F)           \
  CANOPY_PRODUCTS_TO_32(NAME, F, F)        \
  CANOPY_PRODUCTS_OF_MANY_ROWS(NAME, F, F) \
  CANOPY_PRODUCTS_OF_64(NAME, F)           \
  CANOPY_PRODUCTS_OF_64_6(NAME, F, F)      \
  CANOPY_PRODUCTS_OF_WARPGROUPS(NAME, F, F)
/// Of types of which no block has more than kFewerWarps.
#define CANOPY_PRODUCTS_OF_WIDE_TYPE(NAME, F) \
  CANOPY_PRODUCTS_TO_32(NAME, F, F)           \
  CANOPY_PRODUCTS_OF_64(NAME, F)
/// Two types take more registers than 64 rows of the pass leave to eight warps.
#define CANOPY_PRODUCTS_OF_TWO(NAME, F, SECOND) \
  CANOPY_PRODUCTS_TO_32(NAME, F, SECOND)        \
  CANOPY_PRODUCTS_OF_MANY_ROWS(NAME, F, SECOND) \
  CANOPY_PRODUCTS_OF_64_6(NAME, F, SECOND)      \
  CANOPY_PRODUCTS_OF_WARPGROUPS(NAME, F, SECOND)

namespace canopy::cuda {

// Products of a weight with the rows of a pass, on tensor cores: what narrow and wide ones share.
//
// The numeric contract: a row's sums are made of the same instructions in the same order at every width. An instruction
// multiplies 16 rows of the weight with 8 rows of the pass, and four columns of each of four neighbouring blocks of 32,
// which the four lanes of a quad have; eight instructions make a step of 128 columns. Steps follow each other within a
// segment, which begins from zero; the one or two segments of a chunk are added, then chunks in ascending order. Where
// segments and chunks begin depends on the weight's shape alone.
//
// Weights go through a ring of stages in shared memory, which each warp has for itself, so that reading them needs no
// barrier; the first stages are asked for before the kernel waits for those before it.

/// A step of a row of the pass as halves is this many units.
constexpr uint32_t kStepUnits = kStep * 2 / sizeof(Unit);

// ---- sums of 32 columns as halves -----------------------------------------------------------------------------------
// Where tensor cores add in halves at twice the rate, a quantized weight's products are added in halves through two
// instructions, that is 32 columns, and those sums in f32. A sum is then rounded as its operands are. For that it has
// to be where halves have all their bits: weights in tiles are less than 2^-2 (weight_tiles.cpp), and each step of a
// row of the pass is raised until its largest element is 2^11 to 2^12, by 2^15 at most. So 32 products never come to
// 2^15, and what is 2^-29 of that still has all bits. What a step was raised by, its sums are divided by again.

template <class F>
constexpr bool kAddsHalves = adds_slowly(gpu::kArchitecture) && F::kScaled;

/// Raises the halves of a step of a row, of which this lane and its neighbours among 16 have a unit each, by a power of
/// two that depends on those alone, and returns it as two halves.
CANOPY_DEVICE uint32_t raise_step(Unit& unit) {
  constexpr uint32_t wanted = 26, one = 15, most_raise = 15, exponent = half_twice(31u << 10);  // wanted: 2^11
  uint32_t largest = half_twice((wanted - most_raise) << 10);  // what is smaller is not raised more
  CANOPY_UNROLL
  for (uint32_t word : unit.words) largest = gpu::half2_max(largest, gpu::half2_absolute(word));
  CANOPY_UNROLL
  for (uint32_t mask = 1; mask < kStepUnits; mask *= 2) {
    largest = gpu::half2_max(largest, gpu::shuffle_xor(largest, mask));
  }
  largest = gpu::half2_max(largest, gpu::permute(largest, 0, 0x1032));
  const uint32_t raise = half_twice((wanted + one) << 10) - (largest & exponent);
  CANOPY_UNROLL
  for (uint32_t& word : unit.words) word = gpu::half2_mul(word, raise);
  return raise;
}
/// What sums are multiplied by for it.
CANOPY_DEVICE float lower_of(uint32_t raise) {
  return gpu::from_bits(((127u + 15u) << 23) - ((raise & 31u << 26) >> 3));
}

/// sums += products of 32 columns, whose rows of the pass, two of them in this lane, were raised.
CANOPY_DEVICE void multiply_raised(float (&sums)[4], const uint32_t (&a)[2][4], const uint32_t (&b)[2][2],
                                   const float (&lower)[2]) {
  uint32_t halves[2] = {};
  CANOPY_UNROLL
  for (uint32_t half = 0; half < 2; ++half) gpu::multiply_to_halves(halves, a[half], b[half]);
  CANOPY_UNROLL
  for (uint32_t e = 0; e < 4; ++e) {
    sums[e] = fmaf(e % 2 == 0 ? low_half(halves[e / 2]) : high_half(halves[e / 2]), lower[e % 2], sums[e]);
  }
}

/// Steps of some rows of the pass in shared memory, each in eight slots (half_place). SLOT and ROW are the bytes from
/// one slot or row to the next. Either a row's slots lie together or a slot's rows; what the larger of the two has
/// beyond lets lanes use different banks.
template <uint32_t SLOT, uint32_t ROW>
struct Staged {
  uint32_t begin, from;  // from: where this lane loads from row 0

  CANOPY_DEVICE explicit Staged(uint32_t first) : begin(first), from(first + gpu::lane() % 4 * 8) {}

  /// Unit `unit` of a row.
  CANOPY_DEVICE void store(uint32_t row, uint32_t unit, const Unit& halves) const {
    gpu::Shared<Unit>(begin + row * ROW + unit / 2 * SLOT + unit % 2 * 16, 1)[0] = halves;
  }
  /// What an instruction takes of a slot: of columns 8 octet + 4 half ... + 3, slot 2 octet + half.
  CANOPY_DEVICE void load(uint32_t row, uint32_t slot, uint32_t (&b)[2]) const {
    const WordPair pair = gpu::Shared<WordPair>(from + slot * SLOT + row * ROW, 1)[0];
    b[0] = pair.first;
    b[1] = pair.second;
  }
};

/// Steps of a wide product's rows of the pass, as warps load them. Behind the rows of a slot there is room for eight
/// numbers.
template <uint32_t COLUMNS>
struct WarpRows : Staged<(COLUMNS + 1) * 32, 32> {
  static constexpr uint32_t kSlot = (COLUMNS + 1) * 32;
  using Staged<kSlot, 32>::Staged;
};

/// The same as warpgroups read them: of a slot first what the first eight rows of an instruction's operand are, then
/// the others. What a slot has beyond lets the halves of a warp, which store a row each, use different banks.
template <uint32_t COLUMNS>
struct WarpgroupRows {
  static constexpr uint32_t kApart = COLUMNS * 16, kSlot = 2 * kApart + 16;
  static_assert(kSlot % 16 == 0);
  uint32_t begin;

  CANOPY_DEVICE explicit WarpgroupRows(uint32_t first) : begin(first) {}

  /// Unit `unit` of a row, in which two lanes of a quad have two words each: the first is of the first eight rows.
  CANOPY_DEVICE void store(uint32_t row, uint32_t unit, const Unit& halves) const {
    const uint32_t at = begin + unit / 2 * kSlot + row * 16 + unit % 2 * 8;
    gpu::Shared<WordPair>(at, 1)[0] = {halves.words[0], halves.words[2]};
    gpu::Shared<WordPair>(at + kApart, 1)[0] = {halves.words[1], halves.words[3]};
  }
  CANOPY_DEVICE uint32_t operand(uint32_t slot) const {
    return gpu::warpgroup_operand(begin, kApart) + slot * (kSlot / 16);
  }
};

/// What the sums of a row of the pass are multiplied by: the norm's factor and the unit of its halves. Of a norm, the
/// block that `leads` leaves the unit that the row gets next. For one warp.
CANOPY_DEVICE void make_factor(const ProductParams& p, uint32_t row, bool leads, float& to) {
  const float unit = Span<const float>{p.in.units}[row];
  const float factor = p.norm_eps > 0 ? norm_factor(p.in, row, p.norm_eps) : 1.0f;
  if (gpu::lane() != 0) return;
  to = factor * unit;
  if (leads && p.norm_eps > 0) Span<float>{p.in.next_units}[row] = unit_of(factor);
}

/// The factors of rows first ... of the pass, `count` of them; rows beyond its end have that of the last.
/// `factors` by value: an object that a called function refers to lies in local memory, with all that is in it.
CANOPY_CALLED void make_factors(const ProductParams& p, uint32_t first, uint32_t count, bool leads,
                                gpu::Shared<float> factors) {
  for (uint32_t n = gpu::warp(); n < count; n += gpu::threads() / 32) {
    make_factor(p, first + n < p.width ? first + n : p.width - 1, leads, factors[n]);
  }
}

struct SharedMemory {
  template <class T>
  CANOPY_DEVICE T read(uint32_t at) const {
    return gpu::Shared<T>(at, 1)[0];
  }
};

/// A lane's part of 16 rows and 128 columns of a weight, whose step and scales are in shared memory: two blocks.
template <class F>
struct Fragment {
  TileBlock<SharedMemory> blocks[2];
  HalfScale scales[2];

  CANOPY_DEVICE Fragment(uint32_t step, uint32_t super, uint32_t parity)
      : blocks{{{}, step, super, gpu::lane()}, {{}, step, super, gpu::lane() + 32}},
        scales{F::half_scale(blocks[0], parity), F::half_scale(blocks[1], parity)} {}

  /// The words that an instruction takes of it, which works on columns 8 octet + 4 half ... + 3 of the blocks.
  CANOPY_DEVICE void decode(uint32_t octet, uint32_t half, uint32_t (&a)[4]) const {
    uint32_t pairs[2][2];
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 2; ++i) F::pairs(blocks[i], octet, half, scales[i], pairs[i]);
    a[0] = pairs[0][0];
    a[1] = pairs[1][0];
    a[2] = pairs[0][1];
    a[3] = pairs[1][1];
  }
};

/// Begins to copy a run of UNITS units of 16 bytes; `to` and `from` are where this lane's first unit is.
template <uint32_t UNITS, uint32_t FIRST = 0>
CANOPY_DEVICE void copy_units(uint32_t to, uint64_t from, uint64_t policy) {
  if constexpr (FIRST + 32 <= UNITS) {
    gpu::copy_async<FIRST * 16>(to, from, policy);
    copy_units<UNITS, FIRST + 32>(to, from, policy);
  } else if constexpr (FIRST < UNITS) {
    if (gpu::lane() < UNITS - FIRST) gpu::copy_async<FIRST * 16>(to, from, policy);
  }
}

/// Begins to copy STEPS steps of a tile, from `step` on, and the scales behind them.
template <class F, uint32_t STEPS>
CANOPY_DEVICE void copy_steps(uint32_t to, uint64_t tile, uint32_t step, uint64_t policy) {
  constexpr uint32_t step_units = STEPS * F::kStepBytes / 16, super_units = F::kSuperBytes / 16;
  const uint32_t lane = gpu::lane() * 16;
  if constexpr (STEPS == 2) {
    copy_units<step_units + super_units>(to + lane, tile + lane, policy);
  } else {
    copy_units<step_units>(to + lane, tile + step * F::kStepBytes + lane, policy);
    copy_units<super_units>(to + step_units * 16 + lane, tile + 2 * F::kStepBytes + lane, policy);
  }
}

/// The steps of one chunk of a weight's columns.
struct ChunkSteps {
  uint32_t begin, middle, end;  // the second segment begins at `middle`
};
CANOPY_DEVICE ChunkSteps chunk_steps(const ProductParams& p, const WeightParams& weight, uint32_t chunk) {
  const uint32_t steps = weight.steps(), begin = chunk * p.chunk_supers * 2;
  const uint32_t middle = begin + p.segment_supers * 2, end = begin + p.chunk_supers * 2;
  return {begin < steps ? begin : steps, middle < steps ? middle : steps, end < steps ? end : steps};
}

// What a block does with the sums of its tile, when they are complete: the op's own part.

/// The block's part of a stacked product: of which weight, and which of its blocks.
struct RowTile {
  uint32_t weight, tile, first_out;

  CANOPY_DEVICE RowTile(const ProductParams& p, uint32_t block)
      : weight(block < p.row_tiles[0] ? 0 : 1),
        tile(block - weight * p.row_tiles[0]),
        first_out(weight * p.weights[0].rows) {}
};

/// The sums of `rows` rows of a weight and `count` rows of the pass, in shared memory.
struct TileSums {
  gpu::Shared<float> data;
  uint32_t stride;      // of a row of the weight
  uint32_t rows;        // a multiple of kTileRows, or where squares are summed kSquareBlock
  uint32_t weight_row;  // the first, in its weight
  uint32_t weight_end;  // rows of the weight
  uint32_t first_out;   // what the weight's first row is of all the product's outputs
  uint32_t first;       // row of the pass
  uint32_t count;

  CANOPY_DEVICE float& at(uint32_t r, uint32_t n) const { return data[r * stride + n]; }
  CANOPY_DEVICE bool has(uint32_t r) const { return weight_row + r < weight_end; }
};

CANOPY_DEVICE void finish_store(const ProductParams& p, const TileSums& sums) {
  const Span<float> out{p.out};
  const uint32_t offset = p.out_offset + sums.first_out + sums.weight_row;
  for (uint32_t i = gpu::thread(); i < sums.rows * sums.count; i += gpu::threads()) {
    const uint32_t n = i / sums.rows, r = i % sums.rows;
    if (sums.has(r)) out[uint64_t{sums.first + n} * p.out_stride + offset + r] = sums.at(r, n);
  }
}

/// x += sums; what the next norm's activations and their squares are, and aux.
CANOPY_DEVICE void finish_add(const ProductParams& p, const TileSums& sums) {
  const ActivationsParams& out = p.out_activations;
  const Span<float> x{p.out}, squares{out.squares}, aux{p.aux};
  const Span<const float> norm{p.norm};
  for (uint32_t i = gpu::thread(); i < sums.rows * sums.count; i += gpu::threads()) {
    const uint32_t n = i / sums.rows, r = i % sums.rows, row = sums.weight_row + r;
    const uint64_t w = sums.first + n;
    float value = 0;
    if (sums.has(r)) {
      value = x[w * sums.weight_end + row] + sums.at(r, n);
      x[w * sums.weight_end + row] = value;
      store_activation(out, w, row, value * norm[row], next_unit(out, w));
      if (p.aux != 0) aux[w * p.aux_stride + p.aux_offset + row] = value;
    }
    sums.at(r, n) = value;
  }
  gpu::sync();
  const uint32_t blocks = sums.rows / kSquareBlock;
  for (uint32_t i = gpu::thread(); i < blocks * sums.count; i += gpu::threads()) {
    const uint32_t n = i / blocks, block = i % blocks;
    if (!sums.has(block * kSquareBlock)) continue;
    float sum = 0;
    for (uint32_t r = block * kSquareBlock; r < (block + 1) * kSquareBlock; ++r) {
      sum = fmaf(sums.at(r, n), sums.at(r, n), sum);
    }
    squares[uint64_t{sums.first + n} * out.blocks + sums.weight_row / kSquareBlock + block] = sum;
  }
}

/// The factor that a gate goes through is 1 / (1 + exp(-steep)).
CANOPY_DEVICE float steep(const ProductParams& p, float gate) {
  return p.gelu != 0 ? 1.59576912f * (gate + 0.044715f * gate * gate * gate) : gate;
}

/// Even rows of the weight are gates, odd ones what they gate.
CANOPY_DEVICE void finish_swiglu(const ProductParams& p, const TileSums& sums) {
  const uint32_t pairs = sums.rows / 2;
  for (uint32_t i = gpu::thread(); i < pairs * sums.count; i += gpu::threads()) {
    const uint32_t n = i / pairs, pair = i % pairs;
    if (!sums.has(2 * pair)) continue;
    const float gate = sums.at(2 * pair, n), up = sums.at(2 * pair + 1, n);
    store_activation(p.out_activations, sums.first + n, sums.weight_row / 2 + pair,
                     gate / (1.0f + expf(-steep(p, gate))) * up, 1);
  }
}

/// Leaves the sums as projections; a head is finished by the block that brings its last rows. `done`: two words of
/// shared memory for the heads that this block finishes. `room`: floats of shared memory, kMostHeadDim for each warp at
/// most; the sums may lie in it.
CANOPY_DEVICE void finish_heads(const ProductParams& p, const TileSums& sums, uint32_t pass_tile,
                                const gpu::Shared<uint32_t>& done, uint32_t room) {
  const uint32_t head_dim = p.heads.cache.head_dim, heads = p.heads.heads + 2 * p.heads.cache.kv_heads;
  const uint32_t row = p.out_offset + sums.first_out + sums.weight_row;
  const uint32_t left = sums.weight_end - sums.weight_row, end = row + (sums.rows < left ? sums.rows : left);
  finish_store(p, sums);
  gpu::fence();
  gpu::sync();
  const uint32_t first_head = row / head_dim, last_head = (end - 1) / head_dim;  // at most 65, as heads have 8 rows
  if (gpu::thread() == 0) {
    uint64_t mask = 0;
    for (uint32_t head = first_head; head <= last_head; ++head) {
      const uint32_t from = head * head_dim, to = from + head_dim;
      const uint32_t brought = (to < end ? to : end) - (from > row ? from : row);
      uint32_t* const counter = gpu::element<uint32_t>(p.head_counters, pass_tile * heads + head);
      if (gpu::atomic_add(counter, brought) + brought != head_dim) continue;
      *counter = 0;
      mask |= uint64_t{1} << (head - first_head);
    }
    done[0] = static_cast<uint32_t>(mask);
    done[1] = static_cast<uint32_t>(mask >> 32);
  }
  gpu::sync();
  const uint64_t mask = done[0] | uint64_t{done[1]} << 32;
  if (mask == 0) return;
  gpu::fence();
  const gpu::Shared<float> values(room + gpu::warp() * head_dim * 4, head_dim);
  const uint32_t pairs = (last_head - first_head + 1) * sums.count;
  for (uint32_t i = gpu::warp(); i < pairs; i += gpu::threads() / 32) {
    const uint32_t head = i / sums.count;
    if ((mask >> head & 1u) != 0) finish_head(p.heads, first_head + head, sums.first + i % sums.count, values);
  }
}

CANOPY_DEVICE void finish_tile(const ProductParams& p, const TileSums& sums, uint32_t pass_tile,
                               const gpu::Shared<uint32_t>& done, uint32_t room) {
  switch (p.kind) {
    case ProductKind::store: return finish_store(p, sums);
    case ProductKind::add: return finish_add(p, sums);
    case ProductKind::swiglu: return finish_swiglu(p, sums);
    case ProductKind::heads: return finish_heads(p, sums, pass_tile, done, room);
  }
}

// Products with up to 8 rows of the pass. Each warp has 16 rows of the weight and one chunk of its columns; warps share
// nothing until their sums are complete, so the loop has no barrier of the block, and the only thing that is waited for
// is memory. What a block has of a chunk's columns of the pass, each warp brings for itself.
//
// Grid: blocks of row_warps * 16 rows, of the first weight, then of the second.

/// Shared memory: factors and flags, the warps' rings, then their rows of the pass. Sums take the place of the rings.
struct NarrowRoom {
  static constexpr uint32_t kHead = kNarrowHead;
  uint32_t ring, staged;  // of this warp

  CANOPY_DEVICE NarrowRoom(const ProductParams& p, uint32_t stage_bytes, uint32_t row_bytes) {
    const uint32_t ring_bytes = p.stages * stage_bytes, warps = gpu::threads() / 32;
    ring = kHead + gpu::warp() * ring_bytes;
    staged = kHead + warps * ring_bytes + gpu::warp() * narrow_rows(p.width) * row_bytes;
  }
};

/// The rows of activations that a product is of: all of the pass.
struct PassRows {
  uint32_t count;  // at most p.width

  CANOPY_DEVICE static uint32_t row(uint32_t n) { return n; }
  CANOPY_DEVICE static void factors(const ProductParams& p, const gpu::Shared<float>& to) {
    make_factors(p, 0, p.width, gpu::block_x() == 0, to);
  }
};

/// The sums of one chunk of one warp's rows.
template <class F, class Rows>
CANOPY_DEVICE void narrow_chunk(const ProductParams& p, const WeightParams& weight, uint32_t group, uint32_t chunk,
                                const Rows& rows, float (&total)[4]) {
  constexpr uint32_t steps_of_stage = narrow_steps(F::kBytes), row_bytes = narrow_row(steps_of_stage);
  constexpr uint32_t stage_bytes = steps_of_stage * F::kStepBytes + F::kSuperBytes;
  const NarrowRoom room(p, stage_bytes, row_bytes);
  const ChunkSteps range = chunk_steps(p, weight, chunk);
  const uint64_t policy = gpu::read_once();
  const uint64_t tiles = weight.tiles + uint64_t{group} * weight.supers() * F::kBytes;
  const auto copy = [&](uint32_t step, uint32_t stage) {
    if (step < range.end) {
      copy_steps<F, steps_of_stage>(room.ring + stage * stage_bytes, tiles + uint64_t{step / 2} * F::kBytes, step % 2,
                                    policy);
    }
    gpu::end_copy_group();
  };
  for (uint32_t i = 0; i < p.stages; ++i) copy(range.begin + i * steps_of_stage, i);
  gpu::let_next_start();
  gpu::wait_for_earlier();
  const gpu::Shared<float> factors(0, kNarrow);
  constexpr uint32_t units = steps_of_stage * kStepUnits, rows_at_once = 32 / units, batches = kNarrow / rows_at_once;
  const uint32_t unit = gpu::lane() % units, last_row = rows.count - 1;
  const auto row_of_batch = [&](uint32_t i) {
    return rows_at_once == 1 || p.width > 1 ? i * rows_at_once + gpu::lane() / units : 0;
  };
  uint64_t from = p.in.halves + (uint64_t{range.begin} * kStepUnits + unit) * sizeof(Unit);  // of the stage to load
  gpu::keep(from);
  Unit next[batches];
  // One row, or all: more choices would take longer than rows that there are not.
  const auto each_batch = [&](const auto& of_batch) {
    CANOPY_UNROLL
    for (uint32_t i = 0; i < batches; ++i) {
      if (i == 1 && p.width == 1) break;
      of_batch(i);
    }
  };
  const auto load = [&](uint32_t step) {
    if (step + unit / kStepUnits >= range.end) return;
    each_batch([&](uint32_t i) {
      const uint32_t n = row_of_batch(i), row = rows.row(n < last_row ? n : last_row);
      gpu::load(from + uint64_t{row} * p.in.stride * 2, next[i].words);
    });
    from += units * sizeof(Unit);
  };
  load(range.begin);
  rows.factors(p, factors);  // for later
  Staged<32, row_bytes> staged(room.staged);
  // Lanes of rows that there are not take the last: what comes of it is nobody's.
  staged.from += (gpu::lane() / 4 < rows.count ? gpu::lane() / 4 : rows.count - 1) * row_bytes;
  gpu::keep(staged.from);
  // What sums with a step of a row are multiplied by, behind the row's slots.
  const auto lowers_of = [&](uint32_t row) {
    return gpu::Shared<float>(room.staged + steps_of_stage * kStep * 2 + row * row_bytes, steps_of_stage);
  };
  uint32_t pair[2];  // the rows of this lane's sums
  for (uint32_t e = 0; e < 2; ++e) pair[e] = gpu::lane() % 4 * 2 + e < last_row ? gpu::lane() % 4 * 2 + e : last_row;
  uint32_t stage = 0, first = range.begin;
  for (uint32_t segment = 0; segment < 2; ++segment) {
    const uint32_t end = segment == 0 ? range.middle : range.end;
    float sums[4] = {};
    for (; first < end; first += steps_of_stage) {
      wait_for_stage(p.stages);
      // Made before the steps, so that what both have of the scales is read once.
      const uint32_t at = room.ring + stage * stage_bytes, super = at + steps_of_stage * F::kStepBytes;
      const Fragment<F> weights[2] = {{at, super, steps_of_stage == 2 ? 0 : first % 2},
                                      {at + (steps_of_stage - 1) * F::kStepBytes, super, 1}};
      each_batch([&](uint32_t i) {
        if constexpr (kAddsHalves<F>) {
          const uint32_t raise = raise_step(next[i]);
          if (unit % kStepUnits == 0) lowers_of(row_of_batch(i))[unit / kStepUnits] = lower_of(raise);
        }
        staged.store(row_of_batch(i), unit, next[i]);
      });
      load(first + steps_of_stage);
      gpu::sync_warp();
      CANOPY_UNROLL
      for (uint32_t i = 0; i < steps_of_stage; ++i) {
        if (first + i >= end) break;
        float lower[2] = {1, 1};
        CANOPY_UNROLL
        for (uint32_t e = 0; kAddsHalves<F> && e < 2; ++e) lower[e] = lowers_of(pair[e])[i];
        CANOPY_UNROLL
        for (uint32_t octet = 0; octet < 4; ++octet) {
          uint32_t a[2][4], b[2][2];
          CANOPY_UNROLL
          for (uint32_t half = 0; half < 2; ++half) {
            weights[i].decode(octet, half, a[half]);
            staged.load(0, i * 8 + octet * 2 + half, b[half]);
            if constexpr (!kAddsHalves<F>) gpu::multiply(sums, a[half], b[half]);
          }
          if constexpr (kAddsHalves<F>) multiply_raised(sums, a, b, lower);
        }
      }
      gpu::sync_warp();
      copy(first + p.stages * steps_of_stage, stage);
      stage = stage + 1 == p.stages ? 0 : stage + 1;
    }
    CANOPY_UNROLL
    for (uint32_t e = 0; e < 4; ++e) total[e] = total[e] + sums[e] * weight.unit;
  }
}

/// The chunks' sums are in shared memory.
CANOPY_CALLED void finish_narrow(const ProductParams& p) {
  const RowTile place(p, gpu::block_x());
  const uint32_t rows = p.row_warps * kTileRows, chunks = gpu::threads() / 32 / p.row_warps, stride = p.width | 1u;
  const gpu::Shared<float> sums(NarrowRoom::kHead, chunks * rows * stride), factors(0, kNarrow);
  for (uint32_t i = gpu::thread(); i < rows * p.width; i += gpu::threads()) {
    const uint32_t at = i % rows * stride + i / rows;
    float sum = sums[at];
    for (uint32_t c = 1; c < chunks; ++c) sum = sum + sums[c * rows * stride + at];
    sums[at] = sum * factors[i / rows];
  }
  gpu::sync();
  const gpu::Shared<uint32_t> done(32, 2);
  const TileSums tile{sums, stride, rows, place.tile * rows, p.weights[place.weight].rows, place.first_out, 0, p.width};
  finish_tile(p, tile, 0, done, NarrowRoom::kHead + chunks * rows * stride * 4);
}

template <class F, class Rows>
CANOPY_DEVICE void narrow_product(const ProductParams& p, const WeightParams& weight, uint32_t row_tile,
                                  const Rows& pass_rows) {
  const uint32_t wanted = row_tile * p.row_warps + gpu::warp() % p.row_warps, last = weight.groups() - 1;
  float total[4] = {};
  narrow_chunk<F>(p, weight, wanted < last ? wanted : last, gpu::warp() / p.row_warps, pass_rows, total);
  gpu::sync();  // the rings are free
  const uint32_t row = gpu::warp() % p.row_warps * kTileRows + gpu::lane() / 4, chunk = gpu::warp() / p.row_warps;
  const uint32_t stride = p.width | 1u, rows = p.row_warps * kTileRows;
  const gpu::Shared<float> sums(NarrowRoom::kHead, gpu::threads() / 2 * stride);
  CANOPY_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t n = gpu::lane() % 4 * 2 + i % 2;
    if (n < p.width) sums[(chunk * rows + row + i / 2 * 8) * stride + n] = total[i];
  }
  gpu::sync();
}

/// SECOND: the type of the second weight.
template <class F, class SECOND>
CANOPY_DEVICE void narrow_products(const ProductParams& p) {
  const RowTile place(p, gpu::block_x());
  if (std::is_same_v<F, SECOND> || place.weight == 0) {
    narrow_product<F>(p, p.weights[place.weight], place.tile, PassRows{p.width});
  } else {
    narrow_product<SECOND>(p, p.weights[1], place.tile, PassRows{p.width});
  }
  finish_narrow(p);
}

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

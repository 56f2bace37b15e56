#pragma once
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

#include <type_traits>

#include "cuda_backend/kernels/heads.h"
#include "cuda_backend/kernels/weights.h"

namespace canopy::cuda {

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

}  // namespace canopy::cuda

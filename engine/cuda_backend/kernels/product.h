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

#include "engine/cuda_backend/kernels/heads.h"
#include "engine/cuda_backend/kernels/weights.h"

namespace canopy::cuda {

/// Halves of a row of the pass in shared memory: a step's 32 units of 4 columns. The places of the units let 16 lanes, of
/// four rows and four blocks, read from different banks.
constexpr uint32_t kStagedRowBytes = kStep * 2;
CANOPY_DEVICE uint32_t staged_at(uint32_t row, uint32_t q, uint32_t octet, uint32_t half) {
  return row * kStagedRowBytes + ((octet >> 1) * 16 + ((((octet & 1u) << 1) | half) ^ (row & 3u)) * 4 + q) * 8;
}

/// Four columns of a row of the pass, 4 * lane ... + 3 of a step.
struct alignas(16) Quad {
  float values[4];
};
CANOPY_DEVICE Quad load_quad(const ActivationsParams& in, uint32_t row, uint32_t step) {
  return Span<const Quad>{in.values}[(uint64_t{row} * in.stride + step * kStep) / 4 + gpu::lane()];
}
CANOPY_DEVICE void stage_quad(uint32_t to, uint32_t row, const Quad& quad, float factor) {
  const uint32_t q = gpu::lane() / 8, octet = gpu::lane() % 8 / 2;
  const gpu::Shared<WordPair> pair(to + staged_at(row, q, octet, gpu::lane() % 2), 1);
  pair[0] = {gpu::pack_halves(quad.values[0] * factor, quad.values[1] * factor),
             gpu::pack_halves(quad.values[2] * factor, quad.values[3] * factor)};
}

/// The norm's factors of rows first ... of the pass, `count` of them; rows beyond its end have that of the last.
CANOPY_CALLED void make_factors(const ProductParams& p, uint32_t first, uint32_t count,
                                const gpu::Shared<float>& factors) {
  for (uint32_t n = gpu::warp(); n < count; n += gpu::threads() / 32) {
    const uint32_t row = first + n < p.width ? first + n : p.width - 1;
    const float factor = p.norm_eps > 0 ? norm_factor(p.in, row, p.norm_eps) : 1.0f;
    if (gpu::lane() == 0) factors[n] = factor;
  }
}

struct SharedMemory {
  template <class T>
  CANOPY_DEVICE T read(uint32_t at) const {
    return gpu::Shared<T>(at, 1)[0];
  }
};

/// A lane's part of 16 rows and 128 columns of a weight, whose step and scales are in shared memory.
template <class F>
struct Fragment {
  TileRow<SharedMemory> rows[2];
  HalfScale scales[2];

  CANOPY_DEVICE Fragment(uint32_t step, uint32_t super, uint32_t parity)
      : rows{{{}, step, super, gpu::lane() / 4}, {{}, step, super, gpu::lane() / 4 + 8}},
        scales{F::half_scale(rows[0], parity, gpu::lane() % 4), F::half_scale(rows[1], parity, gpu::lane() % 4)} {}

  /// The words that an instruction takes of it, which works on columns 8 octet + 4 half ... + 3 of the blocks.
  CANOPY_DEVICE void decode(uint32_t octet, uint32_t half, uint32_t (&a)[4]) const {
    uint32_t pairs[2][2];
    CANOPY_UNROLL
    for (uint32_t h = 0; h < 2; ++h) F::pairs(rows[h], gpu::lane() % 4, octet, half, scales[h], pairs[h]);
    a[0] = pairs[0][0];
    a[1] = pairs[1][0];
    a[2] = pairs[0][1];
    a[3] = pairs[1][1];
  }
};

/// A lane's unit of a row of the pass.
CANOPY_DEVICE void load_staged(uint32_t at, uint32_t (&b)[2]) {
  const WordPair pair = gpu::Shared<WordPair>(at, 1)[0];
  b[0] = pair.first;
  b[1] = pair.second;
}

/// Begins to copy STEPS steps of a tile, from `step` on, and the scales behind them.
template <class F, uint32_t STEPS>
CANOPY_DEVICE void copy_steps(uint32_t to, uint64_t tile, uint32_t step, uint64_t policy) {
  constexpr uint32_t step_units = STEPS * F::kStepBytes / 16, super_units = F::kSuperBytes / 16;
  const uint64_t from = tile + step * F::kStepBytes;
  CANOPY_UNROLL
  for (uint32_t first = 0; first < step_units; first += 32) {
    const uint32_t i = first + gpu::lane();
    if (first + 32 <= step_units || i < step_units) gpu::copy_async(to + 16 * i, from + 16 * i, policy);
  }
  CANOPY_UNROLL
  for (uint32_t first = 0; first < super_units; first += 32) {
    const uint32_t i = first + gpu::lane();
    if (first + 32 <= super_units || i < super_units) {
      gpu::copy_async(to + 16 * (step_units + i), tile + 2 * F::kStepBytes + 16 * i, policy);
    }
  }
}

/// Waits for the first of `stages` groups of copies.
CANOPY_DEVICE void wait_for_stage(uint32_t stages) {
  if (stages >= 4) {
    gpu::wait_for_copies<3>();
  } else if (stages == 3) {
    gpu::wait_for_copies<2>();
  } else if (stages == 2) {
    gpu::wait_for_copies<1>();
  } else {
    gpu::wait_for_copies<0>();
  }
  gpu::sync_warp();
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

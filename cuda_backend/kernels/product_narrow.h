#pragma once
// Products with up to 8 rows of the pass. Each warp has 16 rows of the weight and one chunk of its columns; warps share
// nothing until their sums are complete, so the loop has no barrier of the block, and the only thing that is waited for
// is memory. What a block has of a chunk's columns of the pass, each warp brings for itself.
//
// Grid: blocks of row_warps * 16 rows, of the first weight, then of the second.

#include "cuda_backend/kernels/product_finish.h"

namespace canopy::cuda {

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

}  // namespace canopy::cuda

// x[w] = scale * table[token of row w]; activations = x * norm, with the sums of squares of x. One warp per row.

#include "cuda_backend/kernels/weights.h"

namespace canopy::cuda {
namespace {

struct DeviceMemory {
  uint64_t address;
  template <class T>
  CANOPY_DEVICE T read(uint32_t at) const {
    return *gpu::element<const T>(address + at, 0);
  }
};

template <class F>
CANOPY_DEVICE void embed(const EmbedParams& p) {
  const uint32_t w = gpu::block_x();
  const uint32_t row = Span<const Row>{p.rows}[w].token;
  const uint32_t cols = p.table.cols;
  const Span<const float> norm{p.norm};
  const Span<float> x{p.x}, out{p.out.values};  // halves follow when the row is known
  const uint64_t tiles = p.table.tiles + uint64_t{row / kTileRows} * p.table.supers() * F::kBytes;
  const float unit = F::kScaled ? p.table.unit * kCodeUnit : 1.0f;
  float sum = 0;
  for (uint32_t block = gpu::lane(); block * 32 < cols; block += 32) {
    const uint32_t parity = block / 4 % 2, place = row % kTileRows * 4 + block % 4;
    const TileBlock<DeviceMemory> here{
        {tiles + uint64_t{block / 8} * F::kBytes}, parity * F::kStepBytes, 2 * F::kStepBytes, place};
    const BlockScale scale = F::scale(here, parity);
    for (uint32_t i = 0; i < 32 && block * 32 + i < cols; ++i) {
      const uint32_t k = block * 32 + i;
      float value = F::element(here, i, scale) * unit;
      if (p.scale != 1.0f) value = value * p.scale;
      x[uint64_t{w} * cols + k] = value;
      out[uint64_t{w} * p.out.stride + k] = value * norm[k];
      sum = fmaf(value, value, sum);
    }
  }
  gpu::sync_warp();  // other lanes have written what this one reads
  store_halves(p.out, w, store_squares(p.out, w, sum));
  pad_row(p.out, w);
}

}  // namespace

#define CANOPY_EMBED(NAME, F)                    \
  CANOPY_KERNEL(embed_##NAME, EmbedParams, 32) { \
    embed<F>(p);                                 \
  }

CANOPY_WEIGHT_FORMATS(CANOPY_EMBED)

}  // namespace canopy::cuda

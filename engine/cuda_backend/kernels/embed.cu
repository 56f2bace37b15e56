// x[w] = scale * table[token of row w]; activations = x * norm, with the sums of squares of x. One warp per row.

#include "engine/cuda_backend/kernels/weights.h"

namespace canopy::cuda {
namespace {

template <class Format>
CANOPY_DEVICE void embed(const EmbedParams& p) {
  const uint32_t w = gpu::block_x();
  const uint32_t row = Span<const Row>{p.rows}[w].token;
  const uint32_t cols = p.table.cols;
  const Span<const float> norm{p.norm};
  const Span<float> x{p.x}, out{p.out.values};
  float sum = 0;
  for (uint32_t block = gpu::lane(); block * 32 < cols; block += 32) {
    Block<Format> here;
    here.load(p.table, row, block);
    for (uint32_t i = 0; i < 32 && block * 32 + i < cols; ++i) {
      const uint32_t k = block * 32 + i;
      float value = here.element(i);
      if (p.scale != 1.0f) value = value * p.scale;
      x[uint64_t{w} * cols + k] = value;
      out[uint64_t{w} * p.out.stride + k] = value * norm[k];
      sum = fmaf(value, value, sum);
    }
  }
  store_squares(p.out, w, sum);
  pad_row(p.out, w);
}

}  // namespace

#define CANOPY_EMBED(NAME, Format)               \
  CANOPY_KERNEL(embed_##NAME, EmbedParams, 32) { \
    embed<Format>(p);                            \
  }

CANOPY_WEIGHT_FORMATS(CANOPY_EMBED)

}  // namespace canopy::cuda

#pragma once
// A case for attention: rows over a cache in which everything that they must not see is NaN.

#include <cmath>
#include <limits>
#include <vector>

#include "engine/compute/rows.h"
#include "tests/compute/op_test.h"

namespace canopy::test {

/// Keys and values [slots, kv_heads, head_dim].
struct CacheContents {
  std::vector<float> keys;
  std::vector<float> values;
};

inline CacheContents random_cache(const KvShape& shape, uint32_t seed) {
  Random random(seed);
  const size_t count = size_t{shape.slots} * shape.kv_heads * shape.head_dim;
  return {random.values(count), random.values(count)};
}

/// What a row may see, besides its place in the batch.
struct View {
  AttentionMask mask = AttentionMask::causal;
  uint32_t window = 0;
  bool sinks = false;  // of each head one, random
  float softcap = 0;
};

/// Sets all slots that no row of the batch sees to NaN.
inline void poison_unseen(const KvShape& shape, const RowBatch& batch, const View& view, CacheContents& contents) {
  std::vector<bool> seen(shape.slots);
  for (const Row& row : batch.rows) {
    if (row.ancestor_count == 0) continue;
    const uint32_t own_end = row.position + 1;
    const uint32_t end = view.mask == AttentionMask::causal ? own_end : row.prefix + row.ancestor_count;
    const uint32_t first = view.window > 0 && own_end > view.window ? own_end - view.window : 0;
    for (uint32_t p = first; p < end; ++p) {
      seen[p < row.prefix ? batch.slot_of(p) : batch.ancestors[row.first_ancestor + p - row.prefix]] = true;
    }
  }
  const size_t size = size_t{shape.kv_heads} * shape.head_dim;
  for (uint32_t slot = 0; slot < shape.slots; ++slot) {
    if (seen[slot]) continue;
    std::fill_n(contents.keys.begin() + slot * size, size, std::numeric_limits<float>::quiet_NaN());
    std::fill_n(contents.values.begin() + slot * size, size, std::numeric_limits<float>::quiet_NaN());
  }
}

/// q is [W, heads * head_dim].
inline Results run_attention(Device& device, const KvShape& shape, uint32_t heads, const RowBatch& batch,
                             const std::vector<float>& q, const CacheContents& contents, uint32_t max_positions,
                             const View& view = {}) {
  OpBench bench(device);
  AttentionArgs args;
  args.width = batch.width();
  args.q = bench.buffer(q);
  args.rows = bench.buffer(batch.rows);
  args.ancestors = bench.buffer(batch.ancestors);
  std::vector<uint32_t> pages = batch.pages;
  for (uint32_t i = static_cast<uint32_t>(pages.size()); i * kPagePositions < max_positions; ++i) {
    pages.push_back(batch.pages.empty() ? i : 0);
  }
  args.pages = bench.buffer(pages);
  args.heads = heads;
  args.shape = shape;
  // Sharper than in a model, so that a difference of keys shows.
  args.scale = 2.5f / std::sqrt(static_cast<float>(shape.head_dim));
  args.max_positions = max_positions;
  args.mask = view.mask;
  args.window = view.window;
  args.softcap = view.softcap;
  if (view.sinks) args.sinks = bench.buffer(Random(heads).values(heads));
  args.cache = bench.kv(shape, contents.keys, contents.values);
  Activations* out = bench.output_activations(args.width, heads * shape.value_dim());
  args.out = out;
  bench.run([&](Recorder& r) { r(args); });
  return {bench.result("out", out, args.width, f32_exp)};
}

}  // namespace canopy::test

// K, V of slot to[i] = K, V of slot from[i] as they were before the op

#include <algorithm>
#include <vector>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {

template <>
void compute(const KvMoveArgs& args) {
  require(args.count <= kMaxKvMoves, "kv_move: more than 64 moves.");
  HostKv& cache = host_kv(args.cache, args.shape, "kv_move: cache");
  const auto moves = elements<uint32_t>(args.moves, uint64_t{args.count} * 2, "kv_move: moves");
  for (const uint32_t slot : moves) require(slot < args.shape.slots, "kv_move: a slot lies outside the cache.");

  const size_t size = cache.slot_size();
  std::vector<float> keys;    // [count, kv_heads, head_dim], read before anything is written
  std::vector<float> values;  // [count, kv_heads, head_dim]
  for (uint32_t i = 0; i < args.count; ++i) {
    const uint32_t from = moves[2 * i];
    keys.insert(keys.end(), cache.keys(from), cache.keys(from) + size);
    values.insert(values.end(), cache.values(from), cache.values(from) + size);
  }
  for (uint32_t i = 0; i < args.count; ++i) {
    const uint32_t to = moves[2 * i + 1];
    std::copy_n(keys.data() + i * size, size, cache.keys(to));
    std::copy_n(values.data() + i * size, size, cache.values(to));
  }
}

}  // namespace canopy::reference

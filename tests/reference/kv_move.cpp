// In every layer: K, V of slot to[i] = K, V of slot from[i] as they were before the op

#include <algorithm>
#include <span>
#include <vector>

#include "tests/reference/memory.h"
#include "tests/reference/ops.h"

namespace canopy::reference {
namespace {

void move_slots(HostKv& cache, std::span<const uint32_t> moves) {
  const size_t size = cache.slot_size();
  std::vector<float> keys;    // [count, kv_heads, head_dim], read before anything is written
  std::vector<float> values;  // [count, kv_heads, head_dim]
  for (size_t i = 0; i < moves.size(); i += 2) {
    const uint32_t from = moves[i];
    keys.insert(keys.end(), cache.keys(from), cache.keys(from) + size);
    values.insert(values.end(), cache.values(from), cache.values(from) + size);
  }
  for (size_t i = 0; i < moves.size(); i += 2) {
    const uint32_t to = moves[i + 1];
    std::copy_n(keys.data() + i / 2 * size, size, cache.keys(to));
    std::copy_n(values.data() + i / 2 * size, size, cache.values(to));
  }
}

}  // namespace

template <>
void compute(const KvMoveArgs& args) {
  require(args.count <= kMaxKvMoves, "kv_move: more than 64 moves.");
  const auto moves = elements<uint32_t>(args.moves, uint64_t{args.count} * 2, "kv_move: moves");
  for (const uint32_t slot : moves) require(slot < args.shape.slots, "kv_move: a slot lies outside the cache.");

  require(args.cache != nullptr, "kv_move: no cache.");
  for (uint32_t i = 0; i < args.cache->layers(); ++i) {
    move_slots(host_kv(&args.cache->layer(i), args.shape, "kv_move: cache"), moves);
  }
}

}  // namespace canopy::reference

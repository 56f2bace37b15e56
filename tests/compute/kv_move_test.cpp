#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct KvMoveCase {
  std::vector<uint32_t> moves;  // from, to, from, to, ...
  KvShape shape{100, 3, 16, CacheType::f16};
  uint32_t layers = 2;

  Results operator()(Device& device) const {
    OpBench bench(device);
    KvCache* cache = bench.kv_layers(shape, layers);
    for (uint32_t layer = 0; layer < layers; ++layer) {
      std::vector<float> keys;  // made of layer, slot number and the index of the element in the slot
      for (uint32_t slot = 0; slot < shape.slots; ++slot) {
        for (uint32_t i = 0; i < shape.kv_heads * shape.head_dim; ++i) {
          keys.push_back(static_cast<float>(slot + 200 * layer) + static_cast<float>(i % 8) / 8);
        }
      }
      std::vector<float> values = keys;
      for (float& v : values) v = -v;
      device.write_kv(cache->layer(layer), false, 0, keys);
      if (!shape.is_latent()) device.write_kv(cache->layer(layer), true, 0, values);
    }
    const Buffer* list = bench.buffer(moves);
    const auto count = static_cast<uint32_t>(moves.size() / 2);
    bench.run([&](Recorder& r) { r(KvMoveArgs{list, count, shape, cache}); });
    Results results;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      results.push_back(bench.keys("k", &cache->layer(layer), shape, exact));
      results.push_back(bench.values("v", &cache->layer(layer), shape, exact));
    }
    return results;
  }
};

class KvMoveTest : public OpTest {};

TEST_P(KvMoveTest, ReadsEverySlotBeforeItWrites) {
  std::vector<uint32_t> down, up, cycle;
  for (uint32_t i = 0; i < 64; ++i) {
    down.insert(down.end(), {i + 1, i});
    up.insert(up.end(), {i, i + 1});
    cycle.insert(cycle.end(), {i, (i + 1) % 64});
  }
  const std::pair<const char*, std::vector<uint32_t>> cases[] = {
      {"one", {90, 5}},
      {"to itself", {4, 4}},
      {"swap", {3, 7, 7, 3}},
      {"down", down},
      {"up", up},
      {"cycle", cycle},
      {"one source", {1, 50, 1, 51, 1, 52}},
      {"commit of a path", {80, 40, 83, 41, 99, 42}},
  };
  for (const auto& [name, moves] : cases) {
    SCOPED_TRACE(name);
    compare(KvMoveCase{moves});
  }
}

TEST_P(KvMoveTest, MovesEveryCacheShape) {
  for (const CacheType type : kCacheTypes) {
    for (const uint32_t head_dim : {16u, 32u, 64u, 96u, 128u}) {
      if (!keeps_heads(type, head_dim)) continue;
      for (const uint32_t kv_heads : {1u, 3u}) {
        SCOPED_TRACE(std::string(to_string(type)) + ", head_dim " + std::to_string(head_dim));
        compare(KvMoveCase{{9, 2, 2, 9, 30, 31, 31, 32}, {40, kv_heads, head_dim, type}, 5});
        compare(KvMoveCase{{9, 2, 2, 9, 30, 31, 31, 32}, {40, kv_heads, head_dim, type, head_dim - 8}, 5});
      }
    }
  }
}

CANOPY_OP_TESTS(KvMoveTest);

}  // namespace
}  // namespace canopy::test

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/compute/op_test.h"
#include "tests/compute/rope_data.h"

namespace canopy::test {
namespace {

constexpr float kUntouched = 1016.0f;  // 127 times a half

struct RopeStoreCase {
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  CacheType type;
  uint32_t width;
  bool interleaved = false;
  bool with_q_norm = false;
  bool with_k_norm = false;
  bool with_v_norm = false;
  uint32_t latent_values = 0;
  uint32_t query_offset = 0;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(heads + head_dim + width);
    const uint32_t context = 200;
    const KvShape shape{context, kv_heads, head_dim, type, latent_values};
    const size_t slot_size = size_t{kv_heads} * head_dim;

    RopeStoreArgs args;
    args.width = width;
    args.qkv = bench.buffer(random.values(width * (heads + size_t{shape.planes()} * kv_heads) * head_dim));
    args.rows = bench.buffer(text_and_tree_rows(width, context).rows);
    args.rotation = bench.buffer(rotation_table(context + query_offset, head_dim));
    args.query_offset = query_offset;
    args.q_norm = with_q_norm ? bench.buffer(random.values(head_dim)) : nullptr;
    args.k_norm = with_k_norm ? bench.buffer(random.values(head_dim)) : nullptr;
    args.v_norm = with_v_norm ? bench.buffer(random.values(head_dim)) : nullptr;
    args.norm_eps = 1e-6f;
    args.heads = heads;
    args.shape = shape;
    args.interleaved = interleaved;
    // A value far from any result, so that a slot written by mistake, or not written, is noticed; of q8_0, one that a
    // block can keep.
    const std::vector<float> before(context * slot_size, kUntouched);
    KvLayer* cache = bench.kv(shape, before, before);
    args.cache = cache;
    Buffer* q = heads == 0 ? nullptr : bench.output(size_t{width} * heads * head_dim);
    args.q = q;
    bench.run([&](Recorder& r) { r(args); });
    const Tolerance rounding = type == CacheType::f32   ? f32_rounding
                               : type == CacheType::f16 ? f16_rounding
                                                        : q8_rounding;
    if (shape.is_latent()) {  // whose values are the keys
      Results results = {written("k", bench.keys("k", cache, shape, exact), slot_size, rounding)};
      if (q != nullptr) results.push_back(bench.result("q", q, f32_rounding));
      return results;
    }
    Results results = {written("k", bench.keys("k", cache, shape, exact), slot_size, rounding),
                       with_v_norm ? written("v", bench.values("v", cache, shape, exact), slot_size, rounding)
                                   : bench.values("v", cache, shape, exact)};
    if (q != nullptr) results.push_back(bench.result("q", q, f32_rounding));
    return results;
  }

  /// Sets slots that were not written to 0, as the tolerance should depend only on what the op wrote.
  static Result written(const char* name, Result all, size_t slot_size, Tolerance tolerance) {
    std::vector<float> values = floats(all.words);
    for (size_t i = 0; i < values.size(); i += slot_size) {
      const auto slot = std::span(values).subspan(i, slot_size);
      if (std::all_of(slot.begin(), slot.end(), [](float v) { return v == kUntouched; })) {
        std::fill(slot.begin(), slot.end(), 0.0f);
      }
    }
    return {name, words(values), true, tolerance};
  }
};

class RopeStoreTest : public OpTest {};

TEST_P(RopeStoreTest, AgreesWithTheOracle) {
  static constexpr RopeStoreCase cases[] = {
      {9, 3, 64, CacheType::f16, 1},
      {9, 3, 64, CacheType::f16, 17},
      {4, 2, 32, CacheType::f16, 8, false, true, true},
      {4, 2, 32, CacheType::f32, 33, false, true, true},
      {4, 4, 16, CacheType::f32, 5, true},
      {8, 2, 128, CacheType::f16, 3, true, true, true},
      {2, 1, 128, CacheType::f32, 7, false, true, true},
      {3, 1, 16, CacheType::f16, 4, true},
      {4, 2, 64, CacheType::f32, 2, true, true, false},
      {4, 2, 64, CacheType::f16, 2, false, false, true},
      {0, 3, 64, CacheType::f16, 17, true},
      {0, 2, 32, CacheType::f32, 5, false, false, true},
      {9, 3, 64, CacheType::q8_0, 17},
      {4, 2, 32, CacheType::q8_0, 8, false, true, true},
      {3, 1, 32, CacheType::q8_0, 4, true},
      {6, 3, 96, CacheType::q8_0, 5, false, false, true},
      {2, 2, 160, CacheType::q8_0, 3, true, true, false},
      {8, 2, 128, CacheType::q8_0, 3, true, true, true},
      {4, 1, 256, CacheType::q8_0, 2},
      {0, 3, 64, CacheType::q8_0, 17, true},
      {4, 2, 32, CacheType::f32, 33, false, true, true, true},
      {3, 1, 16, CacheType::f16, 5, false, false, false, true},
      {4, 1, 512, CacheType::f16, 3, false, true, true, true},
      {2, 2, 96, CacheType::q8_0, 7, true, true, true, true},
      {0, 1, 48, CacheType::f16, 9, true, false, false, false, 40},
      {4, 1, 576, CacheType::f32, 5, true, false, true, false, 512},
      {3, 2, 96, CacheType::q8_0, 6, false, false, false, false, 64},
      {4, 2, 64, CacheType::f16, 9, true, false, false, false, 0, 200},
      {3, 1, 32, CacheType::f32, 17, false, true, true, false, 0, 77},
      {2, 1, 96, CacheType::q8_0, 5, false, true, false, true, 0, 200},
      {4, 1, 48, CacheType::f32, 4, true, false, false, false, 40, 200},
  };
  for (const RopeStoreCase& c : cases) {
    SCOPED_TRACE("heads " + std::to_string(c.heads) + "/" + std::to_string(c.kv_heads) + ", head_dim " +
                 std::to_string(c.head_dim) + ", " + to_string(c.type) + ", width " + std::to_string(c.width) +
                 (c.interleaved ? ", interleaved" : ", half") + (c.with_q_norm ? ", q norm" : "") +
                 (c.with_k_norm ? ", k norm" : "") + (c.with_v_norm ? ", v norm" : "") +
                 (c.latent_values != 0 ? ", latent" : "") +
                 (c.query_offset != 0 ? ", queries turn by themselves" : ""));
    compare(c);
  }
}

TEST_P(RopeStoreTest, WritesQueriesAloneWithoutACache) {
  for (const uint32_t head_dim : {16u, 96u, 512u}) {
    SCOPED_TRACE("head_dim " + std::to_string(head_dim));
    compare([&](Device& device) {
      OpBench bench(device);
      Random random(head_dim);
      const uint32_t width = 9, heads = 3, context = 200;
      RopeStoreArgs args;
      args.width = width;
      args.qkv = bench.buffer(random.values(size_t{width} * heads * head_dim));
      args.rows = bench.buffer(text_and_tree_rows(width, context).rows);
      args.rotation = bench.buffer(rotation_table(2 * context, head_dim));
      args.query_offset = head_dim == 96 ? context : 0;
      args.q_norm = bench.buffer(random.values(head_dim));
      args.norm_eps = 1e-6f;
      args.heads = heads;
      args.shape = {context, 0, head_dim, CacheType::f16};
      Buffer* q = bench.output(size_t{width} * heads * head_dim);
      args.q = q;
      bench.run([&](Recorder& r) { r(args); });
      return Results{bench.result("q", q, f32_rounding)};
    });
  }
}

// Values are stored unchanged except for rounding; covers every kind of half, and ties, which go to even.
TEST_P(RopeStoreTest, RoundsValuesToNearestEven) {
  const auto op_case = [](Device& device) {
    OpBench bench(device);
    const KvShape shape{1, 1, 16, CacheType::f16};
    std::vector<float> qkv(16 * 3, 0.0f);
    const float values[16] = {1.0f,          1.0f + 0x1p-11f, 1.0f + 0x1.8p-10f, -1.0f - 0x1p-11f,
                              65504.0f,      -65504.0f,       0x1p-14f,          0x1p-24f,
                              0x1.8p-24f,    0x1.004p-1f,     0x1.002p-1f,       0x1.006p-1f,
                              -0x1.ffep-15f, 0.333333343f,    2049.0f,           2051.0f};
    std::copy(std::begin(values), std::end(values), qkv.begin() + 32);
    RowBatch batch;
    batch.add_text(0, 0);
    RopeStoreArgs args;
    args.width = 1;
    args.qkv = bench.buffer(qkv);
    args.rows = bench.buffer(batch.rows);
    args.rotation = bench.buffer(std::vector<float>(16, 0.5f));
    args.heads = 1;
    args.shape = shape;
    KvLayer* cache = bench.kv(shape, std::vector<float>(16), std::vector<float>(16));
    args.cache = cache;
    args.q = bench.output(16);
    bench.run([&](Recorder& r) { r(args); });
    return Results{bench.values("v", cache, shape, exact)};
  };
  compare(op_case);
}

/// Heads whose blocks have every size of scale, elements on both sides of half a step and on it, and what no scale
/// fits: zeros, infinities, NaN.
std::vector<float> blocks_of_all_kinds(uint32_t count) {
  Random random(11);
  std::vector<float> values = random.values(size_t{count} * 32);
  for (uint32_t b = 0; b < count; ++b) {
    const auto block = std::span(values).subspan(size_t{b} * 32, 32);
    const float scale = std::exp2(static_cast<float>(b % 60) - 40);
    for (float& v : block) v *= scale;
    if (b % 4 == 1) {
      block[0] = 127 * scale;  // the scale is a power of two: halves of it are ties
      for (uint32_t i = 1; i < 32; ++i) {
        const float tie = (static_cast<float>((i * 37 + b) % 127) + 0.5f) * scale;
        const float near[] = {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 2 * tie)};
        block[i] = i % 2 == 0 ? near[i % 3] : -near[i % 3];
      }
    }
    if (b % 19 == 3) std::fill(block.begin(), block.end(), b % 2 == 0 ? 0.0f : -0.0f);
    if (b % 23 == 5) block[b % 32] = std::numeric_limits<float>::infinity();
    if (b % 29 == 7) block[b % 32] = -std::numeric_limits<float>::quiet_NaN();
    if (b % 31 == 9) block[b % 32] = 8.4e6f;  // just too large for a half times 127
  }
  return values;
}

// Without a turn, K is stored as it is, like V: then every bit of the cache must be the oracle's.
TEST_P(RopeStoreTest, RoundsBlocksOfQ8AsTheOracleDoesByTheBit) {
  for (const uint32_t head_dim : {32u, 64u, 96u, 128u, 256u}) {
    for (const bool interleaved : {false, true}) {
      SCOPED_TRACE("head_dim " + std::to_string(head_dim) + (interleaved ? ", interleaved" : ", half"));
      compare([&](Device& device) {
        OpBench bench(device);
        const uint32_t width = 19, kv_heads = 3;
        const KvShape shape{width, kv_heads, head_dim, CacheType::q8_0};
        RowBatch batch;
        for (uint32_t w = 0; w < width; ++w) batch.add_text(0, w);
        std::vector<float> rotation;
        for (uint32_t i = 0; i < width * head_dim / 2; ++i) rotation.insert(rotation.end(), {1.0f, 0.0f});
        RopeStoreArgs args;
        args.width = width;
        args.qkv = bench.buffer(blocks_of_all_kinds(width * 2 * kv_heads * head_dim / 32));
        args.rows = bench.buffer(batch.rows);
        args.rotation = bench.buffer(rotation);
        args.shape = shape;
        args.interleaved = interleaved;
        const std::vector<float> before(size_t{width} * kv_heads * head_dim, kUntouched);
        KvLayer* cache = bench.kv(shape, before, before);
        args.cache = cache;
        bench.run([&](Recorder& r) { r(args); });
        return Results{bench.keys("k", cache, shape, exact), bench.values("v", cache, shape, exact)};
      });
    }
  }
}

CANOPY_OP_TESTS(RopeStoreTest);

}  // namespace
}  // namespace canopy::test

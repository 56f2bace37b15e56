// The numeric contract of single ops: a row's result has the same bits whatever the width of the op, the row's place in
// it, and the slots of its ancestors' K/V.

#include <cmath>

#include "tests/compute/attention_case.h"
#include "tests/compute/contract_rows.h"

namespace canopy::test {
namespace {

TEST_P(ContractTest, Linear) {
  for (const WeightType type : weight_types_under_test()) {
    SCOPED_TRACE(to_string(type));
    Random random(1);
    const uint32_t matrix_rows = 35, cols = columns_for(type, {288})[0];
    const FileMatrix matrix = random.matrix(type, matrix_rows, cols);
    const std::vector<float> inputs = random.values(size_t{pool} * cols);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const Weight* weight = bench.weight(matrix);
      const Activations* in = bench.activations(width, cols, gather(inputs, cols, rows));
      Buffer* out = bench.output(uint64_t{width} * matrix_rows);
      bench.run([&](Recorder& r) { r(LinearArgs{width, weight, in, 1e-5f, out, matrix_rows, 0}); });
      return Results{trimmed(bench.result("out", out, exact), size_t{width} * matrix_rows)};
    });
  }
}

TEST_P(ContractTest, LinearAdd) {
  for (const WeightType type : weight_types_under_test()) {
    SCOPED_TRACE(to_string(type));
    Random random(2);
    const uint32_t matrix_rows = 100, cols = columns_for(type, {160})[0];
    const FileMatrix matrix = random.matrix(type, matrix_rows, cols);
    const std::vector<float> inputs = random.values(size_t{pool} * cols);
    const std::vector<float> residuals = random.values(size_t{pool} * matrix_rows);
    const std::vector<float> norm = random.values(matrix_rows);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const Weight* weight = bench.weight(matrix);
      const Activations* in = bench.activations(width, cols, gather(inputs, cols, rows));
      Buffer* x = bench.buffer(gather(residuals, matrix_rows, rows));
      const Buffer* norm_weight = bench.buffer(norm);
      Activations* out = bench.output_activations(width, matrix_rows);
      bench.run([&](Recorder& r) { r(LinearAddArgs{width, weight, in, x, {norm_weight}, out, nullptr, 0, 0}); });
      return Results{trimmed(bench.result("x", x, exact), size_t{width} * matrix_rows),
                     bench.result("out", out, width, exact), trimmed(bench.norm_probe(out, width), size_t{width} * 4)};
    });
  }
}

TEST_P(ContractTest, LinearSwiglu) {
  for (const WeightType type : weight_types_under_test()) {
    SCOPED_TRACE(to_string(type));
    Random random(3);
    const uint32_t ffn = 37, cols = columns_for(type, {160})[0];
    const FileMatrix gate = random.matrix(type, ffn, cols);
    const FileMatrix up = random.matrix(type, ffn, cols);
    const std::vector<float> inputs = random.values(size_t{pool} * cols);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const Weight* weight = bench.paired_weight(gate, up);
      const Activations* in = bench.activations(width, cols, gather(inputs, cols, rows));
      Activations* out = bench.output_activations(width, ffn);
      bench.run([&](Recorder& r) { r(LinearSwigluArgs{width, weight, in, 1e-5f, out}); });
      return Results{bench.result("out", out, width, exact)};
    });
  }
}

TEST_P(ContractTest, NormAdd) {
  Random random(14);
  for (const uint32_t cols : {100u, 301u}) {
    const std::vector<float> inputs = random.values(size_t{pool} * cols),
                             residuals = random.values(size_t{pool} * cols);
    const std::vector<float> weights = random.values(cols), norms = random.values(cols);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const Buffer* in = bench.buffer(gather(inputs, cols, rows));
      Buffer* x = bench.buffer(gather(residuals, cols, rows));
      const Buffer* weight = bench.buffer(weights);
      const Buffer* norm = bench.buffer(norms);
      Activations* out = bench.output_activations(width, cols);
      bench.run([&](Recorder& r) {
        r(NormAddArgs{.width = width,
                      .in = in,
                      .weight = weight,
                      .eps = 1e-6f,
                      .x = x,
                      .norm = {norm},
                      .out = out,
                      .x_scale = cols == 100 ? 1.0f : 0.3f});
      });
      return Results{trimmed(bench.result("x", x, exact), size_t{width} * cols), bench.result("out", out, width, exact),
                     trimmed(bench.norm_probe(out, width), size_t{width} * 4)};
    });
  }
}

TEST_P(ContractTest, Embed) {
  Random random(4);
  const uint32_t cols = 288;
  const FileMatrix table = random.matrix(WeightType::q4_1, pool, cols);
  const std::vector<float> norm = random.values(cols);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(rows.size());
    RowBatch batch;
    for (const uint32_t row : rows) batch.add_text(row, row);
    const Weight* weight = bench.weight(table);
    Buffer* x = bench.output(uint64_t{width} * cols);
    Activations* out = bench.output_activations(width, cols);
    const Buffer* norm_weight = bench.buffer(norm);
    const Buffer* row_data = bench.buffer(batch.rows);
    bench.run([&](Recorder& r) { r(EmbedArgs{width, weight, row_data, x, {norm_weight}, out}); });
    return Results{trimmed(bench.result("x", x, exact), size_t{width} * cols), bench.result("out", out, width, exact),
                   trimmed(bench.norm_probe(out, width), size_t{width} * 4)};
  });
}

TEST_P(ContractTest, RopeStore) {
  Random random(5);
  for (const CacheType type : {CacheType::f32, CacheType::q8_0}) {  // rounding to halves could hide a difference
    const KvShape shape{257, 2, 32, type};
    const uint32_t heads = 4, in_cols = 8 * 32, slot_size = 64;
    const std::vector<float> qkv = random.values(size_t{pool} * in_cols);
    const std::vector<float> rotation = random.values(size_t{pool} * 2 * 32);
    const std::vector<float> norm = random.values(32);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      RowBatch
          batch;  // a position for each row of the pool, a slot for each place in the pass, as a row may occur twice
      for (uint32_t w = 0; w < width; ++w) batch.add_node(0, w, rows[w], -1);
      const std::vector<float> empty(size_t{shape.slots} * slot_size);
      KvLayer* cache = bench.kv(shape, empty, empty);
      RopeStoreArgs args;
      args.width = width;
      args.qkv = bench.buffer(gather(qkv, in_cols, rows));
      args.rows = bench.buffer(batch.rows);
      args.rotation = bench.buffer(rotation);
      args.query_offset = type == CacheType::f32 ? 0 : pool;
      args.q_norm = args.k_norm = bench.buffer(norm);
      if (type == CacheType::f32) args.v_norm = args.k_norm;
      args.norm_eps = 1e-6f;
      args.heads = heads;
      args.shape = shape;
      args.cache = cache;
      args.q = bench.output(uint64_t{width} * heads * 32);
      bench.run([&](Recorder& r) { r(args); });
      return Results{trimmed(bench.result("q", args.q, exact), size_t{width} * heads * 32),
                     trimmed(bench.keys("k", cache, shape, exact), size_t{width} * slot_size),
                     trimmed(bench.values("v", cache, shape, exact), size_t{width} * slot_size)};
    });
  }
}

/// Row i of the pool: rows of text and of trees in turn, at positions around the edges of chunks.
void add_pool_row(RowBatch& batch, uint32_t i) {
  const uint32_t position = (i * 37) % 200;
  if (i % 2 == 0 || position < 4) {
    batch.add_text(0, position);
    return;
  }
  Row row;
  row.position = position;
  row.prefix = position - 3;
  row.first_ancestor = static_cast<uint32_t>(batch.ancestors.size());
  row.ancestor_count = 4;
  for (uint32_t a = 0; a < 4; ++a) batch.ancestors.push_back(200 + (i * 7 + a * 13) % 50);
  row.slot = batch.ancestors.back();
  batch.rows.push_back(row);
}

TEST_P(ContractTest, Attention) {
  for (const KvShape& shape :
       {KvShape{250, 2, 32, CacheType::f16}, KvShape{250, 3, 64, CacheType::f32}, KvShape{250, 2, 64, CacheType::q8_0},
        KvShape{250, 1, 48, CacheType::f16, 40}, KvShape{250, 1, 96, CacheType::q8_0, 64}}) {
    SCOPED_TRACE(describe(shape));
    const uint32_t heads = shape.kv_heads * 3;
    const uint32_t cols = heads * shape.head_dim;
    const CacheContents contents = random_cache(shape, 6);
    Random random(6);
    const std::vector<float> q = random.values(size_t{pool} * cols);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      RowBatch batch;
      for (const uint32_t row : rows) add_pool_row(batch, row);
      // As in decoding and prefill, the bound on positions differs between narrow and wide passes.
      const uint32_t bound = rows.size() == 1 ? batch.rows[0].position + 1 : 200 + static_cast<uint32_t>(rows.size());
      return run_attention(device, shape, heads, batch, gather(q, cols, rows), contents, bound);
    });
  }
}

/// Row i of a pool of block rows: five slots after its prefix, of which one of the first three is its own.
void add_pool_block_row(RowBatch& batch, uint32_t i) {
  const uint32_t own = i % 3;
  Row row;
  row.prefix = (i * 37) % 190;
  row.position = row.prefix + own;
  row.first_ancestor = static_cast<uint32_t>(batch.ancestors.size());
  row.ancestor_count = 5;
  for (uint32_t a = 0; a < 5; ++a) batch.ancestors.push_back(200 + (i * 7 + a * 11) % 50);
  row.slot = batch.ancestors[row.first_ancestor + own];
  batch.rows.push_back(row);
}

TEST_P(ContractTest, AttentionInABlockAndAWindow) {
  const KvShape shape{250, 2, 32, CacheType::f16};
  const uint32_t heads = 6, cols = heads * 32;
  const CacheContents contents = random_cache(shape, 7);
  Random random(7);
  const std::vector<float> q = random.values(size_t{pool} * cols);
  for (const View& view : {View{AttentionMask::block, 0}, View{AttentionMask::causal, 70},
                           View{AttentionMask::causal, 70, true}, View{AttentionMask::causal, 0, false, 2}}) {
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      RowBatch batch;
      for (const uint32_t row : rows) add_pool_block_row(batch, row);
      return run_attention(device, shape, heads, batch, gather(q, cols, rows), contents, 200, view);
    });
  }
}

/// Row i of a pool with texts of up to 1,500 positions, in trees of which a part lies where the text goes on.
void add_pool_row_of_long_text(RowBatch& batch, uint32_t i) {
  const uint32_t position = (i * 97 + 300) % 1500;
  if (i % 3 == 0 || position < 4) {
    batch.add_text(0, position);
    return;
  }
  Row row;
  row.position = position;
  row.prefix = position - 3;
  row.first_ancestor = static_cast<uint32_t>(batch.ancestors.size());
  row.ancestor_count = 4;
  row.in_place = i % 4;
  for (uint32_t a = 0; a < 4; ++a) {
    batch.ancestors.push_back(a < row.in_place ? row.prefix + a : 1500 + (i * 7 + a * 13) % 50);
  }
  row.slot = batch.ancestors.back();
  batch.rows.push_back(row);
}

TEST_P(ContractTest, AttentionOverSeveralSpans) {
  const uint32_t heads = 6;
  const auto expect_independent = [&](const KvShape& shape, uint32_t window, bool sinks = false) {
    const uint32_t cols = heads * shape.head_dim;
    const CacheContents contents = random_cache(shape, 9);
    Random random(9);
    const std::vector<float> q = random.values(size_t{pool} * cols);
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      RowBatch batch;
      for (const uint32_t row : rows) add_pool_row_of_long_text(batch, row);
      const uint32_t bound = rows.size() == 1 ? batch.rows[0].position + 1 : 1500;
      return run_attention(device, shape, heads, batch, gather(q, cols, rows), contents, bound,
                           {AttentionMask::causal, window, sinks});
    });
  };
  expect_independent({1550, 2, 16, CacheType::f16}, 0);
  expect_independent({1550, 2, 16, CacheType::f16}, 700);
  expect_independent({1550, 2, 16, CacheType::f16}, 0, true);
  expect_independent({1550, 2, 32, CacheType::q8_0}, 0);
}

// What a row shares with others is read in one way, its own chunks in another.
TEST_P(ContractTest, AttentionIsTheSameWhateverIsSaidToBeInPlace) {
  for (const KvShape& shape : {KvShape{1550, 2, 16, CacheType::f16}, KvShape{1550, 2, 32, CacheType::q8_0}}) {
    const uint32_t heads = 6;
    const CacheContents contents = random_cache(shape, 10);
    Random random(10);
    RowBatch batch;
    for (uint32_t i = 0; i < pool; ++i) add_pool_row_of_long_text(batch, i);
    const std::vector<float> q = random.values(size_t{pool} * heads * shape.head_dim);
    const Results said = run_attention(device(), shape, heads, batch, q, contents, 1500);
    for (Row& row : batch.rows) row.in_place = 0;
    EXPECT_EQ(said[0].words, run_attention(device(), shape, heads, batch, q, contents, 1500)[0].words);
  }
}

// Attention to a path in tree slots, compared with the same path after it was committed.
TEST_P(ContractTest, AttentionToAPathEqualsAttentionToCommittedText) {
  for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
    const KvShape shape{250, 2, 32, type};
    const uint32_t heads = 6, depth = 7, slot_size = 64;
    CacheContents contents = random_cache(shape, 8);
    Random random(8);
    const std::vector<float> q = random.values(size_t{heads} * shape.head_dim);
    for (const uint32_t position :
         {6u, 7u, 62u, 63u, 64u, 65u, 69u, 70u, 71u, 127u, 128u, 130u, 133u, 134u, 135u, 199u}) {
      SCOPED_TRACE("position " + std::to_string(position));
      const uint32_t committed = position + 1 - depth;
      RowBatch text, tree;
      text.add_text(0, position);
      for (uint32_t d = 0; d < depth; ++d) {
        const uint32_t slot = 249 - 3 * d;
        tree.add_node(0, slot, committed, static_cast<int32_t>(d) - 1);
        std::copy_n(contents.keys.begin() + (committed + d) * slot_size, slot_size,
                    contents.keys.begin() + slot * slot_size);
        std::copy_n(contents.values.begin() + (committed + d) * slot_size, slot_size,
                    contents.values.begin() + slot * slot_size);
      }
      std::vector<float> tree_q = random.values(size_t{depth - 1} * heads * shape.head_dim);
      tree_q.insert(tree_q.end(), q.begin(), q.end());
      const Results after = run_attention(device(), shape, heads, text, q, contents, position + 1);
      const Results before = run_attention(device(), shape, heads, tree, tree_q, contents, 230);
      const auto last = before[0].words.end() - static_cast<ptrdiff_t>(q.size());
      EXPECT_TRUE(std::equal(after[0].words.begin(), after[0].words.end(), last));
    }
  }
}

TEST_P(ContractTest, TopKAndItsLogSumExp) {
  Random random(9);
  const uint32_t vocab = 1010, k = 8;
  const std::vector<float> logits = random.values(size_t{pool} * vocab);
  for (const float softcap : {0.0f, 0.75f})
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      const Buffer* in = bench.buffer(gather(logits, vocab, rows));
      Buffer* ids = bench.output(uint64_t{width} * k);
      Buffer* values = bench.output(uint64_t{width} * k);
      Buffer* sums = bench.output(width);
      Buffer* best = bench.output(uint64_t{width} * 2);
      bench.run([&](Recorder& r) {
        r(TopKArgs{.width = width,
                   .logits = in,
                   .vocab = vocab,
                   .k = k,
                   .ids = ids,
                   .values = values,
                   .log_sum_exp = sums,
                   .softcap = softcap});
        r(ArgmaxArgs{width, in, vocab, best});
      });
      return Results{trimmed(bench.integers("ids", ids), size_t{width} * k),
                     trimmed(bench.result("values", values, exact), size_t{width} * k),
                     trimmed(bench.result("log_sum_exp", sums, exact), width),
                     trimmed(bench.integers("argmax", best), size_t{width} * 2)};
    });
}

// Settings by the number of the op's own list: with and without filters, and at temperature 0.
TEST_P(ContractTest, Sample) {
  Random random(12);
  const uint32_t vocab = 2100;
  const std::vector<float> logits = random.values(size_t{pool} * vocab);
  for (const uint32_t kind : {0u, 1u, 2u}) {
    SamplingWords words;
    words.inverse_temperature = kind == 0 ? 0.0f : 9.0f;
    words.top_k = kind == 2 ? 50 : 0;
    words.adjustments = 1;
    expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
      OpBench bench(device);
      const auto width = static_cast<uint32_t>(rows.size());
      Buffer* in = bench.buffer(gather(logits, vocab, rows));
      const Buffer* settings = bench.buffer(std::vector<SamplingWords>{words});
      const Buffer* path = bench.buffer(std::vector<SampledRow>(width));
      const Buffer* adjustments = bench.buffer(std::vector<TokenAdjustment>{{7, 0, 0.5f}});
      Buffer* out = bench.output(width);
      bench.run([&](Recorder& r) {
        r(SampleArgs{.width = width,
                     .logits = in,
                     .vocab = vocab,
                     .settings = settings,
                     .rows = path,
                     .adjustments = adjustments,
                     .most_adjustments = 1,
                     .random = kind != 0,
                     .filtered = kind == 2,
                     .out = out});
      });
      return Results{trimmed(bench.integers("tokens", out), width)};
    });
  }
}

// Rows that are selected keep their bits and their sums of squares.
TEST_P(ContractTest, Select) {
  Random random(10);
  const uint32_t cols = 100;
  const std::vector<float> inputs = random.values(size_t{pool} * cols);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto count = static_cast<uint32_t>(rows.size());
    const Activations* in = bench.activations(pool, cols, inputs);
    const Buffer* index = bench.buffer(rows);
    Activations* out = bench.output_activations(count, cols);
    bench.run([&](Recorder& r) { r(SelectArgs{pool, count, in, index, out}); });
    return Results{bench.result("out", out, count, exact), trimmed(bench.norm_probe(out, count), size_t{count} * 4)};
  });
}

TEST_P(ContractTest, AddBias) {
  Random random(12);
  const uint32_t cols = 290;
  const std::vector<float> inputs = random.values(size_t{pool} * cols), bias = random.values(cols);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(rows.size());
    Buffer* x = bench.buffer(gather(inputs, cols, rows));
    const Buffer* added = bench.buffer(bias);
    bench.run([&](Recorder& r) { r(AddBiasArgs{width, cols, added, x}); });
    return Results{trimmed(bench.result("x", x, exact), size_t{width} * cols)};
  });
}

TEST_P(ContractTest, NormRows) {
  Random random(11);
  const uint32_t cols = 290;
  const std::vector<float> inputs = random.values(size_t{pool} * cols);
  const std::vector<float> norm = random.values(cols);
  expect_rows_independent(device(), [&](Device& device, const std::vector<uint32_t>& rows) {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(rows.size());
    const Buffer* in = bench.buffer(gather(inputs, cols, rows));
    const Buffer* norm_weight = bench.buffer(norm);
    Activations* out = bench.output_activations(width, cols);
    bench.run([&](Recorder& r) { r(NormRowsArgs{width, in, {norm_weight}, out}); });
    return Results{bench.result("out", out, width, exact), trimmed(bench.norm_probe(out, width), size_t{width} * 4)};
  });
}

CANOPY_OP_TESTS(ContractTest);

}  // namespace
}  // namespace canopy::test

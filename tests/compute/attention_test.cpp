#include "tests/compute/attention_case.h"

namespace canopy::test {
namespace {

struct AttentionCase {
  uint32_t heads;
  KvShape shape;
  RowBatch batch;
  uint32_t max_positions;
  View view = {};

  Results operator()(Device& device) const {
    CacheContents contents = random_cache(shape, heads);
    poison_unseen(shape, batch, view, contents);
    Random random(batch.width());
    return run_attention(device, shape, heads, batch, random.values(size_t{batch.width()} * heads * shape.head_dim),
                         contents, max_positions, view);
  }
};

/// A tree of `width` nodes after `committed` positions, in slots from 300 on. The parent of node i is (i - 1) / 2, so
/// that there are siblings, which must not see each other.
RowBatch tree(uint32_t committed, uint32_t width) {
  RowBatch batch;
  for (uint32_t i = 0; i < width; ++i)
    batch.add_node(0, 300 + i, committed, i == 0 ? -1 : static_cast<int32_t>((i - 1) / 2));
  return batch;
}

RowBatch text(uint32_t first, uint32_t width) {
  RowBatch batch;
  for (uint32_t i = 0; i < width; ++i) batch.add_text(0, first + i);
  return batch;
}

constexpr uint32_t slots = 400;

class AttentionTest : public OpTest {};

// One row at a time, so that every slot after its own position is NaN.
TEST_P(AttentionTest, SeesExactlyItsPositionsOnBothSidesOfAChunk) {
  for (const CacheType type : kCacheTypes) {
    for (const uint32_t context : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 200u}) {
      SCOPED_TRACE(std::string(to_string(type)) + ", context " + std::to_string(context));
      compare(AttentionCase{4, {slots, 2, 32, type}, text(context - 1, 1), context});
    }
  }
}

TEST_P(AttentionTest, SeesItsPathInATreeAndNothingElse) {
  for (const uint32_t committed : {0u, 1u, 60u, 62u, 63u, 64u, 125u, 128u, 200u}) {
    SCOPED_TRACE("committed " + std::to_string(committed));
    compare(AttentionCase{6, {slots, 2, 16, CacheType::f16}, tree(committed, 17), committed + 5});
  }
}

TEST_P(AttentionTest, SharesKeysBetweenGroupedHeads) {
  static constexpr struct {
    uint32_t kv_heads, group, head_dim;
  } shapes[] = {{2, 1, 64}, {2, 2, 32}, {3, 3, 64}, {2, 4, 128}, {1, 3, 16}, {1, 8, 64}, {3, 2, 96}, {1, 2, 256}};
  static constexpr uint32_t widths[] = {1, 3, 33};
  uint32_t i = 0;
  for (const auto& s : shapes) {
    for (const uint32_t width : widths) {
      if (is_slow_device() && width != widths[(&s - shapes) % 3]) continue;
      SCOPED_TRACE("kv heads " + std::to_string(s.kv_heads) + ", group " + std::to_string(s.group) + ", head_dim " +
                   std::to_string(s.head_dim) + ", width " + std::to_string(width));
      const CacheType type = i++ % 2 == 0 ? CacheType::f16 : CacheType::f32;
      for (const CacheType each : {type, CacheType::q8_0}) {
        if (!keeps_heads(each, s.head_dim)) continue;
        compare(
            AttentionCase{s.kv_heads * s.group, {slots, s.kv_heads, s.head_dim, each}, text(70, width), 70 + width});
      }
    }
  }
}

// Commands are recorded for an upper bound of positions and replayed for shorter contexts.
TEST_P(AttentionTest, TakesFewerPositionsThanItsBound) {
  compare(AttentionCase{4, {slots, 2, 32, CacheType::f16}, text(9, 5), 390});
}

// Recorded for so long a context that partial results of all rows do not fit: devices take some rows at a time.
TEST_P(AttentionTest, TakesRowsInSeveralPartsInALongContext) {
  compare(AttentionCase{64, {slots, 1, 128, CacheType::f16}, text(60, 9), 131072});
}

TEST_P(AttentionTest, MixesTextAndTreesInOnePass) {
  RowBatch batch = tree(130, 9);
  for (const uint32_t position : {0u, 5u, 63u, 64u, 129u}) batch.add_text(0, position);
  for (const CacheType type : kCacheTypes) compare(AttentionCase{9, {slots, 3, 64, type}, batch, 140});
}

/// Row `row` of a block of `size` rows after `committed` positions, in slots from 320 on. It is alone in its pass, so
/// that every slot it must not see is NaN.
RowBatch block_row(uint32_t committed, uint32_t size, uint32_t row) {
  RowBatch batch;
  batch.add_block(std::vector<uint32_t>(size), 320, committed);
  batch.rows = {batch.rows[row]};
  return batch;
}

// The first position of a window lies before, at and after the edge of a chunk, in committed text and in a tree.
TEST_P(AttentionTest, SeesNothingBeforeItsWindow) {
  for (const CacheType type : kCacheTypes) {
    for (const uint32_t window : {1u, 70u}) {
      SCOPED_TRACE(std::string(to_string(type)) + ", window " + std::to_string(window));
      const View view{AttentionMask::causal, window};
      const KvShape shape{slots, 2, 32, type};
      for (const uint32_t context : {1u, 64u, 65u, 70u, 71u, 133u, 134u, 135u, 200u}) {
        SCOPED_TRACE("context " + std::to_string(context));
        compare(AttentionCase{4, shape, text(context - 1, 1), context, view});
      }
      compare(AttentionCase{4, shape, tree(126, 17), 140, view});
    }
  }
}

// A sink counts most where there are few keys; a row that sees none has zeros all the same. On slow devices with few
// shapes: SwiftShader compiles a kernel of attention for seconds.
TEST_P(AttentionTest, CountsTheSinksOfItsHeads) {
  const View sinks{AttentionMask::causal, 0, true}, in_a_window{AttentionMask::causal, 5, true};
  for (const CacheType type : kCacheTypes) {
    SCOPED_TRACE(to_string(type));
    const KvShape small{slots, 2, 32, type}, large = is_slow_device() ? small : KvShape{slots, 2, 64, type};
    compare(AttentionCase{6, small, text(64, 1), 65, sinks});
    if (is_slow_device() && type != CacheType::f16) continue;
    for (const uint32_t context : {1u, 65u, 200u}) {
      SCOPED_TRACE("context " + std::to_string(context));
      compare(AttentionCase{6, large, text(context - 1, 1), context, sinks});
      if (context == 200 || !is_slow_device()) {
        compare(AttentionCase{6, large, text(context - 1, 1), context, in_a_window});
      }
    }
    compare(AttentionCase{6, small, tree(126, 33), 140, sinks});
    if (!is_slow_device()) compare(AttentionCase{9, {slots, 3, 32, type}, tree(126, 33), 140, sinks});
    RowBatch padded = text(9, 3);
    padded.rows[1] = Row();
    compare(AttentionCase{6, small, padded, 12, sinks});
  }
}

// Scores reach three times the cap; heads are as large as Gemma's.
TEST_P(AttentionTest, CapsScores) {
  const View capped{AttentionMask::causal, 0, false, 1.5f}, in_a_window{AttentionMask::causal, 70, true, 1.5f};
  for (const CacheType type : kCacheTypes) {
    if (is_slow_device() && type != CacheType::f16) continue;
    SCOPED_TRACE(to_string(type));
    const KvShape shape{slots, 2, is_slow_device() ? 32u : 256u, type};
    compare(AttentionCase{4, shape, text(64, 1), 65, capped});
    compare(AttentionCase{4, shape, tree(126, 17), 140, capped});
    if (!is_slow_device()) compare(AttentionCase{4, shape, text(199, 1), 200, in_a_window});
  }
}

// As long as those of Gemma 4's layers that see the whole text.
TEST_P(AttentionTest, TakesLongHeads) {
  if (is_slow_device()) return;
  for (const CacheType type : kCacheTypes) {
    SCOPED_TRACE(to_string(type));
    const KvShape shape{slots, 1, 512, type};
    compare(AttentionCase{2, shape, text(64, 1), 65});
    compare(AttentionCase{2, shape, tree(126, 17), 140});
  }
  compare(AttentionCase{3, {1400, 1, 512, CacheType::f16}, text(1300, 1), 1301});
}

// Values are the first elements of keys: as long as those of DeepSeek 2 and GLM-4.7-Flash, and of odd sizes.
TEST_P(AttentionTest, TakesValuesOutOfTheKeysOfALatentCache) {
  for (const CacheType type : kCacheTypes) {
    SCOPED_TRACE(to_string(type));
    const KvShape small{slots, 1, type == CacheType::q8_0 ? 64u : 48u, type, type == CacheType::q8_0 ? 36u : 40u};
    compare(AttentionCase{4, small, text(64, 1), 65});
    compare(AttentionCase{1, small, tree(126, 33), 140});
    if (is_slow_device()) continue;
    compare(AttentionCase{4, small, text(199, 1), 200, {AttentionMask::causal, 70, true}});
    compare(AttentionCase{6, {slots, 2, 160, type, 160}, text(70, 3), 73});
    compare(AttentionCase{3, {slots, 1, 576, type, 512}, text(64, 1), 65});
    compare(AttentionCase{1, {slots, 1, 576, type, 512}, tree(126, 17), 140});
  }
  if (!is_slow_device()) compare(AttentionCase{2, {1400, 1, 96, CacheType::f16, 64}, text(1300, 1), 1301});
}

TEST_P(AttentionTest, SeesItsWholeBlockOrTheBlockUpToItself) {
  for (const CacheType type : {CacheType::f16, CacheType::f32}) {
    for (const AttentionMask mask : {AttentionMask::causal, AttentionMask::block}) {
      for (const uint32_t committed : {0u, 1u, 55u, 63u, 64u, 130u}) {
        for (const uint32_t row : {0u, 3u, 8u}) {
          SCOPED_TRACE(std::string(to_string(type)) + (mask == AttentionMask::block ? ", block" : ", causal") +
                       ", committed " + std::to_string(committed) + ", row " + std::to_string(row));
          compare(AttentionCase{6, {slots, 3, 16, type}, block_row(committed, 9, row), committed + 9, {mask, 0}});
        }
      }
    }
  }
}

TEST_P(AttentionTest, LimitsABlockByAWindow) {
  for (const AttentionMask mask : {AttentionMask::causal, AttentionMask::block}) {
    for (const uint32_t committed : {0u, 3u, 66u, 125u}) {
      for (const uint32_t row : {0u, 6u, 15u}) {
        SCOPED_TRACE(std::string(mask == AttentionMask::block ? "block" : "causal") + ", committed " +
                     std::to_string(committed) + ", row " + std::to_string(row));
        compare(
            AttentionCase{4, {slots, 2, 64, CacheType::f16}, block_row(committed, 16, row), committed + 16, {mask, 5}});
      }
    }
  }
  RowBatch whole;
  whole.add_block(std::vector<uint32_t>(16), 320, 60);
  compare(AttentionCase{9, {slots, 3, 64, CacheType::f16}, whole, 76, {AttentionMask::block, 0}});
}

// Chunks merge in spans of 512 positions. A pass of few rows leaves results of chunks, one of many rows of spans.
TEST_P(AttentionTest, MergesSpansOfChunks) {
  compare(AttentionCase{8, {1400, 2, 64, CacheType::q8_0}, text(1050, 180), 1230});
  const KvShape shape{1400, 2, 32, CacheType::f16};
  for (const uint32_t context : {511u, 512u, 513u, 1023u, 1024u, 1025u, 1300u}) {
    SCOPED_TRACE("context " + std::to_string(context));
    compare(AttentionCase{6, shape, text(context - 1, 1), context});
  }
  compare(AttentionCase{8, shape, text(1050, 180), 1230});
  compare(AttentionCase{8, shape, text(1050, 180), 1230, {AttentionMask::causal, 600}});
  RowBatch batch;
  for (uint32_t i = 0; i < 180; ++i) {
    batch.add_node(0, 1200 + i, 1020, i == 0 ? -1 : static_cast<int32_t>((i - 1) / 2));
  }
  compare(AttentionCase{8, shape, batch, 1030});
  compare(AttentionCase{8, shape, batch, 1030, {AttentionMask::causal, 5}});
}

// The chain of nodes 0, 1, 3, 7 lies where the text goes on, so that others see it there.
TEST_P(AttentionTest, SeesAncestorsThatLieInTheirOwnPlaces) {
  for (const uint32_t committed : {0u, 61u, 63u, 64u, 200u}) {
    SCOPED_TRACE("committed " + std::to_string(committed));
    RowBatch batch;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < 15; ++i) {
      const bool in_place = i == (2u << depth) / 2 - 1;
      batch.add_node(0, in_place ? committed + depth++ : 300 + i, committed,
                     i == 0 ? -1 : static_cast<int32_t>((i - 1) / 2));
    }
    EXPECT_EQ(batch.rows[3].in_place, 3u);
    EXPECT_EQ(batch.rows[8].in_place, 3u);
    EXPECT_EQ(batch.rows[14].in_place, 1u);
    compare(AttentionCase{4, {slots, 2, 32, CacheType::f16}, batch, committed + 5});
  }
}

/// A page table that has pages of a cache of `pages` in no order.
std::vector<uint32_t> shuffled_pages(uint32_t pages) {
  std::vector<uint32_t> table;
  for (uint32_t i = 0; i < pages; ++i) table.push_back((i * 5 + 3) % pages);  // pages is no multiple of 5
  return table;
}

TEST_P(AttentionTest, FindsPositionsByThePageTable) {
  for (const CacheType type : kCacheTypes) {
    const KvShape shape{14 * 64 + 100, 2, 32, type};
    for (const View& view : {View{}, View{AttentionMask::causal, 90}}) {
      RowBatch batch;
      batch.pages = shuffled_pages(14);
      for (const uint32_t position : {0u, 63u, 64u, 127u, 128u, 700u, 13 * 64u}) batch.add_text(0, position);
      compare(AttentionCase{6, shape, batch, 14 * 64, view});
      batch.rows.clear();
      batch.ancestors.clear();
      for (uint32_t i = 0; i < 19; ++i) {  // nodes 0, 1 and 3 in place
        const bool in_place = i == 0 || i == 1 || i == 3;
        const uint32_t slot = in_place ? batch.slot_of(126 + (i + 1) / 2) : 14 * 64 + i;
        batch.add_node(0, slot, 126, i == 0 ? -1 : static_cast<int32_t>((i - 1) / 2));
      }
      EXPECT_EQ(batch.rows[7].in_place, 3u);
      compare(AttentionCase{6, shape, batch, 200, view});
    }
  }
}

// No bit depends on where a page lies.
TEST_P(AttentionTest, IsTheSameWhereverPagesLie) {
  const KvShape shape{14 * 64, 2, 32, CacheType::f16};
  const CacheContents in_order = random_cache(shape, 3);
  CacheContents moved = in_order;
  const std::vector<uint32_t> pages = shuffled_pages(14);
  const size_t page = size_t{64} * 2 * 32;
  for (uint32_t i = 0; i < 14; ++i) {
    std::copy_n(in_order.keys.begin() + i * page, page, moved.keys.begin() + pages[i] * page);
    std::copy_n(in_order.values.begin() + i * page, page, moved.values.begin() + pages[i] * page);
  }
  const RowBatch plain = text(800, 40);
  RowBatch paged;
  paged.pages = pages;
  for (uint32_t i = 0; i < 40; ++i) paged.add_text(0, 800 + i);
  Random random(4);
  const std::vector<float> q = random.values(size_t{40} * 6 * 32);
  EXPECT_EQ(run_attention(device(), shape, 6, plain, q, in_order, 896)[0].words,
            run_attention(device(), shape, 6, paged, q, moved, 896)[0].words);
}

TEST_P(AttentionTest, GivesZerosToRowsThatStandForNothing) {
  for (const View& view : {View{}, View{AttentionMask::block, 0}, View{AttentionMask::causal, 40}}) {
    RowBatch batch;
    for (uint32_t i = 0; i < 9; ++i) {
      if (i % 3 == 1)
        batch.add_text(0, 60 + i);
      else
        batch.rows.push_back({.slot = kNoSlot});
    }
    AttentionCase attention{6, {slots, 2, 16, CacheType::f16}, batch, 70, view};
    compare(attention);
    const std::vector<uint32_t> words = attention(device())[0].words;
    EXPECT_TRUE(std::all_of(words.begin(), words.begin() + 6 * 16, [](uint32_t word) { return word == 0; }));
    batch.rows = {{.slot = kNoSlot}};
    compare(AttentionCase{6, {slots, 2, 16, CacheType::f16}, batch, 1, view});
  }
}

// Rows in turn have queries that halves have room for and such that they have not. The last are so large that one key
// takes all of the weight. No tiny keys of an f32 cache: what is cut into halves keeps too little of them.
TEST_P(AttentionTest, TakesQueriesBeyondTheRangeOfHalves) {
  constexpr uint32_t heads = 6, width = 33;
  for (const CacheType type : kCacheTypes) {
    const KvShape shape{slots, 2, 64, type};
    for (const auto& [query, key] : {std::pair(0x1p17f, 0x1p-16f), std::pair(1e32f, 1.0f)}) {
      if (type == CacheType::f32 && key < 1) continue;
      SCOPED_TRACE(std::string(to_string(type)) + ", queries up to " + std::to_string(query));
      CacheContents contents = random_cache(shape, heads);
      for (float& each : contents.keys) each *= key;
      const RowBatch all = text(70, width);
      poison_unseen(shape, all, {}, contents);
      std::vector<float> q = Random(7).values(size_t{width} * heads * shape.head_dim);
      const size_t size = size_t{heads} * shape.head_dim;
      for (size_t i = 0; i < q.size(); ++i) q[i] *= i / size % 3 == 1 ? 1.0f : query;
      compare([&](Device& device) { return run_attention(device, shape, heads, all, q, contents, 70 + width); });
      const std::vector<uint32_t> words = run_attention(device(), shape, heads, all, q, contents, 70 + width)[0].words;
      for (const uint32_t row : {0u, 1u, 32u}) {
        const std::vector<float> own(q.begin() + row * size, q.begin() + (row + 1) * size);
        const Results alone = run_attention(device(), shape, heads, text(70 + row, 1), own, contents, 70 + width);
        EXPECT_TRUE(std::equal(alone[0].words.begin(), alone[0].words.begin() + size, words.begin() + row * size))
            << "row " << row;
      }
    }
  }
}

CANOPY_OP_TESTS(AttentionTest);

}  // namespace
}  // namespace canopy::test

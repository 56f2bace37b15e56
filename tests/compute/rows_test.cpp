#include "engine/compute/rows.h"

#include <gtest/gtest.h>

#include "engine/base/error.h"

namespace canopy {
namespace {

TEST(RowBatch, TextSeesWhatIsBeforeItAndItself) {
  RowBatch batch;
  batch.add_text(42, 7);
  ASSERT_EQ(batch.width(), 1u);
  const Row& row = batch.rows[0];
  EXPECT_EQ(row.token, 42u);
  EXPECT_EQ(row.position, 7u);
  EXPECT_EQ(row.slot, 7u);
  EXPECT_EQ(row.prefix, 7u);
  EXPECT_EQ(row.ancestor_count, 1u);
  EXPECT_EQ(batch.ancestors, std::vector<uint32_t>{7});
}

TEST(RowBatch, NodesListTheirPathFromTheRoot) {
  RowBatch batch;
  batch.add_node(1, 100, 10, -1);
  batch.add_node(2, 101, 10, 0);
  batch.add_node(3, 102, 10, 0);
  batch.add_node(4, 103, 10, 2);
  const Row& leaf = batch.rows[3];
  EXPECT_EQ(leaf.position, 12u);
  EXPECT_EQ(leaf.prefix, 10u);
  ASSERT_EQ(leaf.ancestor_count, 3u);
  const auto first = batch.ancestors.begin() + leaf.first_ancestor;
  EXPECT_EQ(std::vector<uint32_t>(first, first + 3), (std::vector<uint32_t>{100, 102, 103}));
  EXPECT_NO_THROW(validate(batch, 5, 20, 104));
}

TEST(RowBatch, ValidateRefusesWhatContradictsItselfOrLiesOutside) {
  RowBatch good;
  good.add_node(1, 100, 10, -1);
  good.add_node(2, 101, 10, 0);
  ASSERT_NO_THROW(validate(good, 3, 12, 102));
  EXPECT_THROW(validate(good, 2, 12, 102), Error);
  EXPECT_THROW(validate(good, 3, 11, 102), Error);
  EXPECT_THROW(validate(good, 3, 12, 101), Error);
  EXPECT_THROW(validate(RowBatch{}, 3, 12, 102), Error);

  const auto refused = [&](auto change) {
    RowBatch batch = good;
    change(batch);
    EXPECT_THROW(validate(batch, 3, 12, 102), Error);
  };
  refused([](RowBatch& b) { b.rows[1].prefix = 9; });
  refused([](RowBatch& b) { b.rows[1].ancestor_count = 0; });
  refused([](RowBatch& b) { b.rows[1].first_ancestor = 0xFFFFFFFF; });
  refused([](RowBatch& b) { b.rows[1].slot = 100; });
  refused([](RowBatch& b) { b.ancestors[1] = 102; });
}

RowBatch block_of_three() {
  RowBatch batch;
  batch.add_text(9, 4);  // whatever else is in the pass
  const std::vector<uint32_t> tokens{7, 8, 8};
  batch.add_block(tokens, 100, 10);
  return batch;
}

TEST(RowBatch, ABlockSharesOneListOfAllItsSlots) {
  const RowBatch batch = block_of_three();
  ASSERT_EQ(batch.width(), 4u);
  for (uint32_t i = 0; i < 3; ++i) {
    const Row& row = batch.rows[1 + i];
    EXPECT_EQ(row.token, i == 0 ? 7u : 8u);
    EXPECT_EQ(row.position, 10 + i);
    EXPECT_EQ(row.slot, 100 + i);
    EXPECT_EQ(row.prefix, 10u);
    EXPECT_EQ(row.ancestor_count, 3u);
    const auto first = batch.ancestors.begin() + row.first_ancestor;
    EXPECT_EQ(std::vector<uint32_t>(first, first + 3), (std::vector<uint32_t>{100, 101, 102}));
  }
  EXPECT_EQ(batch.ancestors.size(), 4u);
}

TEST(RowBatch, OnlyABlockMaySeeWhatIsBehindItself) {
  const RowBatch block = block_of_three();
  EXPECT_NO_THROW(validate_block(block, 10, 13, 103));
  EXPECT_THROW(validate(block, 10, 13, 103), Error);
  EXPECT_THROW(validate_block(block, 9, 13, 103), Error);
  EXPECT_THROW(validate_block(block, 10, 12, 103), Error);
  EXPECT_THROW(validate_block(block, 10, 13, 102), Error);
  EXPECT_THROW(validate_block(RowBatch{}, 10, 13, 103), Error);

  const auto refused = [&](auto change) {
    RowBatch batch = block;
    change(batch);
    EXPECT_THROW(validate_block(batch, 10, 13, 103), Error);
  };
  refused([](RowBatch& b) { b.rows[2].slot = 100; });
  refused([](RowBatch& b) { b.rows[2].position = 12; });
  refused([](RowBatch& b) { b.rows[1].position = 9; });
  refused([](RowBatch& b) { b.rows[3].ancestor_count = 2; });
  refused([](RowBatch& b) { b.rows[1].prefix = 11; });
}

}  // namespace
}  // namespace canopy

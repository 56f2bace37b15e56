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

}  // namespace
}  // namespace canopy

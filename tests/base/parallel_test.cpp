#include "engine/base/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace canopy {
namespace {

TEST(ParallelTest, CoversEveryElementOnce) {
  for (const uint64_t count : {0u, 1u, 2u, 7u, 1000u}) {
    for (const uint64_t least : {0u, 1u, 3u, 5000u}) {
      std::vector<std::atomic<int>> seen(count);
      parallel_for(count, least, [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i) ++seen[i];
      });
      for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(seen[i], 1) << i << " of " << count << ", least " << least;
    }
  }
}

TEST(ParallelTest, KeepsShortRangesWhole) {
  std::mutex mutex;
  std::vector<uint64_t> lengths;
  parallel_for(99, 50, [&](uint64_t begin, uint64_t end) {
    const std::lock_guard lock(mutex);
    lengths.push_back(end - begin);
  });
  EXPECT_EQ(lengths, std::vector<uint64_t>{99});
}

TEST(ParallelTest, ThrowsOnAfterAllHaveEnded) {
  std::atomic<uint64_t> done = 0;
  EXPECT_THROW(parallel_for(1000, 1,
                            [&](uint64_t begin, uint64_t end) {
                              done += end - begin;
                              if (begin == 0) throw std::runtime_error("first part");
                            }),
               std::runtime_error);
  EXPECT_EQ(done, 1000u);
}

TEST(ParallelInOrderTest, HandsOutEveryPieceOnceInAscendingOrder) {
  for (const uint64_t count : {0u, 1u, 7u, 1000u}) {
    for (const uint64_t piece : {1u, 3u, 5000u}) {
      std::mutex mutex;
      std::vector<uint64_t> begins;
      uint64_t covered = 0;
      parallel_in_order(count, piece, [&](const TakeNext& next) {
        for (uint64_t begin = 0, end = 0, last = 0; next(begin, end); last = begin) {
          const std::lock_guard lock(mutex);
          EXPECT_GE(begin, last);  // of one thread
          EXPECT_LE(end - begin, piece);
          begins.push_back(begin);
          covered += end - begin;
        }
      });
      EXPECT_EQ(covered, count);
      std::ranges::sort(begins);
      for (size_t i = 0; i < begins.size(); ++i) ASSERT_EQ(begins[i], i * piece);
    }
  }
}

TEST(ParallelInOrderTest, HandsOutNothingMoreOnceACallThrows) {
  std::atomic<uint64_t> taken = 0;
  EXPECT_THROW(parallel_in_order(1'000'000, 1,
                                 [&](const TakeNext& next) {
                                   uint64_t begin = 0, end = 0;
                                   while (next(begin, end)) {
                                     ++taken;
                                     if (begin == 3) throw std::runtime_error("fourth piece");
                                   }
                                 }),
               std::runtime_error);
  EXPECT_LT(taken, 1'000'000u);
}

}  // namespace
}  // namespace canopy

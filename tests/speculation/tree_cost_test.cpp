// The cost of a round's tree for the host: no allocations once its memory has grown (checked), and the time (printed).

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "engine/speculation/tree_builder.h"
#include "tests/speculation/draft_candidates.h"

namespace {

std::atomic<uint64_t> allocations = 0;

void* allocate(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Counts all ordinary allocations of this program; over-aligned types do not occur here.
void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace canopy {
namespace {

constexpr uint32_t vocab = 2000;
constexpr uint32_t depths = 15;
constexpr uint32_t first_candidates = 64;

// All work of the host on trees in one round; memory is kept from round to round.
struct Round {
  TreeBuilder builder;
  RowBatch batch;
  AcceptedPath path;

  void build(const test::Candidates& candidates, const std::vector<DepthCandidates>& given, uint32_t budget) {
    builder.begin(1, given, vocab);
    while (builder.build(budget) == TreeStep::needs_candidates) {
      builder.extend(builder.starved_depth(), candidates.at(builder.starved_depth(), 512));
    }
  }

  void run(const test::Candidates& candidates, const std::vector<DepthCandidates>& given, uint32_t budget) {
    build(candidates, given, budget);
    batch.clear();
    add_tree(builder.tree(), 100, 4096, 4096, batch);
    // The target agrees with the drafter's first choice everywhere.
    accept(
        builder.tree(),
        [&](uint32_t node) { return given[std::min(builder.tree()[node].depth, depths - 1)].tokens[0]; }, path);
  }
};

// Kinds of drafts: confident, usual, knowing nothing, and all tokens equally probable.
struct Draft {
  const char* name;
  float spread;
};
constexpr Draft drafts[] = {{"peaked", 6.0f}, {"usual", 2.5f}, {"flat", 0.5f}, {"all equal", 0.0f}};

TEST(TreeCost, NothingIsAllocatedOnceTheMemoryHasGrown) {
  Round round;
  std::vector<test::Candidates> candidates;
  for (const Draft& draft : drafts) {
    candidates.emplace_back(test::random_rows(size_t{vocab} * depths, 1, draft.spread), vocab, vocab);
  }
  const auto allocated_at = [&](uint32_t budget) {
    uint64_t counted = 0;
    for (const test::Candidates& each : candidates) {
      const auto given = each.all(first_candidates);
      const uint64_t before = allocations;
      round.run(each, given, budget);
      counted += allocations - before;
    }
    return counted;
  };
  EXPECT_GT(allocated_at(512), 0u) << "the first rounds must allocate: else nothing is counted";
  for (const uint32_t budget : {512u, 1u, 0u, 64u, 512u, 300u}) EXPECT_EQ(allocated_at(budget), 0u) << budget;
}

// Prints the best time of many, in milliseconds, of building alone and of all work on the tree.
TEST(TreeCost, PrintsTheTimeOfARound) {
  using Clock = std::chrono::steady_clock;
  const auto ms = [](Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); };
  for (const Draft& draft : drafts) {
    const test::Candidates candidates(test::random_rows(size_t{vocab} * depths, 2, draft.spread), vocab, vocab);
    const auto given = candidates.all(first_candidates);
    for (const uint32_t budget : {16u, 64u, 512u}) {
      Round round;
      std::vector<double> building, whole;
      for (int i = 0; i < 200; ++i) {
        const auto start = Clock::now();
        round.build(candidates, given, budget);
        const auto built = Clock::now();
        round.run(candidates, given, budget);
        building.push_back(ms(built - start));
        whole.push_back(ms(Clock::now() - built));
      }
      std::sort(building.begin(), building.end());
      std::sort(whole.begin(), whole.end());
      std::printf("%-9s budget %3u: build %.4f ms (best %.4f), with rows and walk %.4f ms (best %.4f)\n", draft.name,
                  budget, building[100], building[0], whole[100], whole[0]);
      ASSERT_EQ(round.builder.tree().drafted(), budget);
    }
  }
}

}  // namespace
}  // namespace canopy

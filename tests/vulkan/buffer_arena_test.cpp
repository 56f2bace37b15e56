#include "engine/vulkan/upload.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/vulkan/allocation_hook.h"
#include "tests/vulkan/devices.h"

namespace canopy::vk {
namespace {

using testing::AllocationHook;
using testing::error_of;

constexpr uint64_t kKiB = 1024;

std::vector<std::byte> bytes_of_one_value(uint64_t count, size_t value) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value + 1));
}

class BufferArenaTest : public testing::DeviceTest {
 protected:
  static std::vector<Buffer> create_all(BufferArena& arena, const std::vector<uint64_t>& sizes) {
    std::vector<Buffer> buffers;
    for (const uint64_t bytes : sizes) buffers.push_back(arena.create(bytes, "weight"));
    return buffers;
  }
};
CANOPY_ON_EVERY_DEVICE(BufferArenaTest);

TEST_P(BufferArenaTest, blocksAreAsLargeAsWhatLiesInThem) {
  const auto context = open({.max_block = 1024 * kKiB});
  EXPECT_EQ(context->max_block(), 1024 * kKiB);
  const std::vector<uint64_t> sizes = {512 * kKiB, 256 * kKiB,  256 * kKiB,  // exactly a block
                                       900 * kKiB, 100 * kKiB,               // the next does not fit behind them
                                       200 * kKiB, 3000 * kKiB, 64 * kKiB};  // one beyond a block
  BufferArena arena(*context, sizes);
  AllocationHook hook;
  std::vector<Buffer> buffers = create_all(arena, sizes);
  EXPECT_EQ(hook.sizes, (std::vector<uint64_t>{1024 * kKiB, 1000 * kKiB, 200 * kKiB, 3000 * kKiB, 64 * kKiB}));
  EXPECT_GE(context->memory_info().used, std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
  buffers.clear();
  EXPECT_EQ(context->memory_info().used, 0u);
}

TEST_P(BufferArenaTest, neighboursKeepTheirBytes) {
  for (const bool staging : {false, true}) {
    const auto context = open({.max_block = 64 * kKiB, .force_staging = staging});
    const std::vector<uint64_t> sizes = {1003, 7, 20 * kKiB + 1, 4, 40 * kKiB, 30 * kKiB};
    BufferArena arena(*context, sizes);
    const std::vector<Buffer> buffers = create_all(arena, sizes);
    for (size_t i = 0; i < sizes.size(); ++i) context->upload(buffers[i], 0, bytes_of_one_value(sizes[i], i));
    context->upload(buffers[2], 5, bytes_of_one_value(11, 100));
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<std::byte> expected = bytes_of_one_value(sizes[i], i), back(sizes[i]);
      if (i == 2) std::fill_n(expected.begin() + 5, 11, static_cast<std::byte>(101));
      context->download(buffers[i], 0, back);
      EXPECT_EQ(back, expected) << i;
    }
  }
}

TEST_P(BufferArenaTest, aBlockGoesWithItsLastBuffer) {
  const auto context = open({.max_block = 1024 * kKiB});
  const std::vector<uint64_t> sizes(4, 256 * kKiB);
  BufferArena arena(*context, {sizes.begin(), sizes.end()});
  std::vector<Buffer> buffers = create_all(arena, sizes);
  for (size_t left = 4; left > 0; --left) {
    EXPECT_EQ(context->memory_info().used, 1024 * kKiB) << left;
    buffers.erase(buffers.begin());
  }
  EXPECT_EQ(context->memory_info().used, 0u);
}

TEST_P(BufferArenaTest, whatWasNotExpectedGetsMemoryOfItsOwn) {
  const auto context = open({.max_block = 1024 * kKiB});
  BufferArena arena(*context, {256 * kKiB, 128 * kKiB});
  AllocationHook hook;
  const std::vector<Buffer> buffers = create_all(arena, {256 * kKiB, 64 * kKiB, 128 * kKiB, 32 * kKiB});
  EXPECT_EQ(hook.sizes, (std::vector<uint64_t>{384 * kKiB, 64 * kKiB, 32 * kKiB}));
}

TEST_P(BufferArenaTest, takesSmallerBlocksWhereAWholeOneIsNotToBeHad) {
  const auto context = open({.max_block = 1024 * kKiB});
  const std::vector<uint64_t> sizes(8, 128 * kKiB);
  BufferArena arena(*context, {sizes.begin(), sizes.end()});
  AllocationHook hook;
  hook.most = 300 * kKiB;
  const std::vector<Buffer> buffers = create_all(arena, sizes);
  EXPECT_EQ(hook.sizes, std::vector<uint64_t>(4, 256 * kKiB));
}

// What is left of the budget is less than a block: another program took memory after the plan was made.
TEST_P(BufferArenaTest, fillsABudgetToTheLastBuffer) {
  const auto context = open({.max_block = 1024 * kKiB, .memory_budget = 700 * kKiB});
  const std::vector<uint64_t> sizes(8, 128 * kKiB);
  BufferArena arena(*context, {sizes.begin(), sizes.end()});
  std::vector<Buffer> buffers;
  const std::string refusal = error_of([&] {
    for (const uint64_t bytes : sizes) buffers.push_back(arena.create(bytes, "weight"));
  });
  EXPECT_EQ(buffers.size(), 5u);
  EXPECT_NE(refusal.find("out of memory: The buffer \"weight\" of 131.1 kB does not fit"), std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("61.4 kB are available of 716.8 kB"), std::string::npos) << refusal;
  buffers.clear();
  EXPECT_EQ(context->memory_info().used, 0u);
}

TEST_P(BufferArenaTest, aFailureAtEachAllocationLeavesNothingBehind) {
  const auto context = open({.max_block = 512 * kKiB, .memory_budget = 64u << 20});
  const std::vector<uint64_t> sizes(8, 128 * kKiB);
  for (uint64_t n = 0; n < 2; ++n) {
    BufferArena arena(*context, {sizes.begin(), sizes.end()});
    AllocationHook hook;
    hook.failing = n;
    hook.for_good = true;
    const std::string refusal = error_of([&] { create_all(arena, sizes); });
    EXPECT_NE(refusal.find("out of memory: Allocating 131.1 kB for \"weight\" failed"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("are available of 67.1 MB"), std::string::npos) << refusal;
    EXPECT_EQ(context->memory_info().used, 0u);
  }
  BufferArena arena(*context, {sizes.begin(), sizes.end()});
  EXPECT_EQ(create_all(arena, sizes).size(), 8u);
}

}  // namespace
}  // namespace canopy::vk

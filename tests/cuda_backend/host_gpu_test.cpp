// The made-up GPU itself: that it finds the mistakes it is there for.
#include <gtest/gtest.h>

#include <numeric>

#include "gpu.h"

namespace canopy::host_gpu {
namespace {

struct TestParams {
  uint64_t out = 0;
  uint32_t count = 0;
};

CANOPY_KERNEL(test_reverse, TestParams, 64) {
  const gpu::Shared<uint32_t> shared(0, 64);
  shared[gpu::thread()] = gpu::thread();
  gpu::sync();
  *gpu::element<uint32_t>(p.out, gpu::block_x() * 64 + gpu::thread()) = shared[63 - gpu::thread()];
}

CANOPY_KERNEL(test_shuffle, TestParams, 64) {
  uint32_t sum = 0;
  for (uint32_t l = 0; l < 32; ++l) sum += gpu::shuffle(gpu::thread(), l);
  *gpu::element<uint32_t>(p.out, gpu::thread()) = sum + gpu::ballot(gpu::lane() == 3);
}

CANOPY_KERNEL(test_lonely_barrier, TestParams, 64) {
  if (gpu::thread() < p.count) gpu::sync();
  if (gpu::thread() == 40) gpu::shuffle(1u, 0);
}

CANOPY_KERNEL(test_beyond, TestParams, 32) {
  *gpu::element<uint32_t>(p.out, p.count) = 1;
}

CANOPY_KERNEL(test_shared_beyond, TestParams, 32) {
  const gpu::Shared<uint32_t> shared(0, 8);
  shared[p.count] = 1;
}

CANOPY_KERNEL(test_multiply, TestParams, 32) {
  // a[r, k] = r + k / 16, b[k, c] = k - c: both are halves exactly.
  const uint32_t g = gpu::lane() / 4, q = gpu::lane() % 4;
  const auto a = [&](uint32_t row, uint32_t k) {
    return gpu::pack_halves(static_cast<float>(row) + static_cast<float>(k) / 16,
                            static_cast<float>(row) + static_cast<float>(k + 1) / 16);
  };
  const auto b = [&](uint32_t k, uint32_t column) {
    return gpu::pack_halves(static_cast<float>(k) - static_cast<float>(column),
                            static_cast<float>(k + 1) - static_cast<float>(column));
  };
  const uint32_t words_a[4] = {a(g, 2 * q), a(g + 8, 2 * q), a(g, 2 * q + 8), a(g + 8, 2 * q + 8)};
  const uint32_t words_b[2] = {b(2 * q, g), b(2 * q + 8, g)};
  float sums[4] = {1, 1, 1, 1};
  gpu::multiply(sums, words_a, words_b);
  for (uint32_t i = 0; i < 4; ++i) {
    *gpu::element<float>(p.out, (g + i / 2 * 8) * 8 + 2 * q + i % 2) = sums[i];
  }
}

CANOPY_STREAMING_KERNEL(test_early_read, TestParams, 32, 1) {
  const uint32_t early = *gpu::element<const uint32_t>(p.out, 0);
  gpu::let_next_start();
  gpu::wait_for_earlier();
  if (early == p.count) *gpu::element<uint32_t>(p.out, 1) = 1;
}

CANOPY_STREAMING_KERNEL(test_early_write, TestParams, 32, 1) {
  *gpu::element<uint32_t>(p.out, 0) = 1;
  gpu::wait_for_earlier();
}

CANOPY_STREAMING_KERNEL(test_no_wait, TestParams, 32, 1) {}

enum class Mistake : uint32_t {
  none,
  rows_not_shown,
  no_barrier,
  not_begun,
  rows_changed,
  registers_changed,
  sums_touched,
  not_waited,
  other_warp,
  beyond,
};

// Of a warpgroup: a[r, k] = r, b[k, c] = k + c for row r of all 64, twice.
CANOPY_KERNEL(test_warpgroup, TestParams, 128) {
  const auto wrong = [&](Mistake mistake) { return p.count == static_cast<uint32_t>(mistake); };
  constexpr uint32_t columns = 64, apart = columns * 16;
  const gpu::Shared<uint16_t> b(0, 16 * columns);
  for (uint32_t i = gpu::thread(); i < 16 * columns; i += gpu::threads()) {
    const uint32_t k = i / columns, column = i % columns;
    b[(k / 8 * apart + column * 16) / 2 + k % 8] = f32_to_f16(static_cast<float>(k + column));
  }
  if (!wrong(Mistake::rows_not_shown)) gpu::show_to_warpgroups();
  if (!wrong(Mistake::no_barrier)) gpu::sync();
  const uint32_t row = gpu::warp() * 16 + gpu::lane() / 4;
  const auto twice = [](uint32_t value) {
    return gpu::pack_halves(static_cast<float>(value), static_cast<float>(value));
  };
  uint32_t a[4] = {twice(row), twice(row + 8), twice(row), twice(row + 8)};
  float sums[8][4] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    if (!wrong(Mistake::not_begun)) gpu::begin_warpgroup_products();
    const bool other = wrong(Mistake::other_warp) && gpu::warp() == 1;
    gpu::begin_warpgroup_product(sums, a, gpu::warpgroup_operand(wrong(Mistake::beyond) ? 16 : 0, other ? 16 : apart));
    gpu::end_warpgroup_products();
    gpu::wait_for_warpgroup_products<1>();
  }
  if (wrong(Mistake::not_waited)) return;
  if (wrong(Mistake::rows_changed) && gpu::thread() == 5) b[7] = 0;
  if (wrong(Mistake::registers_changed) && gpu::thread() == 5) a[1] = 0;
  if (wrong(Mistake::sums_touched) && gpu::thread() == 5) sums[3][1] = 0;
  gpu::wait_for_warpgroup_products<0>();
  gpu::sync();
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t column = i / 4 * 8 + gpu::lane() % 4 * 2 + i % 2;
    *gpu::element<float>(p.out, (row + i % 4 / 2 * 8) * columns + column) = sums[i / 4][i % 4];
  }
}

class HostGpuTest : public ::testing::Test {
 protected:
  ~HostGpuTest() override { free_memory(params_.out); }

  void start(const char* name, uint32_t blocks, uint32_t threads, uint32_t shared_bytes = 0) {
    const KernelEntry* kernel = find_kernel(name);
    ASSERT_NE(kernel, nullptr);
    launch(kernel->name, kernel->body, &params_, {{blocks, 1, 1}, threads, shared_bytes});
  }
  /// What it says of a kernel that does wrong.
  std::string complaint(const char* name, uint32_t threads, uint32_t shared_bytes = 0) {
    try {
      start(name, 1, threads, shared_bytes);
    } catch (const std::logic_error& e) {
      return e.what();
    }
    return "nothing";
  }
  uint32_t word(uint32_t i) const { return static_cast<const uint32_t*>(checked_address(params_.out, 4))[i]; }

  TestParams params_{allocate_memory(16384), 0};
};

TEST_F(HostGpuTest, ThreadsOfABlockMeetAtBarriers) {
  start("test_reverse", 4, 64, 256);
  for (uint32_t i = 0; i < 256; ++i) EXPECT_EQ(word(i), 63 - i % 64);
}

TEST_F(HostGpuTest, LanesSeeEachOthersValues) {
  start("test_shuffle", 1, 64);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(word(i), (i < 32 ? 496u : 1520u) + 8u);
}

TEST_F(HostGpuTest, ThreadsThatWaitForDifferentThingsAreNamed) {
  params_.count = 32;
  EXPECT_NE(complaint("test_lonely_barrier", 64).find("wait at a barrier"), std::string::npos);
}

TEST_F(HostGpuTest, AccessesOutsideOfMemoryAreNamed) {
  params_.count = 4096;
  EXPECT_NE(complaint("test_beyond", 32).find("16384 bytes behind the beginning of an allocation of 16384"),
            std::string::npos);
  params_.count = 8;
  EXPECT_NE(complaint("test_shared_beyond", 32, 64).find("element 8 of 8 in shared memory"), std::string::npos);
  EXPECT_NE(complaint("test_shared_beyond", 32, 16).find("shared memory of 16 bytes"), std::string::npos);
}

// What GPUs with programmatic dependent launch would answer with values of another pass, now and then.
TEST_F(HostGpuTest, AccessesBeforeTheWaitForEarlierKernelsAreNamed) {
  EXPECT_NE(complaint("test_early_write", 32).find("it writes before it waited"), std::string::npos);
  EXPECT_EQ(complaint("test_early_read", 32), "nothing");  // of memory that no kernel has written yet
  start("test_reverse", 1, 64, 256);
  EXPECT_NE(complaint("test_early_read", 32).find("it reads what kernels write"), std::string::npos);
  EXPECT_NE(complaint("test_no_wait", 32).find("did not wait"), std::string::npos);
}

TEST_F(HostGpuTest, MultipliesAsTensorCoresAreDefined) {
  start("test_multiply", 1, 32);
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      double expected = 1;
      for (int k = 0; k < 16; ++k) expected += (row + k / 16.0) * (k - static_cast<int>(column));
      EXPECT_FLOAT_EQ(std::bit_cast<float>(word(row * 8 + column)), static_cast<float>(expected))
          << row << " " << column;
    }
  }
}

TEST_F(HostGpuTest, MultipliesForWarpgroups) {
  start("test_warpgroup", 1, 128, 2048);
  for (uint32_t row = 0; row < 64; ++row) {
    for (uint32_t column = 0; column < 64; ++column) {
      const uint32_t expected = 2 * row * (120 + 16 * column);  // below 2^24
      EXPECT_EQ(std::bit_cast<float>(word(row * 64 + column)), static_cast<float>(expected)) << row << " " << column;
    }
  }
}

TEST_F(HostGpuTest, MistakesWithWarpgroupsAreNamed) {
  const std::pair<Mistake, const char*> cases[] = {{Mistake::rows_not_shown, "not all threads have shown"},
                                                   {Mistake::no_barrier, "not all threads have shown"},
                                                   {Mistake::not_begun, "before what registers have is ordered"},
                                                   {Mistake::rows_changed, "rows in shared memory changed"},
                                                   {Mistake::registers_changed, "registers changed"},
                                                   {Mistake::sums_touched, "sums changed"},
                                                   {Mistake::not_waited, "did not wait for the products"},
                                                   {Mistake::other_warp, "warps of a warpgroup"},
                                                   {Mistake::beyond, "ends at byte 2064 of 2048"}};
  for (const auto& [mistake, words] : cases) {
    params_.count = static_cast<uint32_t>(mistake);
    EXPECT_NE(complaint("test_warpgroup", 128, 2048).find(words), std::string::npos) << words;
  }
  params_.count = 0;
  EXPECT_NE(complaint("test_warpgroup", 64, 2048).find("a warpgroup has four warps"), std::string::npos);
}

}  // namespace
}  // namespace canopy::host_gpu

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

  TestParams params_{allocate_memory(1024), 0};
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
  params_.count = 256;
  EXPECT_NE(complaint("test_beyond", 32).find("1024 bytes behind the beginning of an allocation of 1024"),
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

}  // namespace
}  // namespace canopy::host_gpu

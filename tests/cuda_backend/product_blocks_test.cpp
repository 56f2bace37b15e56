// Blocks of products, few and many rows in them, by warps and by warpgroups: on made-up GPUs with as many units as each
// is chosen for.
#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "cuda_backend/plan.h"
#include "cuda_backend/weight_tiles.h"
#include "tests/cuda_backend/deep_case.h"
#include "tests/cuda_backend/fake_device.h"

namespace canopy::test {
namespace {

using namespace cuda;

class ProductBlocksTest : public OpTest {};

// On GPUs with fewer or more units blocks have more or fewer rows, and after a fall back no warpgroups.
TEST_P(ProductBlocksTest, ChangeNoBit) {
  struct Case {
    uint32_t rows, units;
  };
  std::set<std::string> kernels;
  for (const Case& of : {Case{384, 4}, {384, 132}, {256, 3}}) {
    const DeepCase c{WeightType::q4_k, of.rows, 1280};
    std::vector<std::vector<uint32_t>> alone;
    for (uint32_t row = 0; row < DeepCase::pool; ++row) alone.push_back(c.run(device(), {row})[0].words);
    CudaDeviceOptions options = fake_device_options();
    options.facts.multiprocessors = of.units;
    const std::unique_ptr<Device> gpu = open_cuda_device(options);
    bool warpgroups = has_warpgroups(options.facts);
    do {
      for (const uint32_t width : {12u, 30u, 60u}) {
        const GpuLimits limits{options.facts.architecture, options.facts.shared_bytes, of.units, warpgroups};
        const ProductPlan plan =
            plan_product(WeightParams{0, of.rows, c.cols}, kTileQ4K, {}, {}, width, limits, ProductKind::store);
        const std::string kernel = product_kernel(c.type, c.type, plan);
        SCOPED_TRACE(kernel);
        std::vector<uint32_t> which(width);
        for (uint32_t w = 0; w < width; ++w) which[w] = (3 * w + width) % DeepCase::pool;
        take_launched_kernels();
        const Results together = c.run(*gpu, which);
        const std::set<std::string> launched = take_launched_kernels();
        EXPECT_TRUE(launched.contains(kernel)) << "it ran " << testing::PrintToString(launched);
        kernels.insert(launched.begin(), launched.end());
        for (uint32_t w = 0; w < width; ++w) {
          ASSERT_TRUE(std::equal(alone[which[w]].begin(), alone[which[w]].begin() + of.rows,
                                 together[0].words.begin() + w * of.rows))
              << "row " << w << " of width " << width << ", " << of.rows << " rows, " << of.units << " units";
        }
      }
      warpgroups = false;
    } while (gpu->fall_back());
    EXPECT_FALSE(gpu->fall_back());
  }
  if (!has_warpgroups(fake_device_options().facts)) return;  // others have fewer kinds of blocks
  const std::set<std::string> all = {"product_q4_k_16",
                                     "product_q4_k_32",
                                     "product_q4_k_64",
                                     "product_q4_k_64_6",
                                     "product_q4_k_16_384",
                                     "product_q4_k_32_384",
                                     "product_q4_k_64_warpgroups_192",
                                     "product_q4_k_64_warpgroups_256",
                                     "product_q4_k_64_warpgroups_384"};
  EXPECT_EQ(kernels, all);
}

CANOPY_OP_TESTS(ProductBlocksTest);

}  // namespace
}  // namespace canopy::test

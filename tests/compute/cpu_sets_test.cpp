// All instruction sets, and any number of threads, give the same bits: of products with every type of weights, and of
// all that is not a product.

#include "tests/compute/cpu_cases.h"

namespace canopy::test {
namespace {

class CpuSets : public CpuSetTest {
 protected:
  static Device& portable() {
    static const std::unique_ptr<Device> device = open_cpu_device({"portable", 1});
    return *device;
  }
};

TEST_P(CpuSets, GiveTheBitsOfThePortableKernels) {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    const std::unique_ptr<Device> device = open_cpu_device({GetParam(), threads});
    SCOPED_TRACE(std::to_string(threads) + " threads");
    for (uint32_t i = 0; i < kWeightTypes; ++i) {
      const auto type = static_cast<WeightType>(i);
      SCOPED_TRACE(to_string(type));
      expect_same(products(portable(), type), products(*device, type));
    }
    expect_same(others(portable()), others(*device));
  }
}

CANOPY_ON_CPU_SETS(CpuSets);

}  // namespace
}  // namespace canopy::test

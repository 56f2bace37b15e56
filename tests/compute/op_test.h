#pragma once
// The fixture of the op tests: one test per op and device.

#include <gtest/gtest.h>

#include "tests/compute/devices.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"

namespace canopy::test {

class OpTest : public testing::TestWithParam<NamedDevice> {
 protected:
  Device& device() { return *GetParam().device; }

  /// Runs `op_case(Device&) -> Results` on the oracle and on the device and compares.
  template <class Case>
  void compare(const Case& op_case) {
    expect_same(op_case(oracle()), op_case(device()));
  }
};

inline std::string device_name(const testing::TestParamInfo<NamedDevice>& info) {
  return info.param.name;
}

inline constexpr WeightType every_weight_type[] = {WeightType::f32, WeightType::f16, WeightType::bf16, WeightType::q8_0,
                                                   WeightType::q4_1};

}  // namespace canopy::test

#define CANOPY_OP_TESTS(Fixture)                                                               \
  INSTANTIATE_TEST_SUITE_P(On, Fixture, testing::ValuesIn(canopy::test::devices_under_test()), \
                           canopy::test::device_name)

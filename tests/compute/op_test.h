#pragma once
// The fixture of the op tests: one test per op and device.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/compute/devices.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"

namespace canopy::test {

class OpTest : public testing::TestWithParam<NamedDevice> {
 protected:
  Device& device() { return *GetParam().device; }

  /// Runs `op_case(Device&) -> Results` on the reference device and on the device under test, and compares.
  template <class Case>
  void compare(const Case& op_case) {
    expect_same(op_case(oracle()), op_case(device()));
  }
};

inline std::string device_name(const testing::TestParamInfo<NamedDevice>& info) {
  return info.param.name;
}

/// Whether CANOPY_TEST_SLOW_DEVICE says that kernels take long to compile on the device under test.
inline bool is_slow_device() {
  return std::getenv("CANOPY_TEST_SLOW_DEVICE") != nullptr;
}

/// The types of weights to test: all, or on slow devices only those in CANOPY_TEST_WEIGHT_TYPES ("F32,Q4_K").
inline std::vector<WeightType> weight_types_under_test() {
  const char* chosen = std::getenv("CANOPY_TEST_WEIGHT_TYPES");
  const std::string names = chosen == nullptr ? "" : "," + std::string(chosen) + ",";
  std::vector<WeightType> types;
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    if (names.empty() || names.find("," + std::string(to_string(type)) + ",") != std::string::npos)
      types.push_back(type);
  }
  return types;
}

/// The wanted numbers of columns that rows of this type can have; if there are none, two that they can have.
inline std::vector<uint32_t> columns_for(WeightType type, std::vector<uint32_t> wanted) {
  const uint32_t block = block_size(type).elements;
  std::erase_if(wanted, [&](uint32_t cols) { return cols % block != 0; });
  return wanted.empty() ? std::vector<uint32_t>{256, 768} : wanted;
}

}  // namespace canopy::test

#define CANOPY_OP_TESTS(Fixture)                                                               \
  INSTANTIATE_TEST_SUITE_P(On, Fixture, testing::ValuesIn(canopy::test::devices_under_test()), \
                           canopy::test::device_name)

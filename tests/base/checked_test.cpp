#include "engine/base/numbers.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

constexpr uint64_t most = UINT64_MAX;

TEST(Checked, MultipliesUpToTheLimitAndNotBeyond) {
  EXPECT_EQ(checked_mul<uint64_t>(most, 1, "x"), most);
  EXPECT_EQ(checked_mul<uint64_t>(0, most, "x"), 0u);
  EXPECT_EQ(checked_mul<uint64_t>(most / 3, 3, "x"), most / 3 * 3);
  EXPECT_EQ(checked_mul<uint8_t>(15, 17, "x"), 255);
  const std::string refusal = "The x overflows";
  test::expect_error(refusal, [] { checked_mul<uint64_t>(most / 3 + 1, 3, "x"); });
  test::expect_error(refusal, [] { checked_mul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32, "x"); });
  test::expect_error(refusal, [] { checked_mul<uint8_t>(16, 16, "x"); });
}

TEST(Checked, AddsUpToTheLimitAndNotBeyond) {
  EXPECT_EQ(checked_add<uint64_t>(most - 1, 1, "x"), most);
  test::expect_error("The x overflows", [] { checked_add<uint64_t>(most, 1, "x"); });
}

TEST(Checked, MessagesNameQuantityAndValues) {
  test::expect_error("The size overflows: 300000000 times 300000000 is more than 4294967295.",
                     [] { checked_mul<uint32_t>(300000000, 300000000, "size"); });
  test::expect_error("The end overflows: 4294967295 plus 1", [] { checked_add<uint32_t>(UINT32_MAX, 1, "end"); });
  test::expect_error("The count is -1, outside the range 0 to 4294967295.",
                     [] { checked_cast<uint32_t>(int64_t{-1}, "count"); });
}

TEST(Checked, AlignsUp) {
  EXPECT_EQ(checked_align_up<uint64_t>(0, 32, "x"), 0u);
  EXPECT_EQ(checked_align_up<uint64_t>(1, 32, "x"), 32u);
  EXPECT_EQ(checked_align_up<uint64_t>(32, 32, "x"), 32u);
  test::expect_error("The x overflows", [] { checked_align_up<uint64_t>(most - 3, 32, "x"); });
}

}  // namespace
}  // namespace canopy

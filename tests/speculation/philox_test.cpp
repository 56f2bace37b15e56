#include "engine/compute/sampling.h"

#include <gtest/gtest.h>

namespace canopy {
namespace {

// Known answers of the authors' Random123 library (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, DependsOnCounterAndKeyAndNothingElse) {
  EXPECT_EQ(philox4x32({1, 2, 3, 4}, {5, 6}), philox4x32({1, 2, 3, 4}, {5, 6}));
  EXPECT_NE(philox4x32({1, 2, 3, 4}, {5, 6}), philox4x32({1, 2, 3, 4}, {5, 7}));
  EXPECT_NE(philox4x32({1, 2, 3, 4}, {5, 6}), philox4x32({1, 2, 3, 5}, {5, 6}));
}

}  // namespace
}  // namespace canopy

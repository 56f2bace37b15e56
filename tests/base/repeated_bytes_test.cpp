#include "engine/base/mapped_file.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/base/error.h"

namespace canopy {
namespace {

TEST(RepeatedBytesTest, RepeatsThePatternThroughTheWholeRange) {
  std::vector<std::byte> pattern(2 * RepeatedBytes::page());
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::byte>(i * 31 + i / 256);
  RepeatedBytes first(pattern, 5 * pattern.size() + 1);
  const RepeatedBytes bytes = std::move(first);
  EXPECT_TRUE(first.bytes().empty());
  ASSERT_GE(bytes.bytes().size(), 5 * pattern.size() + 1);
  ASSERT_EQ(bytes.bytes().size() % pattern.size(), 0u);
  for (size_t i = 0; i < bytes.bytes().size(); ++i) ASSERT_EQ(bytes.bytes()[i], pattern[i % pattern.size()]) << i;
}

TEST(RepeatedBytesTest, RefusesPatternsThatAreNoWholePages) {
  for (const size_t size : {size_t{0}, size_t{1}, static_cast<size_t>(RepeatedBytes::page()) + 1}) {
    const std::vector<std::byte> pattern(size);
    EXPECT_THROW(RepeatedBytes(pattern, 100), Error) << size;
  }
}

TEST(RepeatedBytesTest, SaysWhereThereIsNoRoom) {
  const std::vector<std::byte> pattern(RepeatedBytes::page());
  try {
    const RepeatedBytes bytes(pattern, uint64_t{1} << 60);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
  }
}

}  // namespace
}  // namespace canopy

// The one file of kernels, and those that this build has in it.

#include "cuda_backend/driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engine/base/error.h"

namespace canopy::cuda {
namespace {

/// A fat binary of `words` words behind its header.
std::vector<std::byte> fatbin(uint64_t words) {
  std::vector<uint64_t> all(2 + words, 0);
  all[0] = kFatbinMagic | uint64_t{1} << 32 | uint64_t{16} << 48;
  all[1] = words * 8;
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

TEST(EmbeddedKernelsTest, JoinedFatBinariesAreFoundAgain) {
  std::vector<std::byte> joined = fatbin(3);
  const std::vector<std::byte> second = fatbin(0), third = fatbin(7);
  joined.insert(joined.end(), second.begin(), second.end());
  joined.insert(joined.end(), third.begin(), third.end());
  const std::vector<const void*> found = split_fatbins(joined);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], joined.data());
  EXPECT_EQ(found[1], joined.data() + 40);
  EXPECT_EQ(found[2], joined.data() + 56);
  EXPECT_TRUE(split_fatbins({}).empty());
}

TEST(EmbeddedKernelsTest, OtherBytesAreRefused) {
  const std::vector<std::byte> whole = fatbin(2);
  for (size_t bytes = 1; bytes < whole.size(); ++bytes) {
    EXPECT_THROW(split_fatbins(std::span(whole).first(bytes)), Error) << bytes;
  }
  std::vector<std::byte> wrong = whole;
  wrong[0] = std::byte{0};
  EXPECT_THROW(split_fatbins(wrong), Error);
  wrong = whole;
  wrong[6] = std::byte{8};  // a header that ends before itself
  EXPECT_THROW(split_fatbins(wrong), Error);
}

#ifdef CANOPY_CUDA_MODULES
uint32_t read_word(const std::byte* at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

/// What the entries of a fat binary are for: PTX or machine code, and of which architecture.
struct Entry {
  bool ptx = false;
  int architecture = 0;
};
std::vector<Entry> entries_of(const std::byte* fatbin) {
  uint64_t size = 0;
  std::memcpy(&size, fatbin + 8, sizeof(size));
  std::vector<Entry> entries;
  for (uint64_t at = 16; at < 16 + size;) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, fatbin + at + 8, sizeof(bytes));
    entries.push_back({(read_word(fatbin + at) & 0xFFFF) == 1, static_cast<int>(read_word(fatbin + at + 28))});
    at += read_word(fatbin + at + 4) + bytes;
  }
  return entries;
}

TEST(EmbeddedKernelsTest, EveryFileOfKernelsIsThereForEveryArchitecture) {
  const EmbeddedKernels& kernels = embedded_kernels();
  const std::vector<const void*> modules = split_fatbins(kernels.fatbins);
  EXPECT_EQ(modules.size(), static_cast<size_t>(CANOPY_CUDA_MODULES));
  EXPECT_GE(kernels.least_driver, 12000);
  ASSERT_FALSE(kernels.architectures.empty());
  for (const void* module : modules) {
    std::vector<int> machine_code, ptx;
    for (const Entry& entry : entries_of(static_cast<const std::byte*>(module))) {
      (entry.ptx ? ptx : machine_code).push_back(entry.architecture);
    }
    EXPECT_EQ(machine_code, kernels.architectures);
    EXPECT_EQ(ptx, std::vector<int>{kernels.architectures.back()});
  }
}
#else
TEST(EmbeddedKernelsTest, ABuildWithoutACompilerHasNone) {
  EXPECT_TRUE(embedded_kernels().fatbins.empty());
  EXPECT_TRUE(embedded_kernels().architectures.empty());
}
#endif

}  // namespace
}  // namespace canopy::cuda

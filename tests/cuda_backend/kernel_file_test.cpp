// The one file of kernels, and that of this build.

#include "cuda_backend/driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "tests/base/temp_folder.h"

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

TEST(KernelFileTest, JoinedFatBinariesAreFoundAgain) {
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

TEST(KernelFileTest, OtherBytesAreRefused) {
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

/// What a file with this content was built as.
BuiltKernels built_as(const std::string& content, const std::string& sha256) {
  return {content.size(), sha256, 13000, {75, 90}};
}

TEST(KernelFileTest, TheFileThatWasBuiltIsLoaded) {
  const test::TempFolder folder;
  const std::vector<std::byte> bytes = fatbin(5);
  const std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string sha256 = hex_digits(canopy::sha256(content));
  const Kernels kernels = load_kernels(built_as(content, sha256), folder.write("k.fatbin", content));
  EXPECT_EQ(kernels.reason, "");
  EXPECT_EQ(kernels.architectures, (std::vector<int>{75, 90}));
  EXPECT_EQ(kernels.least_driver, 13000);
  ASSERT_EQ(kernels.fatbins.size(), bytes.size());
  EXPECT_EQ(split_fatbins(kernels.fatbins).size(), 1u);
  EXPECT_EQ(std::memcmp(kernels.fatbins.data(), bytes.data(), bytes.size()), 0);
}

TEST(KernelFileTest, AnyOtherFileIsNone) {
  const test::TempFolder folder;
  const std::string content(64, 'k'), sha256 = hex_digits(canopy::sha256(content));
  const BuiltKernels built = built_as(content, sha256);
  std::string changed = content;
  changed[40] = 'K';
  const auto reason = [&](const std::optional<std::filesystem::path>& path) {
    const Kernels kernels = load_kernels(built, path);
    EXPECT_TRUE(kernels.fatbins.empty() && kernels.architectures.empty());
    return kernels.reason;
  };
  EXPECT_NE(
      reason(folder.write("shorter", content.substr(1))).find("has 63 bytes; that of this build of Canopy has 64"),
      std::string::npos);
  EXPECT_NE(reason(folder.write("changed", changed)).find("its SHA-256 is"), std::string::npos);
  EXPECT_NE(reason(folder.write("empty", "")).find("empty"), std::string::npos);
  EXPECT_NE(reason(folder.path() / "missing").find("missing"), std::string::npos);
  EXPECT_NE(reason(folder.path()).find(folder.path().string()), std::string::npos);
  EXPECT_NE(reason(std::nullopt).find("canopy-cuda"), std::string::npos);
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

TEST(KernelFileTest, EveryFileOfKernelsIsThereForEveryArchitecture) {
  const Kernels& kernels = installed_kernels();
  ASSERT_EQ(kernels.reason, "");
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
TEST(KernelFileTest, ABuildWithoutACompilerHasNone) {
  EXPECT_EQ(built_kernels().bytes, 0u);
  EXPECT_TRUE(installed_kernels().fatbins.empty());
  EXPECT_NE(installed_kernels().reason.find("nvcc"), std::string::npos);
}
#endif

}  // namespace
}  // namespace canopy::cuda

#include "engine/model/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/mapped_file.h"
#include "engine/model/page_release.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

constexpr uint64_t kMega = 1 << 20;

TensorView tensor_of(std::span<const std::byte> bytes) {
  TensorView tensor;
  tensor.bytes = bytes;
  return tensor;
}

/// Pages of a part of a mapped file that are in the system's memory or, by `met`, have been at an earlier call with the
/// same part: systems that are told to keep memory free drop pages at any time. Nothing where it does not tell.
uint64_t pages_met(std::span<const std::byte> part, std::vector<bool>& met) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages(part.size() / page);
  if (::mincore(const_cast<std::byte*>(part.data()), part.size(), pages.data()) != 0) return 0;
  met.resize(std::max(met.size(), pages.size()));
  uint64_t count = 0;
  for (size_t i = 0; i < pages.size(); ++i) {
    if ((pages[i] & 1) != 0) met[i] = true;
    count += met[i] ? 1 : 0;
  }
  return count;
}

uint64_t pages_in_memory(std::span<const std::byte> part) {
  std::vector<bool> met;
  return pages_met(part, met);
}

TEST(ReadingOrder, TakesTurnsWhereRowsAreInterleaved) {
  const std::vector<std::byte> file(20 * kMega);
  const std::span<const std::byte> all(file);
  const TensorView first = tensor_of(all.subspan(0, 5 * kMega)), gate = tensor_of(all.subspan(6 * kMega, 3 * kMega)),
                   up = tensor_of(all.subspan(10 * kMega, 3 * kMega));
  const MatrixPlan stacked{"one", {&first}, WeightType::f32, WeightLayout::stacked};
  const MatrixPlan paired{"two", {&gate, &up}, WeightType::f32, WeightLayout::paired};
  const MatrixPlan* const matrices[] = {&stacked, &paired};
  std::vector<std::pair<uint64_t, uint64_t>> found;  // begin and bytes, in MiB
  for (const auto& part : in_reading_order(matrices)) {
    found.emplace_back((part.data() - file.data()) / kMega, part.size() / kMega);
  }
  const std::vector<std::pair<uint64_t, uint64_t>> expected = {{0, 2},  {2, 2}, {4, 1}, {6, 2},
                                                               {10, 2}, {8, 1}, {12, 1}};
  EXPECT_EQ(found, expected);
}

TEST(ReadAhead, BringsAWindowAndNoMoreUntilItIsRead) {
  const TempFolder folder;
  const std::filesystem::path path = folder.write("file", std::string(100 * kMega, 'x'));
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ::fsync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  const MappedFile file = MappedFile::open(path);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (pages_in_memory(file.bytes()) > 0) GTEST_SKIP() << "the file system keeps files in memory";
  std::vector<std::span<const std::byte>> parts;
  for (uint64_t at = 0; at < file.bytes().size(); at += 2 * kMega) parts.push_back(file.bytes().subspan(at, 2 * kMega));
  ReadAhead ahead(parts);
  std::vector<bool> met;
  const auto reaches = [&](uint64_t megabytes) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (pages_met(file.bytes().first(megabytes * kMega), met) < megabytes * kMega / page) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  };
  EXPECT_TRUE(reaches(64));
  EXPECT_EQ(pages_in_memory(file.bytes().subspan(70 * kMega)), 0u);
  ahead.advance(10 * kMega);
  EXPECT_TRUE(reaches(74));
  ahead.advance(90 * kMega);  // the rest was read meanwhile
}

TEST(PageRelease, ReleasesAChunkWhenAllOfItWasUsed) {
  const TempFolder folder;
  const MappedFile file = MappedFile::open(folder.write("file", std::string(9 * kMega + 123, 'x')));
  const auto resident = [&] {  // bytes of the mapping in this process's memory
    uint64_t pages = 0, shared = 0, total = 0;
    std::ifstream("/proc/self/statm") >> total >> pages >> shared;
    return shared * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  };
  uint64_t sum = 0;
  const uint64_t before = resident();
  for (const std::byte byte : file.bytes()) sum += static_cast<uint64_t>(byte);
  ASSERT_GT(sum, 0u);
  if (resident() < before + 8 * kMega) GTEST_SKIP() << "the system does not count mapped files";
  PageRelease pages(file.bytes());
  pages.used(file.bytes().subspan(0, 3 * kMega));
  EXPECT_GT(resident(), before + 8 * kMega);
  pages.used(file.bytes().subspan(5 * kMega, 2 * kMega));
  pages.used(file.bytes().subspan(3 * kMega, 2 * kMega));  // across the end of the first chunk
  EXPECT_LT(resident(), before + 6 * kMega);
  EXPECT_GT(resident(), before + 4 * kMega);
  pages.used(file.bytes().subspan(7 * kMega));
  EXPECT_LT(resident(), before + 1 * kMega);
}

}  // namespace
}  // namespace canopy::test

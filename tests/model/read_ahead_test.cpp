#include "engine/model/weights.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "engine/base/mapped_file.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

constexpr uint64_t kMega = 1 << 20;

TensorView tensor_of(std::span<const std::byte> bytes) {
  TensorView tensor;
  tensor.bytes = bytes;
  return tensor;
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

TEST(ReadingOrder, TakesOnePairAfterTheOther) {
  const std::vector<std::byte> file(16 * kMega);
  const std::span<const std::byte> all(file);
  std::vector<TensorView> tensors;
  for (const size_t begin : {0, 4, 8, 12}) tensors.push_back(tensor_of(all.subspan(begin * kMega, 3 * kMega)));
  const MatrixPlan pairs{
      "four", {tensors.data(), &tensors[1], &tensors[2], &tensors[3]}, WeightType::f32, WeightLayout::paired};
  const MatrixPlan* const only = &pairs;
  std::vector<uint64_t> found;  // begin, in MiB
  for (const auto& part : in_reading_order({&only, 1})) found.push_back((part.data() - file.data()) / kMega);
  EXPECT_EQ(found, (std::vector<uint64_t>{0, 4, 2, 6, 8, 12, 10, 14}));
}

/// Notes what is asked for, in order.
class Asked {
 public:
  void add(std::span<const std::byte> part) {
    const std::lock_guard lock(mutex_);
    parts_.push_back(part);
    changed_.notify_all();
  }

  /// The parts, once there are `count` of them or more; fewer when that takes over 20 s.
  std::vector<std::span<const std::byte>> at_least(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return parts_.size() >= count; });
    return parts_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::span<const std::byte>> parts_;
};

TEST(ReadAhead, AsksForAWindowAndNoMoreUntilItIsRead) {
  const std::vector<std::byte> file(100 * kMega);
  std::vector<std::span<const std::byte>> parts;
  for (uint64_t at = 0; at < file.size(); at += 2 * kMega) parts.push_back(std::span(file).subspan(at, 2 * kMega));
  Asked asked;
  ReadAhead ahead(parts, [&](std::span<const std::byte> part) { asked.add(part); });
  EXPECT_EQ(asked.at_least(32).size(), 32u);  // 64 MiB
  ahead.advance(10 * kMega);
  EXPECT_EQ(asked.at_least(37).size(), 37u);  // 74 MiB
  ahead.advance(88 * kMega);                  // the rest was read meanwhile, but for the last part
  const std::vector<std::span<const std::byte>> all = asked.at_least(38);
  ASSERT_EQ(all.size(), 38u);
  for (size_t i = 0; i < 37; ++i) EXPECT_EQ(all[i].data(), parts[i].data()) << i;
  EXPECT_EQ(all[37].data(), parts[49].data());
}

TEST(ReadAhead, EndsInTheMiddle) {
  const std::vector<std::byte> file(100 * kMega);
  std::vector<std::span<const std::byte>> parts;
  for (uint64_t at = 0; at < file.size(); at += 2 * kMega) parts.push_back(std::span(file).subspan(at, 2 * kMega));
  Asked asked;
  {
    const ReadAhead ahead(parts, [&](std::span<const std::byte> part) { asked.add(part); });
  }
  EXPECT_LE(asked.at_least(0).size(), 32u);
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

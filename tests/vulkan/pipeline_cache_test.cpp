#include "engine/vulkan/kernel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace canopy::vk {
namespace {

CacheIdentity identity() {
  CacheIdentity id;
  id.device_uuid.fill(1);
  id.driver_uuid.fill(2);
  id.cache_uuid.fill(3);
  id.vendor_id = 0x1002;
  id.device_id = 7;
  id.driver_version = 22;
  return id;
}

std::vector<std::byte> bytes(size_t count) {
  std::vector<std::byte> data(count);
  for (size_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::byte>(i * 37 + 11);
  }
  return data;
}

class PipelineCacheFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("canopy-cache-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(PipelineCacheFile, comesBackAsItWasSaved) {
  const std::filesystem::path path = folder_ / "new" / "cache.bin";
  EXPECT_EQ(save_cache(path, identity(), bytes(1000)), "");
  const CacheFile file = load_cache(path, identity());
  EXPECT_EQ(file.note, "");
  EXPECT_EQ(file.data, bytes(1000));
}

TEST_F(PipelineCacheFile, thatIsMissingIsNoProblem) {
  const CacheFile file = load_cache(folder_ / "none", identity());
  EXPECT_EQ(file.note, "");
  EXPECT_TRUE(file.data.empty());
}

TEST_F(PipelineCacheFile, thatIsAFolderIsIgnored) {
  EXPECT_NE(load_cache(folder_, identity()).note.find("not a readable file"), std::string::npos);
}

TEST_F(PipelineCacheFile, thatIsTooLargeIsIgnoredUnread) {
  const std::filesystem::path path = folder_ / "large";
  std::ofstream(path).put('x');
  std::filesystem::resize_file(path, max_cache_bytes + 1);  // sparse
  EXPECT_NE(load_cache(path, identity()).note.find("at most"), std::string::npos);
}

TEST_F(PipelineCacheFile, thatCannotBeSavedSaysWhy) {
  std::ofstream(folder_ / "file").put('x');
  const std::string problem = save_cache(folder_ / "file" / "cache.bin", identity(), bytes(10));
  EXPECT_NE(problem.find("was not saved"), std::string::npos);
}

TEST(PipelineCache, ofNoDataIsValid) {
  EXPECT_EQ(unpack_cache(identity(), pack_cache(identity(), {})).note, "");
}

TEST(PipelineCache, refusesEveryTruncation) {
  const std::vector<std::byte> whole = pack_cache(identity(), bytes(64));
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const CacheFile file = unpack_cache(identity(), cut);
    EXPECT_NE(file.note, "") << length;
    EXPECT_TRUE(file.data.empty()) << length;
  }
}

TEST(PipelineCache, refusesTrailingBytes) {
  std::vector<std::byte> file = pack_cache(identity(), bytes(64));
  file.push_back(std::byte{0});
  EXPECT_NE(unpack_cache(identity(), file).note, "");
}

TEST(PipelineCache, refusesEveryFlippedBit) {
  std::vector<std::byte> file = pack_cache(identity(), bytes(64));
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    const std::byte mask = std::byte{1} << (bit % 8);
    file[bit / 8] ^= mask;
    EXPECT_NE(unpack_cache(identity(), file).note, "") << bit;
    EXPECT_TRUE(unpack_cache(identity(), file).data.empty()) << bit;
    file[bit / 8] ^= mask;
  }
  EXPECT_EQ(unpack_cache(identity(), file).note, "");
}

TEST(PipelineCache, tellsAForeignDeviceFromAForeignDriver) {
  const std::vector<std::byte> file = pack_cache(identity(), bytes(64));
  CacheIdentity device = identity();
  device.device_uuid[5] ^= 1;
  EXPECT_NE(unpack_cache(device, file).note.find("another device"), std::string::npos);
  CacheIdentity driver = identity();
  driver.driver_version += 1;
  EXPECT_NE(unpack_cache(driver, file).note.find("another version of the driver"), std::string::npos);
}

}  // namespace
}  // namespace canopy::vk

#include "engine/base/atomic_file.h"

#include <gtest/gtest.h>

#include "engine/base/mapped_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, CreatesAndReplaces) {
  const TempFolder folder;
  const auto path = folder.path() / "settings.json";
  write_file_atomically(path, "one");
  EXPECT_EQ(read_small_file(path, 100), "one");
  write_file_atomically(path, std::string(100000, 'x'));
  EXPECT_EQ(fs::file_size(path), 100000u);
  EXPECT_EQ(files_in(folder.path()), 1u) << "no temporary file stays";
}

TEST(AtomicFile, WritesPartByPart) {
  const TempFolder folder;
  const auto path = folder.path() / "model";
  const auto put_text = [](const PutBytes& put, std::string_view text) { put(std::as_bytes(std::span(text))); };
  stream_file_atomically(path, [&](const PutBytes& put) {
    for (const char* text : {"one", "", "two"}) put_text(put, text);
  });
  EXPECT_EQ(read_small_file(path, 100), "onetwo");
  test::expect_error("in the middle", [&] {
    stream_file_atomically(path, [&](const PutBytes& put) {
      put_text(put, "three");
      throw bad_input("in the middle");
    });
  });
  EXPECT_EQ(read_small_file(path, 100), "onetwo");
  EXPECT_EQ(files_in(folder.path()), 1u) << "no temporary file stays";
}

TEST(AtomicFile, KeepsPermissionsAndFollowsLinks) {
  const TempFolder folder;
  const auto target = folder.write("target", "old");
  fs::permissions(target, fs::perms::owner_read | fs::perms::owner_write);
  const auto link = folder.path() / "link";
  fs::create_symlink(target, link);
  write_file_atomically(link, "new");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_small_file(target, 100), "new");
  EXPECT_EQ(fs::status(target).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(AtomicFile, AFailureLeavesEverythingAsItWas) {
  const TempFolder folder;
  test::expect_error("creating a temporary file beside it failed",
                     [&] { write_file_atomically(folder.path() / "no" / "such" / "folder", "x"); });
  const auto occupied = folder.path() / "occupied";
  fs::create_directory(occupied);
  test::expect_error("renaming the new file failed", [&] { write_file_atomically(occupied, "x"); });
  EXPECT_TRUE(fs::is_directory(occupied));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

}  // namespace
}  // namespace canopy

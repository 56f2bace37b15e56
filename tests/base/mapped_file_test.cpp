#include "engine/base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/base/unprivileged.h"

namespace canopy {
namespace {

using test::expect_error;
using test::TempFolder;

TEST(MappedFile, MapsAllBytesAndSurvivesAMove) {
  const TempFolder folder;
  MappedFile first = MappedFile::open(folder.write("a", "hello"));
  MappedFile second = std::move(first);
  ASSERT_EQ(second.bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(second.bytes()[4]), 'o');
  EXPECT_NO_THROW(second.check_unchanged());
}

TEST(MappedFile, RefusesWhatIsNoReadableFile) {
  const TempFolder folder;
  expect_error("does not exist", [&] { MappedFile::open(folder.path() / "missing"); });
  expect_error("is a directory", [&] { MappedFile::open(folder.path()); });
  expect_error("is empty", [&] { MappedFile::open(folder.write("empty", "")); });
  expect_error("cannot be opened: Not a directory", [&] { MappedFile::open(folder.write("file", "x") / "below"); });
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error("is a device or a pipe", [&] { MappedFile::open(pipe); });
}

TEST(MappedFile, RefusesAnUnreadableFile) {
  const TempFolder folder;
  const auto file = folder.write("locked", "x");
  std::filesystem::permissions(file, std::filesystem::perms::none);
  const test::Unprivileged user;
  if (!user) GTEST_SKIP() << "root reads everything";
  expect_error("cannot be opened: Permission denied", [&] { MappedFile::open(file); });
  expect_error("cannot be opened: Permission denied", [&] { read_small_file(file, 10); });
}

TEST(MappedFile, NoticesThatTheFileShrankOrChanged) {
  const TempFolder folder;
  const auto path = folder.write("a", "0123456789");
  const MappedFile shrunk = MappedFile::open(path);
  std::filesystem::resize_file(path, 4);
  expect_error("had 10 bytes and now has 4", [&] { shrunk.check_unchanged(); });

  const auto other = folder.write("b", "0123456789");
  const MappedFile rewritten = MappedFile::open(other);
  std::filesystem::last_write_time(other, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  expect_error("was written to while it was open", [&] { rewritten.check_unchanged(); });
}

TEST(MappedFile, AReplacedFileKeepsItsOldContent) {
  const TempFolder folder;
  const auto path = folder.write("a", "old");
  const MappedFile file = MappedFile::open(path);
  std::filesystem::rename(folder.write("b", "new!"), path);
  EXPECT_NO_THROW(file.check_unchanged());
  EXPECT_EQ(static_cast<char>(file.bytes()[0]), 'o');
}

/// For each page of a mapped file, whether it is in the system's memory.
std::vector<unsigned char> pages_in_memory(std::span<const std::byte> part) {
  std::vector<unsigned char> pages(part.size() / static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  ::mincore(const_cast<std::byte*>(part.data()), part.size(), pages.data());
  for (unsigned char& page : pages) page &= 1;
  return pages;
}

TEST(MappedFile, PrefetchHasTheSystemReadAPart) {
  const TempFolder folder;
  const std::filesystem::path path = folder.write("file", std::string(4 << 20, 'x'));
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ::fsync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  const MappedFile file = MappedFile::open(path);
  const std::span<const std::byte> first = file.bytes().first(1 << 20);
  const std::vector<unsigned char> before = pages_in_memory(file.bytes());
  if (std::ranges::count(before, 1) > 0) GTEST_SKIP() << "the file system keeps files in memory";
  // It is a hint, and a system that is short of memory drops pages again: asked until each page was there once.
  std::vector<unsigned char> met(first.size() / static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::ranges::count(met, 0) > 0 && std::chrono::steady_clock::now() < deadline) {
    MappedFile::prefetch(first);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::vector<unsigned char> now = pages_in_memory(first);
    for (size_t i = 0; i < met.size(); ++i) met[i] |= now[i];
  }
  EXPECT_EQ(std::ranges::count(met, 0), 0);
  EXPECT_EQ(std::ranges::count(pages_in_memory(file.bytes().last(2 << 20)), 1), 0) << "more was read than asked for";
}

TEST(ReadSmallFile, ReadsUpToItsLimit) {
  const TempFolder folder;
  EXPECT_EQ(read_small_file(folder.write("a", "text"), 4), "text");
  EXPECT_EQ(read_small_file(folder.write("empty", ""), 4), "");
  expect_error("has 5 bytes; at most 4 are allowed", [&] { read_small_file(folder.write("b", "12345"), 4); });
}

// This file of sysfs is a regular one with a size, but cannot be mapped and, as on a bad disk, cannot be read.
TEST(ReadSmallFile, AnErrorOfTheDiskIsReported) {
  const std::filesystem::path file = "/sys/class/net/lo/speed";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no such file here";
  expect_error("The file /sys/class/net/lo/speed cannot be read: Invalid argument.",
               [&] { read_small_file(file, 1 << 20); });
  expect_error("The file /sys/class/net/lo/speed of ", [&] { MappedFile::open(file); });
}

TEST(MappedFile, MessagesShowHostileNamesSafely) {
  const TempFolder folder;
  const std::string message = test::error_of([&] { MappedFile::open(folder.path() / "\x1b]0;owned\a"); });
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_NE(message.find("\\x1b]0;owned\\x07"), std::string::npos);
}

}  // namespace
}  // namespace canopy

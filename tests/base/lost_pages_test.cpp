
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "engine/base/mapped_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

using test::TempFolder;

const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

char at(const MappedFile& file, size_t offset) {
  return static_cast<const volatile char&>(reinterpret_cast<const char&>(file.bytes()[offset]));
}

TEST(LostPages, AShrunkFileReadsAsZerosAndIsReported) {
  const TempFolder folder;
  const auto path = folder.write("m", std::string(4 * page, 'x'));
  const MappedFile file = MappedFile::open(path);
  EXPECT_EQ(at(file, 3 * page), 'x');
  std::filesystem::resize_file(path, page);
  EXPECT_EQ(at(file, 3 * page), '\0') << "and the process lives";
  EXPECT_EQ(at(file, 2 * page), '\0');
  EXPECT_EQ(at(file, 0), 'x');
  test::expect_error("had " + std::to_string(4 * page) + " bytes and now has " + std::to_string(page),
                     [&] { file.check_unchanged(); });
}

// As after a disk error: size and time of the file are as before, but a page could not be read.
TEST(LostPages, ALossIsRememberedWhenTheFileLooksAsBefore) {
  const TempFolder folder;
  const auto path = folder.write("m", std::string(2 * page, 'x'));
  const auto time = std::filesystem::last_write_time(path);
  MappedFile moved = MappedFile::open(path);
  const MappedFile file = std::move(moved);
  std::filesystem::resize_file(path, page);
  EXPECT_EQ(at(file, page), '\0');
  std::filesystem::resize_file(path, 2 * page);
  std::filesystem::last_write_time(path, time);
  test::expect_error("A part of the file " + path.string() + " could not be read: its disk or network drive failed",
                     [&] { file.check_unchanged(); });
  EXPECT_NO_THROW(MappedFile::open(path).check_unchanged()) << "the next one begins anew";
}

TEST(LostPages, WhatWasReadOfAChangingFileIsNotBlamedOnIt) {
  const TempFolder folder;
  const auto path = folder.write("m", std::string(2 * page, 'x'));
  const MappedFile file = MappedFile::open(path);
  test::expect_error("now has 1.", [&] {
    file.read_checked([&](std::span<const std::byte>) {
      std::filesystem::resize_file(path, 1);
      throw bad_input("nonsense was read");
    });
  });
}

TEST(LostPagesDeathTest, OtherFaultsStillEndTheProcess) {
  const TempFolder folder;
  const auto path = folder.write("m", std::string(page, 'x'));
  const MappedFile file = MappedFile::open(path);  // the handler is installed
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const void* other = ::mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_DEATH((void)static_cast<const volatile char*>(other)[page], "");
  ::munmap(const_cast<void*>(other), 2 * page);
  ::close(descriptor);
}

}  // namespace
}  // namespace canopy

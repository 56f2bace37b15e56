// What of engine/base has a form of its own on Windows. Names here have letters of several scripts, as code pages of
// Windows hold none of all of them.
#include <gtest/gtest.h>
#include <windows.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/base/files.h"
#include "engine/base/machine.h"
#include "engine/base/mapped_file.h"
#include "engine/base/posix.h"
#include "engine/base/text.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TempFolder;

const fs::path kName = fs::path(u8"Größe 你好 \U0001F469.txt");

size_t files_below(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// A variable of the environment for one test.
class Variable {
 public:
  Variable(const wchar_t* name, const std::wstring& value) : name_(name) {
    if (const wchar_t* old = ::_wgetenv(name)) old_ = old;
    ::_wputenv((name_ + L"=" + value).c_str());
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::_wputenv((name_ + L"=" + old_).c_str()); }

 private:
  std::wstring name_, old_;
};

TEST(WindowsFiles, ADescriptorIsOpenOrNot) {
  const TempFolder folder;
  const int descriptor = ::open((folder.path() / kName).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(descriptor, 0);
  EXPECT_GE(::fcntl(descriptor, F_GETFD), 0);
  ::close(descriptor);
  EXPECT_LT(::fcntl(descriptor, F_GETFD), 0);
}

TEST(WindowsFiles, AnyNameIsWrittenReplacedAndReadByteByByte) {
  const TempFolder folder;
  const fs::path path = folder.path() / kName;
  const std::string bytes = std::string("a\nb\r\nc\x1A d\0e\n", 13);  // of which a file of text would change four
  write_file_atomically(path, "the one before");
  write_file_atomically(path, bytes);
  EXPECT_EQ(read_small_file(path, 100), bytes);
  EXPECT_EQ(read_input(path, 100), bytes);
  EXPECT_EQ(files_below(folder.path()), 1u) << "no temporary file stays";
  const MappedFile file = MappedFile::open(path);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), bytes);
  EXPECT_EQ(shown(path.filename()), "Größe 你好 \U0001F469.txt");
}

TEST(WindowsFiles, AFailureLeavesEverythingAsItWas) {
  const TempFolder folder;
  const fs::path path = folder.path() / kName;
  write_file_atomically(path, "old");
  expect_error("in the middle", [&] {
    stream_file_atomically(path, [](const PutBytes& put) {
      put(std::as_bytes(std::span("new", 3)));
      throw bad_input("in the middle");
    });
  });
  EXPECT_EQ(read_small_file(path, 100), "old");
  EXPECT_EQ(files_below(folder.path()), 1u);
  expect_error("creating a temporary file beside it failed: No such file or directory.",
               [&] { write_file_atomically(folder.path() / "no" / "folder", "x"); });
  expect_error("it is a folder", [&] { write_file_atomically(folder.path(), "x"); });
}

TEST(WindowsFiles, WhatIsNoReadableFileIsRefused) {
  const TempFolder folder;
  expect_error("does not exist", [&] { MappedFile::open(folder.path() / "missing"); });
  expect_error("is a directory", [&] { MappedFile::open(folder.path()); });
  expect_error("is a directory", [&] { read_input(folder.path(), 10); });
  expect_error("is empty", [&] { MappedFile::open(folder.write("empty", "")); });
  expect_error("has 5 bytes; at most 4 are allowed", [&] { read_small_file(folder.write("b", "12345"), 4); });
}

TEST(WindowsFiles, AFileThatIsLockedIsRefused) {
  const TempFolder folder;
  const fs::path path = folder.write("locked", "x");
  const HANDLE alone = ::CreateFileW(path.c_str(), GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
  ASSERT_NE(alone, INVALID_HANDLE_VALUE);
  expect_error("cannot be opened: ", [&] { MappedFile::open(path); });
  ::CloseHandle(alone);
  EXPECT_NO_THROW(MappedFile::open(path));
}

TEST(WindowsFiles, AMappedFileCannotShrinkAndItsChangesAreNoticed) {
  const TempFolder folder;
  const fs::path path = folder.write("a", std::string(100000, 'x'));
  const MappedFile file = MappedFile::open(path);
  EXPECT_NO_THROW(file.check_unchanged());
  std::error_code error;
  fs::resize_file(path, 10, error);
  EXPECT_TRUE(error) << "what LostPagesWatch counts on";
  EXPECT_EQ(static_cast<char>(file.bytes()[99999]), 'x');

  const fs::path other = folder.write("b", "0123456789");
  const MappedFile rewritten = MappedFile::open(other);
  fs::last_write_time(other, fs::file_time_type::clock::now() + std::chrono::hours(1));
  expect_error("was written to while it was open", [&] { rewritten.check_unchanged(); });
}

TEST(WindowsFiles, PrefetchedAndForgottenPagesAreReadAgain) {
  const TempFolder folder;
  const std::string bytes(1 << 20, 'p');
  const MappedFile file = MappedFile::open(folder.write("a", bytes));
  MappedFile::prefetch(file.bytes());
  MappedFile::forget(file.bytes());
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()), bytes);
}

TEST(WindowsFolders, AreBelowLocalAppData) {
  const TempFolder folder;
  const fs::path base = folder.path() / kName;
  const Variable none_chosen(L"CANOPY_CACHE_DIR", L""), local(L"LOCALAPPDATA", base.wstring());
  const Variable cache(L"XDG_CACHE_HOME", L""), config(L"XDG_CONFIG_HOME", L""), data(L"XDG_DATA_HOME", L"");
  EXPECT_EQ(cache_dir(), base / "canopy" / "cache");
  EXPECT_EQ(config_dir(), base / "canopy" / "config");
  EXPECT_EQ(data_dir(), base / "canopy" / "data");
  EXPECT_TRUE(fs::is_directory(base / "canopy" / "cache"));
  const Variable chosen(L"CANOPY_CACHE_DIR", (base / "mine").wstring());
  EXPECT_EQ(cache_dir(), base / "mine");
  EXPECT_TRUE(fs::is_directory(base / "mine"));
  const Variable without(L"LOCALAPPDATA", L"");
  expect_error("LOCALAPPDATA", [] { config_dir(); });
}

TEST(WindowsMachine, TellsMemoryCoresAndTime) {
  const SystemMemory memory = system_memory();
  ASSERT_NE(memory.total, kUnknownMemory);
  EXPECT_LE(memory.available, memory.total);
  EXPECT_GE(usable_cores(), 1u);
  EXPECT_LE(usable_cores(), std::max(1u, std::thread::hardware_concurrency()));
  const auto before = processor_time();
  ASSERT_TRUE(before);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
  }
  const auto after = processor_time();
  ASSERT_TRUE(after);
  EXPECT_GT(after->own, before->own);
  EXPECT_GT(after->all, before->all);
}

}  // namespace
}  // namespace canopy

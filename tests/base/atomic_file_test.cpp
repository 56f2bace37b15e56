#include "engine/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

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
  test::expect_error("it is a folder", [&] { write_file_atomically(occupied, "x"); });
  EXPECT_TRUE(fs::is_directory(occupied));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, FollowsALinkToAFileThatIsNotThereYet) {
  const TempFolder folder;
  const auto link = folder.path() / "link";
  fs::create_symlink("new", link);
  write_file_atomically(link, "text");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_small_file(folder.path() / "new", 100), "text");
  fs::create_symlink("round", folder.path() / "round");
  test::expect_error("following its links failed", [&] { write_file_atomically(folder.path() / "round", "x"); });
}

TEST(AtomicFile, WritesIntoAPipeAndLeavesItThere) {
  const TempFolder folder;
  const auto pipe = folder.path() / "pipe", link = folder.path() / "link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("pipe", link);
  test::expect_error("a named pipe that no program reads from",
                     [&] { write_file_atomically(pipe, "x", PipeWithoutReader::refuse); });
  EXPECT_TRUE(is_written_into(link));
  std::string got(3, ' ');
  std::thread reader([&] {
    const int descriptor = ::open(pipe.c_str(), O_RDONLY);
    EXPECT_EQ(::read(descriptor, got.data(), got.size()), 3);
    ::close(descriptor);
  });
  write_file_atomically(link, "abc");
  reader.join();
  EXPECT_EQ(got, "abc");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(AtomicFile, WritesToAnOpenDescriptorWhereItStands) {
  const TempFolder folder;
  const auto file = folder.path() / "log";
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(descriptor, "one ", 4), 4);
  const auto own = fs::path("/proc/self/fd") / std::to_string(descriptor);
  EXPECT_TRUE(is_written_into(own));
  write_file_atomically(own, "two");
  ::close(descriptor);
  EXPECT_EQ(read_small_file(file, 100), "one two");
}

TEST(AtomicFile, LeavesASocketWhereItIs) {
  const TempFolder folder;
  const auto path = folder.path() / "socket";
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.string().size(), sizeof address.sun_path);
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  test::expect_error("it is a socket", [&] { write_file_atomically(path, "x"); });
  EXPECT_TRUE(fs::is_socket(path));
  ::close(socket);
}

TEST(AtomicFile, WritesTheLongestNamesThatThereAre) {
  const TempFolder folder;
  const auto path = folder.path() / std::string(255, 'x');
  write_file_atomically(path, "text");
  EXPECT_EQ(read_small_file(path, 100), "text");
  write_file_atomically(file_beside(path, ".journal"), "journal");
  EXPECT_EQ(files_in(folder.path()), 2u);
  EXPECT_EQ(file_beside(folder.path() / "run.json", ".journal"), folder.path() / "run.json.journal");
}

TEST(AtomicFile, AnOutputThatIsAnInputOrAnotherOutputIsRefused) {
  const TempFolder folder;
  const auto input = folder.write("input", "text"), other = folder.write("other", "text");
  fs::create_hard_link(input, folder.path() / "hard");
  fs::create_symlink("input", folder.path() / "soft");
  fs::create_directory_symlink(".", folder.path() / "same");
  const std::vector<NamedFile> inputs = {{"the prompts", input}, {"nothing", ""}};
  for (const char* name : {"input", "hard", "soft", "./same/same/./input"}) {
    const std::vector<NamedFile> outputs = {{"--csv", other}, {"--json", folder.path() / name}};
    test::expect_error("--json would overwrite the prompts", [&] { require_other_files(outputs, inputs); });
  }
  const std::vector<NamedFile> twice = {{"--csv", folder.path() / "new"}, {"--json", folder.path() / "same" / "new"}};
  test::expect_error("--json and --csv name the same file", [&] { require_other_files(twice); });
  const std::vector<NamedFile> apart = {{"--csv", other}, {"--json", "-"}, {"--markdown", "-"}, {"--html", ""}};
  require_other_files(apart, inputs);
  const std::vector<NamedFile> devices = {{"--csv", "/dev/null"}, {"--json", "/dev/null"}};
  require_other_files(devices, inputs);
}

}  // namespace
}  // namespace canopy

// The cache that Hugging Face's tools share: its layout, its locks, and what is found in it.

#include "engine/hub/hub_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "engine/base/bytes.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TempFolder;

std::span<const std::byte> as_bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

HubFile file_of(const std::string& path, const std::string& content) {
  return {path, content.size(), hex_digits(sha256(content))};
}

void store(const HubCache& cache, const HubFile& file, const std::string& content) {
  cache.require_room(file.bytes);
  BlobWriter blob(cache, file, {}, {});
  blob.append(as_bytes_of(content));
  blob.finish();
}

/// A variable of the environment for the time of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    if (value != nullptr)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(HubCache, IsWhereTheEnvironmentSays) {
  const Variable home("HOME", "/somewhere/me"), cache("HF_HUB_CACHE", nullptr), hf("HF_HOME", nullptr),
      xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(hub_cache_folder(), "/somewhere/me/.cache/huggingface/hub");
  const Variable with_xdg("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(hub_cache_folder(), "/caches/huggingface/hub");
  const Variable with_home("HF_HOME", "/hf");
  EXPECT_EQ(hub_cache_folder(), "/hf/hub");
  const Variable with_cache("HF_HUB_CACHE", "/exactly/here");
  EXPECT_EQ(hub_cache_folder(), "/exactly/here");
}

TEST(HubCache, NamesFoldersAsItsToolsDo) {
  EXPECT_EQ(hub_folder_name("Qwen/Qwen3-4B"), "models--Qwen--Qwen3-4B");
  EXPECT_EQ(hub_repo_of("models--Qwen--Qwen3-4B"), "Qwen/Qwen3-4B");
  EXPECT_FALSE(hub_repo_of("datasets--a--b"));
}

TEST(HubCache, ShowsABlobByALinkOrWhereThereAreNoneByItsBytes) {
  const TempFolder folder;
  const HubCache cache(folder.path(), "a/b");
  const HubFile file = file_of("sub/m.gguf", "content");
  store(cache, file, "content");
  EXPECT_TRUE(cache.has(file));
  cache.show("c1", file);
  const fs::path linked = cache.snapshot("c1") / "sub" / "m.gguf";
  EXPECT_EQ(fs::read_symlink(linked), fs::path("../../../blobs") / file.digest);
  EXPECT_EQ(content_of(linked), "content");
  cache.show("c2", file, false);
  const fs::path solid = cache.snapshot("c2") / "sub" / "m.gguf";
  EXPECT_FALSE(fs::is_symlink(solid));
  EXPECT_EQ(content_of(solid), "content");
  // What was shown there before is replaced.
  const HubFile other = file_of("sub/m.gguf", "another");
  store(cache, other, "another");
  cache.show("c1", other);
  EXPECT_EQ(content_of(linked), "another");
  for (const fs::directory_entry& each : fs::directory_iterator(linked.parent_path()))
    EXPECT_EQ(each.path().filename(), "m.gguf");
  cache.note_commit("main", "c1");
  EXPECT_EQ(content_of(cache.folder() / "refs" / "main"), "c1");
}

TEST(HubCache, RefusesWhatHasNoRoom) {
  const TempFolder folder;
  expect_error("There is no room", [&] { HubCache(folder.path(), "a/b").require_room(uint64_t{1} << 60); });
  folder.write("file", "x");
  expect_error("cannot be made", [&] { HubCache(folder.path() / "file", "a/b").require_room(1); });
  expect_error("set HOME", [] { HubCache("", "a/b"); });
}

TEST(BlobWriter, GoesOnWithWhatIsThere) {
  const TempFolder folder;
  const HubCache cache(folder.path(), "a/b");
  const HubFile file = file_of("m.gguf", "0123456789");
  cache.require_room(10);
  {
    BlobWriter blob(cache, file, {}, {});
    EXPECT_EQ(blob.size(), 0u);
    blob.append(as_bytes_of("0123"));
  }
  EXPECT_EQ(content_of(cache.incomplete(file.digest)), "0123");
  EXPECT_EQ(cache.bytes_there(file), 4u);
  EXPECT_FALSE(cache.has(file));
  BlobWriter blob(cache, file, {}, {});
  EXPECT_EQ(blob.size(), 4u);
  std::string there;
  blob.read([&](std::span<const std::byte> bytes) {
    there.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  EXPECT_EQ(there, "0123");
  blob.append(as_bytes_of("456789"));
  blob.finish();
  EXPECT_EQ(content_of(cache.blob(file.digest)), "0123456789");
  EXPECT_FALSE(fs::exists(cache.incomplete(file.digest)));
}

TEST(BlobWriter, TakesNothingThatIsLongerThanItsFile) {
  const TempFolder folder;
  const HubCache cache(folder.path(), "a/b");
  const HubFile file = file_of("m.gguf", "0123");
  cache.require_room(4);
  std::ofstream(cache.incomplete(file.digest)) << "too long for it";
  EXPECT_EQ(BlobWriter(cache, file, {}, {}).size(), 0u);
}

TEST(BlobWriter, WaitsForAnotherAndHearsAStop) {
  const TempFolder folder;
  const HubCache cache(folder.path(), "a/b");
  const HubFile file = file_of("m.gguf", "0123");
  cache.require_room(4);
  auto first = std::make_unique<BlobWriter>(cache, file, std::stop_token(), std::function<void()>());
  std::stop_source stopped;
  try {
    BlobWriter second(cache, file, stopped.get_token(), [&] { stopped.request_stop(); });
    FAIL() << "two write at once";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
  std::atomic<bool> waited = false, done = false;
  std::thread other([&] {
    BlobWriter second(cache, file, {}, [&] { waited = true; });
    done = second.done();
  });
  while (!waited) std::this_thread::yield();
  first->append(as_bytes_of("0123"));
  first->finish();
  first.reset();
  other.join();
  EXPECT_TRUE(done) << "what the first finished is not fetched again";
}

TEST(HubCache, FindsAModelByNameInAnySnapshot) {
  const TempFolder folder;
  const auto put = [&](const std::string& commit, const std::string& path, const std::string& content) {
    const HubCache cache(folder.path(), "a/b");
    const HubFile file = file_of(path, content);
    store(cache, file, content);
    cache.show(commit, file);
    cache.note_commit("main", commit);
  };
  const HubName any{"a/b", ""};
  expect_error("canopy-cli get a/b:Q8_0", [&] { find_in_hub_cache(folder.path(), {"a/b", "Q8_0"}); });
  put("c1", "m-Q8_0.gguf", "old");
  EXPECT_EQ(find_in_hub_cache(folder.path(), any), folder.path() / "models--a--b/snapshots/c1/m-Q8_0.gguf");
  put("c2", "m-Q5_0.gguf", "five");
  put("c2", "m-F16-00001-of-00002.gguf", "a part alone");
  EXPECT_EQ(cached_variants(folder.path(), "a/b").size(), 2u) << "what is not whole is no model";
  EXPECT_EQ(find_in_hub_cache(folder.path(), {"a/b", "q8_0"}).parent_path().filename(), "c1");
  EXPECT_EQ(find_in_hub_cache(folder.path(), {"a/b", "q5_0"}).parent_path().filename(), "c2");
  expect_error("none of them Q4_K_M", [&] { find_in_hub_cache(folder.path(), any); });
  put("c3", "m-Q8_0.gguf", "new");
  EXPECT_EQ(find_in_hub_cache(folder.path(), {"a/b", "q8_0"}).parent_path().filename(), "c3") << "main comes first";
}

}  // namespace
}  // namespace canopy

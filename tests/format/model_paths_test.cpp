#include "engine/format/model_paths.h"

#include <gtest/gtest.h>

#include <chrono>

#include "engine/format/drafter_file.h"
#include "engine/format/model_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A cache in the layout of huggingface_hub: blobs named by hash, snapshots with links to them, refs with names of
/// snapshots.
class ModelPathsTest : public ::testing::Test {
 protected:
  TempFolder folder_;
  fs::path model_ = folder_.path() / "models--some-org--Tiny-Model";

  void download(const std::string& revision, const std::string& file, const std::string& content) {
    fs::create_directories(model_ / "blobs");
    fs::create_directories(model_ / "snapshots" / revision);
    const std::string hash = std::to_string(std::hash<std::string>()(content));
    std::ofstream(model_ / "blobs" / hash, std::ios::binary) << content;
    fs::create_symlink(fs::path("../../blobs") / hash, model_ / "snapshots" / revision / file);
  }
  void point_main_at(const std::string& revision) {
    fs::create_directories(model_ / "refs");
    std::ofstream(model_ / "refs" / "main") << revision;
  }
};

TEST_F(ModelPathsTest, OrdinaryPathsAreLeftAlone) {
  const fs::path file = folder_.write("a.gguf", "x");
  EXPECT_EQ(resolve_model_path(file), file);
  EXPECT_EQ(resolve_model_path("nowhere/at/all"), "nowhere/at/all");
  EXPECT_EQ(resolve_model_path(""), "");
  folder_.write("config.json", "{}");
  EXPECT_EQ(resolve_model_path(folder_.path()), folder_.path());
  EXPECT_EQ(model_path_name(file), "a.gguf");
  EXPECT_EQ(model_path_name("some/folder/"), "folder");
}

TEST_F(ModelPathsTest, ACachedModelIsTheSnapshotOfItsMainBranch) {
  download("1111", "config.json", "{}");
  download("2222", "config.json", "{ }");
  point_main_at("1111\n");
  fs::last_write_time(model_ / "snapshots" / "1111", fs::file_time_type::clock::now() - 1h);
  for (const fs::path& path : {model_, model_ / "", model_ / "snapshots"}) {
    EXPECT_EQ(resolve_model_path(path), model_ / "snapshots" / "1111") << path;
  }
  EXPECT_EQ(resolve_model_path(model_ / "snapshots" / "2222"), model_ / "snapshots" / "2222");
  for (const fs::path& path : {model_, model_ / "snapshots", model_ / "snapshots" / "2222"}) {
    EXPECT_EQ(model_path_name(path), "Tiny-Model") << path;
  }
}

TEST_F(ModelPathsTest, WithoutAUsableBranchTheNewestSnapshotCounts) {
  download("1111", "config.json", "{}");
  download("2222", "config.json", "{ }");
  fs::last_write_time(model_ / "snapshots" / "2222", fs::file_time_type::clock::now() - 1h);
  for (const std::string revision : {"", "gone", "../../..", "..", ".", "/", "snapshots/1111"}) {
    point_main_at(revision);
    EXPECT_EQ(resolve_model_path(model_), model_ / "snapshots" / "1111") << revision;
  }
}

TEST_F(ModelPathsTest, AnUnfinishedDownloadIsSaidToBeOne) {
  fs::create_directories(model_ / "blobs");
  expect_error("never finished", [&] { resolve_model_path(model_); });
  fs::create_directories(model_ / "snapshots");
  expect_error("never finished", [&] { ModelFile::open(model_); });
}

TEST_F(ModelPathsTest, AFolderWithOneGgufFileIsThatFile) {
  download("1111", "tiny.Q4_1.gguf", tiny_gguf().build());
  const fs::path file = model_ / "snapshots" / "1111" / "tiny.Q4_1.gguf";
  EXPECT_EQ(resolve_model_path(model_), file);
  EXPECT_EQ(model_path_name(file), "tiny.Q4_1.gguf");
  EXPECT_EQ(ModelFile::open(model_).config().vocab, 10u);
  download("1111", "tiny.Q8_0.gguf", "another");
  expect_error("2 GGUF models ('tiny.Q4_1.gguf', 'tiny.Q8_0.gguf'); open one of them",
               [&] { ModelFile::open(model_); });
}

TEST_F(ModelPathsTest, AModelWithoutANameOfItsOwnIsCalledAsTheCacheCallsIt) {
  GgufBuilder unnamed = tiny_gguf();
  unnamed.without("general.name");
  download("1111", "model.gguf", unnamed.build());
  EXPECT_EQ(ModelFile::open(model_ / "snapshots" / "1111" / "model.gguf").config().name, "model");
  EXPECT_EQ(ModelFile::open(model_).config().name, "Tiny-Model");
}

TEST_F(ModelPathsTest, DraftersAreFoundTheSameWay) {
  download("1111", "drafter.gguf", tiny_drafter_gguf().build());
  EXPECT_TRUE(DrafterFile::is_drafter(model_));
  EXPECT_EQ(DrafterFile::open(model_).config().block_size, 4u);
  EXPECT_FALSE(DrafterFile::is_drafter(folder_.path() / "models--nobody--nothing"));
}

}  // namespace
}  // namespace canopy::test

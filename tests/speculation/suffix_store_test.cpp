#include "engine/speculation/suffix_store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "engine/base/files.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;
namespace fs = std::filesystem;

class SuffixStoreTest : public ::testing::Test {
 protected:
  fs::path folder() const { return folder_.path() / "replies"; }
  SuffixStore open(std::string_view model = "model") const { return SuffixStore(folder(), model, 7); }
  fs::path file() const { return fs::directory_iterator(folder())->path(); }

  static bool suggests(const SuffixStore& store, const Ids& text, uint32_t next) {
    TextDrafter drafter(true, &store.trie());
    drafter.read(text);
    const FreeDraft& draft = drafter.draft(8);
    return !draft.empty() && draft.earlier && draft.nodes[0].token == next;
  }

  test::TempFolder folder_;
};

TEST_F(SuffixStoreTest, WhatOneReplySaidIsFoundForAnother) {
  SuffixStore store = open();
  EXPECT_FALSE(suggests(store, {1, 2, 3}, 4));
  store.add("a", Ids{9, 1, 2, 3, 4, 5});
  EXPECT_TRUE(suggests(store, {1, 2, 3}, 4));
  EXPECT_FALSE(suggests(store, {1, 2, 3, 8, 1, 2, 3}, 4)) << "the text itself goes on with 8";
  const SuffixStore again = open();
  EXPECT_EQ(again.replies(), 1u);
  EXPECT_TRUE(suggests(again, {1, 2, 3}, 4));
  EXPECT_EQ(open("other").replies(), 0u) << "of another model";
  EXPECT_EQ(fs::status(file()).permissions() & (fs::perms::group_all | fs::perms::others_all), fs::perms::none);
}

TEST_F(SuffixStoreTest, AChatIsForgottenAlone) {
  SuffixStore store = open(), other = open("other");
  store.add("a", Ids{1, 2, 3, 4});
  store.add("b", Ids{5, 6, 7, 8});
  store.add("a", Ids{11, 12, 13, 14});
  other.add("a", Ids{1, 2, 3, 4});
  SuffixStore::forget(folder(), "a");
  store.reload();
  EXPECT_EQ(store.replies(), 1u);
  EXPECT_FALSE(suggests(store, {1, 2, 3}, 4));
  EXPECT_TRUE(suggests(store, {5, 6, 7}, 8));
  EXPECT_EQ(open("other").replies(), 0u);
  SuffixStore::forget(folder(), "");
  EXPECT_TRUE(fs::is_empty(folder()));
  store.reload();
  EXPECT_EQ(store.replies(), 0u);
  SuffixStore::forget(folder_.path() / "none", "a");
}

TEST_F(SuffixStoreTest, OneThatIsReadOnlyLeavesTheDiskAsItIs) {
  open().add("a", Ids{1, 2, 3, 4});
  const auto bytes = [&] {
    std::ifstream in(file(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string before = bytes();
  SuffixStore store(folder(), "model", 7, true);
  EXPECT_TRUE(store.read_only());
  EXPECT_TRUE(suggests(store, {1, 2, 3}, 4));
  store.add("b", Ids{5, 6, 7, 8});
  EXPECT_FALSE(suggests(store, {5, 6, 7}, 8));
  EXPECT_EQ(store.replies(), 1u);
  EXPECT_EQ(bytes(), before);

  std::ofstream(file(), std::ios::binary) << "something else";
  const SuffixStore none(folder_.path() / "absent", "model", 7, true);
  EXPECT_FALSE(fs::exists(folder_.path() / "absent"));
  SuffixStore damaged(folder(), "model", 7, true);
  EXPECT_NE(damaged.take_note().find("could be read: "), std::string::npos);
  EXPECT_EQ(damaged.path(), file()) << "it is not set aside";
  EXPECT_EQ(bytes(), "something else");
}

TEST_F(SuffixStoreTest, AnInterruptedWriteLosesTheLastReplyAtMost) {
  {
    SuffixStore store = open();
    store.add("a", Ids{1, 2, 3, 4});
    store.add("a", Ids{5, 6, 7, 8});
  }
  fs::resize_file(file(), fs::file_size(file()) - 3);
  SuffixStore store = open();
  EXPECT_EQ(store.take_note(), "");
  EXPECT_EQ(store.replies(), 1u);
}

TEST_F(SuffixStoreTest, ADamagedFileIsSetAsideAndSaid) {
  {
    SuffixStore store = open();
    store.add("a", Ids{1, 2, 3, 4});
    store.add("a", Ids{5, 6, 7, 8});
  }
  const fs::path path = file();
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(24) << '\xff';
  SuffixStore store = open();
  const std::string note = store.take_note();
  EXPECT_NE(note.find("could not be read"), std::string::npos) << note;
  EXPECT_NE(note.find(".damaged"), std::string::npos) << note;
  EXPECT_EQ(store.take_note(), "");
  EXPECT_FALSE(fs::exists(path));
  store.add("b", Ids{1, 2, 3});
  EXPECT_EQ(open().replies(), 1u);
  std::ofstream(path, std::ios::binary) << "something else altogether";
  EXPECT_NE(open().take_note().find("no file of earlier replies"), std::string::npos);
}

TEST_F(SuffixStoreTest, TheOldestAreForgottenBeyondTheBound) {
  SuffixStore store = open();
  Ids reply(SuffixStore::kMostTokens / 4);
  for (uint32_t i = 0; i < 6; ++i) {
    for (uint32_t k = 0; k < reply.size(); ++k) reply[k] = i * 1000 + k % 997;
    store.add("chat " + std::to_string(i), reply);
    EXPECT_LE(store.tokens(), SuffixStore::kMostTokens);
  }
  EXPECT_EQ(store.replies(), 4u);
  EXPECT_NE(store.take_note().find("to make room"), std::string::npos);
  EXPECT_LT(store.trie().memory_bytes(), size_t{64} << 20);
  EXPECT_FALSE(suggests(store, {5, 6, 7}, 8));
  EXPECT_TRUE(suggests(store, {5005, 5006, 5007}, 5008));
  EXPECT_EQ(open().replies(), 4u);
}

TEST_F(SuffixStoreTest, AFolderThatCannotBeWrittenIsSaid) {
  std::ofstream(folder_.path() / "replies") << "a file";
  SuffixStore store = open();
  store.add("a", Ids{1, 2, 3, 4});
  EXPECT_NE(store.take_note().find("was not kept"), std::string::npos);
  EXPECT_TRUE(suggests(store, {1, 2, 3}, 4)) << "until the program ends";
}

}  // namespace
}  // namespace canopy

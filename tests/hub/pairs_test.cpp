// The list of pairs that comes with Canopy, and lists that are none.

#include "engine/hub/pairs.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"

namespace canopy {
namespace {

using test::expect_error;

TEST(Pairs, ThatComeWithCanopyAreRead) {
  const std::vector<KnownPair> pairs = read_pairs(CANOPY_SOURCE_DIR "/assets/pairs.json");
  EXPECT_GE(pairs.size(), 10u);
  for (const KnownPair& pair : pairs) {
    EXPECT_FALSE(pair.target.name.empty());
    EXPECT_FALSE(pair.drafter.name.empty());
    EXPECT_FALSE(pair.source.empty()) << pair.target.name;
  }
  const auto of = pairs_for(pairs, "Qwen/Qwen3-8B-GGUF");
  ASSERT_EQ(of.size(), 1u);
  EXPECT_EQ(of[0].drafter.repo, "z-lab/Qwen3-8B-DFlash-b16");
  EXPECT_EQ(of[0].tried, "");
  EXPECT_EQ(pairs_for(pairs, "unsloth/qwen3-8b-gguf").size(), 1u);
  EXPECT_TRUE(pairs_for(pairs, "someone/Qwen3-80B-GGUF").empty());
}

TEST(Pairs, ThatAreWrongAreRefusedByFileAndField) {
  const test::TempFolder folder;
  const auto read = [&](const std::string& text) { return read_pairs(folder.write("list.json", text)); };
  const std::string start = R"({"format":"canopy-pairs-1","pairs":[)";
  const std::string half = R"({"name":"x"})";
  EXPECT_EQ(
      read(start + R"({"target":)" + half + R"(,"drafter":)" + half + R"(,"kind":"dflash","source":"s"}]})").size(),
      1u);
  expect_error("list.json", [&] { read("["); });
  expect_error("canopy-pairs-1 is allowed", [&] { read(R"({"format":"other","pairs":[]})"); });
  expect_error("lacks the field \"drafter\"", [&] { read(start + R"({"target":)" + half + "}]}"); });
  expect_error("OWNER/REPO is allowed", [&] {
    read(start + R"({"target":{"name":"x","repo":"../y"},"drafter":)" + half + R"(,"kind":"k","source":"s"}]})");
  });
  expect_error("The field \"gguf\"", [&] {
    read(start + R"({"target":{"name":"x","gguf":"a/b:Q8_0"},"drafter":)" + half + R"(,"kind":"k","source":"s"}]})");
  });
  expect_error("a number of bytes is allowed", [&] {
    read(start + R"({"target":{"name":"x","bytes":-1},"drafter":)" + half + R"(,"kind":"k","source":"s"}]})");
  });
  expect_error("there.json", [&] { read_pairs(folder.path() / "there.json"); });
}

}  // namespace
}  // namespace canopy

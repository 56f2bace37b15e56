#include "engine/format/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/base/expect_error.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using test::TempFolder;

TEST(Describe, ShowsConfigMetadataTensorsAndTotals) {
  const TempFolder folder;
  test::GgufBuilder b = test::tiny_gguf();
  b.numbers<int32_t>("long", std::vector<int32_t>(1000, 5)).value<float>("nan", NAN);
  const auto d = describe_json(folder.write("m.gguf", b.build()));
  EXPECT_EQ(d["format"], "gguf");
  EXPECT_EQ(d["config"]["layers"], 1);
  EXPECT_EQ(d["metadata"]["long"]["count"], 1000);
  EXPECT_EQ(d["metadata"]["long"]["first"].size(), 8u);
  EXPECT_EQ(d["metadata"]["nan"], "nan");
  EXPECT_EQ(d["tensors"].size(), 11u);
  EXPECT_EQ(d["tensors"][0]["shape"], (std::vector<int>{10, 8}));
  EXPECT_EQ(d["types"]["F32"]["tensors"], 11);
  EXPECT_EQ(d["totals"]["elements"], d["config"]["parameters"]);
  const std::string text = describe_text(d);
  EXPECT_NE(text.find("token_embd.weight"), std::string::npos);
  EXPECT_NE(text.find("1000 of i32: [5,5,5,5,5,5,5,5] …"), std::string::npos);
}

TEST(Describe, ShowsADraftersConfig) {
  const TempFolder folder;
  const auto d = describe_json(folder.write("d.gguf", test::tiny_drafter_gguf().build()));
  EXPECT_EQ(d["config"]["dialect"], "dflash (llama.cpp)");
  EXPECT_EQ(d["config"]["kind"], "DFlash");
  EXPECT_EQ(d["config"]["taps"], (std::vector<int>{0, 2}));
  EXPECT_EQ(d["config"]["layers"], 2);
  EXPECT_EQ(d["config"]["attention"].dump(), R"([{"causal":false,"window":null},{"causal":false,"window":null}])");
  EXPECT_NE(describe_text(d).find("block_size"), std::string::npos);
  test::GgufBuilder relative = test::tiny_drafter_gguf();
  const auto other = describe_json(folder.write("o.gguf", relative.value<uint32_t>("dflash.markov_rank", 4).build()));
  EXPECT_TRUE(other["config"].is_null());
  EXPECT_NE(describe_text(other).find("Cannot be run: "), std::string::npos);
  EXPECT_NE(describe_text(other).find("The tensor 'markov_w1' is missing"), std::string::npos);
}

TEST(Describe, ExplainsWhatCannotRunAndStillShowsIt) {
  const TempFolder folder;
  const auto path = folder.write("x.safetensors", test::SafetensorsBuilder().zeros("w", {2, 3}).build());
  const auto d = describe_json(path);
  EXPECT_TRUE(d["config"].is_null());
  EXPECT_EQ(d["tensors"][0]["bytes"], 24);
  EXPECT_NE(describe_text(d).find("Cannot be run: "), std::string::npos);
}

TEST(Describe, LetsNoHostileTextThrough) {
  const TempFolder folder;
  test::GgufBuilder b;
  const std::string hostile = "\x1b]52;c;x\a\xff\u202e";
  b.text(hostile, hostile).texts("list", {hostile}).zeros(hostile, {1});
  const auto d = describe_json(folder.write("m.gguf", b.build()));
  const std::string all = d.dump() + describe_text(d);  // dump() throws on invalid UTF-8
  for (const char* part : {"\x1b", "\a", "\xff", "\u202e"}) EXPECT_EQ(all.find(part), std::string::npos);
}

TEST(Describe, RefusesWhatIsNoModelFile) {
  const TempFolder folder;
  test::expect_error("This is no GGUF file", [&] { describe_json(folder.write("m.txt", "just some text")); });
}

}  // namespace
}  // namespace canopy

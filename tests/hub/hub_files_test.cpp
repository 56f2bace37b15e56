// Names of models on a hub, the files of a repository as what people choose from, and the choice.

#include "engine/hub/hub_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using test::expect_error;

constexpr uint64_t kMega = 1'000'000;

HubVariants variants_of(std::vector<std::pair<std::string, uint64_t>> files) {
  std::vector<HubFile> list;
  for (auto& [path, bytes] : files) list.push_back({path, bytes, ""});
  return hub_variants(list);
}

std::string chosen(const HubVariants& variants, const std::string& name, const HubFit* fit = nullptr) {
  return choose_variant(*parse_hub_name(name), variants, fit).variant.first;
}

TEST(HubName, IsARepositoryAndWhatIsMeantOfIt) {
  const auto plain = parse_hub_name("Qwen/Qwen3-4B-GGUF");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repo, "Qwen/Qwen3-4B-GGUF");
  EXPECT_EQ(plain->choice, "");
  const auto file = parse_hub_name("a/b:sub/x-Q4_0.gguf");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->choice, "sub/x-Q4_0.gguf");
  EXPECT_EQ(file->text(), "a/b:sub/x-Q4_0.gguf");
  for (const char* none : {"", "a", "/a", "a/", "a/b/c", "a/b:", "../b", "a/..", ".a/b", "-a/b", "a b/c", "a--b/c",
                           "a/b..c", "./a", "C:\\a/b"})
    EXPECT_FALSE(parse_hub_name(none)) << none;
}

TEST(HubFiles, NameTheirQuantization) {
  for (const auto& [path, wanted] :
       std::vector<std::pair<std::string, std::string>>{{"Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"},
                                                        {"qwen2.5-7b-instruct-q5_k_m-00001-of-00002.gguf", "Q5_K_M"},
                                                        {"Model-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
                                                        {"model.IQ4_XS.gguf", "IQ4_XS"},
                                                        {"gpt-oss-20b-mxfp4.gguf", "MXFP4"},
                                                        {"BF16/Model-BF16-00001-of-00002.gguf", "BF16"},
                                                        {"Q8_0/model-00001-of-00003.gguf", "Q8_0"},
                                                        {"Qwen3-8B.gguf", ""},
                                                        {"q4model.gguf", ""}})
    EXPECT_EQ(quantization_in(path), wanted) << path;
}

TEST(HubFiles, LeadingOutOfTheirFolderAreRefused) {
  for (const char* good : {"a", "a/b.gguf", "a..b", ".hidden", "ä/б.gguf"})
    EXPECT_NO_THROW(check_hub_path(good)) << good;
  for (const std::string& bad :
       {std::string(""), std::string("/a"), std::string("a/"), std::string("../a"), std::string("a/../b"),
        std::string("a//b"), std::string("./a"), std::string("a\\b"), std::string("c:a"), std::string("a\nb"),
        std::string("a\0b", 3), std::string(2000, 'a')})
    expect_error("Nothing is fetched of it", [&] { check_hub_path(bad); });
}

TEST(HubVariants, GroupPartsAndLeaveOutWhatIsNoModel) {
  const HubVariants v = variants_of({{"m-Q8_0-00002-of-00002.gguf", 5},
                                     {"m-Q8_0-00001-of-00002.gguf", 4},
                                     {"m-Q4_0.gguf", 3},
                                     {"m-F16-00002-of-00002.gguf", 50},
                                     {"mmproj-F16.gguf", 1},
                                     {"m.imatrix.gguf", 1},
                                     {"mtp-m-Q8_0.gguf", 2},
                                     {"README.md", 1}});
  ASSERT_EQ(v.models.size(), 3u);
  EXPECT_EQ(v.models[0].label, "Q4_0");
  EXPECT_EQ(v.models[1].label, "Q8_0");
  EXPECT_EQ(v.models[1].first, "m-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(v.models[1].bytes(), 9u);
  EXPECT_EQ(v.models[1].missing, "");
  EXPECT_EQ(v.models[2].missing, "part 1 of 2");
  EXPECT_EQ(v.heads.size(), 1u);
  EXPECT_EQ(v.left_out.size(), 2u);
}

TEST(HubVariants, AFolderIsItsTopWithoutASecondCopyOfTheWeights) {
  const HubVariants v = variants_of({{"config.json", 1},
                                     {"model.safetensors", 10},
                                     {"consolidated.safetensors", 10},
                                     {"tokenizer.model", 2},
                                     {"original/params.json", 1},
                                     {"pytorch_model.bin", 10}});
  ASSERT_EQ(v.models.size(), 1u);
  EXPECT_TRUE(v.models[0].is_folder());
  EXPECT_EQ(v.models[0].bytes(), 13u);
  EXPECT_TRUE(variants_of({{"model.safetensors", 10}}).models.empty()) << "without config.json it is none";
}

TEST(HubChoice, IsByQuantizationThenFileThenPartOfAName) {
  const HubVariants v = variants_of({{"m-Q4_K_M.gguf", 4}, {"m-UD-Q4_K_M.gguf", 5}, {"x/m-chat-Q8_0.gguf", 8}});
  EXPECT_EQ(chosen(v, "a/b:q4_k_m"), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen(v, "a/b:UD-q4_k_m"), "m-UD-Q4_K_M.gguf");
  EXPECT_EQ(chosen(v, "a/b:m-chat-q8_0.GGUF"), "x/m-chat-Q8_0.gguf");
  EXPECT_EQ(chosen(v, "a/b:chat"), "x/m-chat-Q8_0.gguf");
  expect_error("several files", [&] { chosen(v, "a/b:m"); });
  expect_error("nothing of the name 'Q2_K'", [&] { chosen(v, "a/b:Q2_K"); });
  EXPECT_EQ(chosen(v, "a/b"), "m-Q4_K_M.gguf");
  expect_error("none of them Q4_K_M", [&] { chosen(variants_of({{"m-Q8_0.gguf", 8}, {"m-Q5_0.gguf", 5}}), "a/b"); });
  expect_error("is not whole", [&] { chosen(variants_of({{"m-Q8_0-00002-of-00002.gguf", 8}}), "a/b:q8_0"); });
  expect_error("no model that can be read", [&] { chosen(variants_of({{"model.bin", 8}}), "a/b"); });
}

TEST(HubChoice, OfAHeadIsByItsFileAlone) {
  const HubVariants v = variants_of({{"m-Q8_0.gguf", 8}, {"mtp-m-Q8_0.gguf", 1}});
  EXPECT_EQ(chosen(v, "a/b"), "m-Q8_0.gguf");
  EXPECT_EQ(chosen(v, "a/b:Q8_0"), "m-Q8_0.gguf");
  EXPECT_EQ(chosen(v, "a/b:mtp-m-Q8_0.gguf"), "mtp-m-Q8_0.gguf");
}

TEST(HubChoice, IsTheLargestUpToEightBitsThatFits) {
  const HubVariants v = variants_of({{"m-Q4_K_M.gguf", 400 * kMega},
                                     {"m-Q8_0.gguf", 800 * kMega},
                                     {"m-BF16.gguf", 1600 * kMega},
                                     {"config.json", 1},
                                     {"model.safetensors", 1600 * kMega}});
  HubFit fit{0, [](uint64_t bytes) { return bytes + 100 * kMega; }, "a card"};
  for (const auto& [available, wanted] : std::vector<std::pair<uint64_t, std::string>>{
           {5000 * kMega, "m-Q8_0.gguf"}, {900 * kMega, "m-Q8_0.gguf"}, {899 * kMega, "m-Q4_K_M.gguf"}}) {
    fit.available = available;
    const HubChoice choice = choose_variant({"a/b", ""}, v, &fit);
    EXPECT_EQ(choice.variant.first, wanted);
    EXPECT_NE(choice.reason.find("a card"), std::string::npos) << choice.reason;
  }
  fit.available = 499 * kMega;
  try {
    choose_variant({"a/b", ""}, v, &fit);
    FAIL() << "nothing fits";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(e.what()).find("too large: takes 500.0 MB"), std::string::npos) << e.what();
  }
  EXPECT_EQ(choose_variant({"a/b", "q8_0"}, v, &fit).variant.first, "m-Q8_0.gguf") << "what is named is fetched";
}

}  // namespace
}  // namespace canopy

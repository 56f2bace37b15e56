// The file in which chosen variants are kept.

#include "engine/vulkan/product_tuner.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/error.h"
#include "tests/base/temp_folder.h"

namespace canopy::vk {
namespace {

const VariantKey kKey{KernelFamily::matrix, ProductOp::add, WeightType::q4_k, 4096, 12288, 16};
const VariantKey kExpertKey{KernelFamily::fma, ProductOp::experts, WeightType::mxfp4, 5760, 2880, 8, 32, 4};
const VariantNumbers kNumbers = {32, 16, 256, 8};

// Messages while it lives.
class LoggedMessages {
 public:
  LoggedMessages() {
    set_log_sink([this](LogLevel, std::string_view message) { all.emplace_back(message); });
  }
  ~LoggedMessages() { set_log_sink({}); }
  std::vector<std::string> all;
};

std::string content_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::filesystem::path saved_in(const test::TempFolder& folder) {
  const std::filesystem::path path = folder.path() / "deeper" / "variants.json";
  VariantChoices choices(path, "device A");
  choices.set(kKey, kNumbers);
  VariantKey other = kKey;
  other.family = KernelFamily::matrix;
  other.op = ProductOp::linear;
  choices.set(other, {8, 8});
  choices.set(kExpertKey, {1, 16});
  EXPECT_EQ(choices.save(), "");
  return path;
}

TEST(VariantChoicesTest, ComeBackFromTheirFile) {
  const test::TempFolder folder;
  const std::filesystem::path path = saved_in(folder);
  const LoggedMessages messages;
  const VariantChoices again(path, "device A");
  ASSERT_NE(again.find(kKey), nullptr);
  EXPECT_EQ(*again.find(kKey), kNumbers);
  ASSERT_NE(again.find(kExpertKey), nullptr);
  EXPECT_EQ(*again.find(kExpertKey), (VariantNumbers{1, 16}));
  EXPECT_EQ(again.size(), 3u);
  EXPECT_TRUE(messages.all.empty());
  const std::vector<std::function<void(VariantKey&)>> changes = {
      [](VariantKey& key) { key.family = KernelFamily::fma; },
      [](VariantKey& key) { key.op = ProductOp::swiglu; },
      [](VariantKey& key) { key.type = WeightType::q6_k; },
      [](VariantKey& key) { key.rows = 1; },
      [](VariantKey& key) { key.cols = 1; },
      [](VariantKey& key) { key.width = 32; }};
  for (const auto& change : changes) {
    VariantKey other = kKey;
    change(other);
    EXPECT_EQ(again.find(other), nullptr) << describe(other);
  }
  for (const auto& count : {&VariantKey::experts, &VariantKey::used}) {
    VariantKey other = kExpertKey;
    ++(other.*count);
    EXPECT_EQ(again.find(other), nullptr) << describe(other);
  }
}

TEST(VariantChoicesTest, OfAnotherDeviceAreIgnoredWithAMessage) {
  const test::TempFolder folder;
  const std::filesystem::path path = saved_in(folder);
  const LoggedMessages messages;
  EXPECT_EQ(VariantChoices(path, "device B").size(), 0u);
  ASSERT_EQ(messages.all.size(), 1u);
  EXPECT_NE(messages.all[0].find("another device"), std::string::npos) << messages.all[0];
}

TEST(VariantChoicesTest, OfNoFileNeedNone) {
  const test::TempFolder folder;
  const LoggedMessages messages;
  EXPECT_EQ(VariantChoices(folder.path() / "none.json", "d").size(), 0u);
  VariantChoices nowhere({}, "d");
  nowhere.set(kKey, kNumbers);
  EXPECT_EQ(nowhere.save(), "");
  EXPECT_TRUE(messages.all.empty());
}

// Every byte of the file, changed or cut off there.
TEST(VariantChoicesTest, SurviveAnyDamageToTheFile) {
  const test::TempFolder folder;
  const std::filesystem::path path = saved_in(folder);
  const std::string whole = content_of(path);
  const LoggedMessages messages;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = damaged[at] == '7' ? '8' : '7';
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(VariantChoices(path, "device A").size(), 0u) << damaged;
    std::ofstream(path, std::ios::binary) << whole.substr(0, at);
    EXPECT_EQ(VariantChoices(path, "device A").size(), 0u) << at;
  }
  EXPECT_EQ(messages.all.size(), 2 * whole.size());
}

// Files whose hash is right and whose content is not.
TEST(VariantChoicesTest, AreReadWithCare) {
  const test::TempFolder folder;
  const std::filesystem::path path = folder.path() / "variants.json";
  const LoggedMessages messages;
  for (const std::string list :
       {R"([3])", R"([[]])", R"([["matrix","add","Q4_K",1,2,3]])", R"([["matrix","add","Q4_K",1,2,3,4]])",
        R"([["cores","add","Q4_K",1,2,3,[4]]])", R"([["matrix","sub","Q4_K",1,2,3,[4]]])",
        R"([["matrix","add","Q9_K",1,2,3,[4]]])", R"([["matrix","add","Q4_K",-1,2,3,[4]]])",
        R"([["matrix","add","Q4_K",1,2,3,[4.5]]])", R"([["matrix","add","Q4_K",1,2,4294967296,[4]]])",
        R"([["matrix","add","Q4_K",1,2,3,[4],8,2]])", R"([["matrix","experts","Q4_K",1,2,3,[4]]])",
        R"([["matrix","experts","Q4_K",1,2,3,[4],8]])", R"([["matrix","experts","Q4_K",1,2,3,[4],8,-2]])",
        R"([["matrix","add","Q4_K",1,2,3,[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]]])"}) {
    const std::string hash = damage_hash_text(list);
    std::ofstream(path) << R"({"format":"canopy-variants","version":1,"identity":"d","hash":")" << hash
                        << R"(","choices":)" << list << "}";
    const size_t before = messages.all.size();
    EXPECT_EQ(VariantChoices(path, "d").size(), 0u) << list;
    EXPECT_EQ(messages.all.size(), before + 1) << list;
    EXPECT_EQ(messages.all.back().find("hash"), std::string::npos) << list << ": " << messages.all.back();
  }
}

TEST(VariantChoicesTest, SayWhyTheyCouldNotBeSaved) {
  VariantChoices choices("/proc/canopy/variants.json", "d");
  choices.set(kKey, kNumbers);
  EXPECT_NE(choices.save(), "");
}

}  // namespace
}  // namespace canopy::vk

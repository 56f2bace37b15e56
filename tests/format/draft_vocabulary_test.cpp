// The tokens that a drafter's head is over: every form in which files hold them gives the same ids, survives being
// written as GGUF, and is refused with its field and value where it is damaged.

#include "engine/format/drafter_config.h"

#include <gtest/gtest.h>

#include "engine/format/drafter_file.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_drafter.h"

namespace canopy {
namespace {

using test::GgufBuilder;
using test::le;
using test::SafetensorsBuilder;
using test::TempFolder;
using test::tiny_drafter_config;
using test::tiny_drafter_gguf;
using test::tiny_drafter_safetensors;

using Ids = std::vector<uint32_t>;

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) bytes += le(value);
  return bytes;
}

DrafterFile open_gguf(const TempFolder& folder, const GgufBuilder& b) {
  return DrafterFile::open(folder.write("d.gguf", b.build()));
}

DrafterFile open_folder(const TempFolder& folder, const std::string& config, const SafetensorsBuilder& weights) {
  folder.write("config.json", config);
  folder.write("model.safetensors", weights.build());
  return DrafterFile::open(folder.path());
}

GgufBuilder gguf_with_ids(const std::vector<int32_t>& ids) {
  GgufBuilder b = tiny_drafter_gguf();
  b.numbers<int32_t>("dflash.draft_token_ids", ids);
  return b;
}

/// As llama.cpp writes it: ids, and a head over them.
GgufBuilder gguf_with_head(const std::vector<int64_t>& ids) {
  GgufBuilder b = tiny_drafter_gguf();
  b.tensor("d2t", {ids.size()}, TensorType::i64, bytes_of(ids)).zeros("output.weight", {8, ids.size()});
  return b;
}

/// As EAGLE-3 drafters have it: offsets.
SafetensorsBuilder folder_with_offsets(const std::vector<int64_t>& offsets) {
  SafetensorsBuilder b = tiny_drafter_safetensors();
  b.tensor("d2t", "I64", {offsets.size()}, bytes_of(offsets));
  return b;
}

TEST(DraftVocabulary, IsTheWholeOneWhereNothingIsSaid) {
  const TempFolder folder;
  const DrafterFile drafter = open_gguf(folder, tiny_drafter_gguf());
  EXPECT_EQ(drafter.config().draft_token_ids, Ids());
  EXPECT_FALSE(drafter.config().own_head);
}

TEST(DraftVocabulary, IsReadFromMetadata) {
  const TempFolder folder;
  const DrafterFile gguf = open_gguf(folder, gguf_with_ids({0, 3, 4, 9}));
  EXPECT_EQ(gguf.config().draft_token_ids, (Ids{0, 3, 4, 9}));
  EXPECT_FALSE(gguf.config().own_head);
  const std::string config = tiny_drafter_config("", R"(,"draft_token_ids":[0,3,4,9])");
  EXPECT_EQ(open_folder(folder, config, tiny_drafter_safetensors()).config().draft_token_ids, (Ids{0, 3, 4, 9}));
}

TEST(DraftVocabulary, IsReadFromTheForksMetadata) {
  const TempFolder folder;
  GgufBuilder b = test::tiny_fork_drafter();
  b.numbers<uint32_t>("dflash-draft.draft_token_ids", {2, 7});
  EXPECT_EQ(open_gguf(folder, b).config().draft_token_ids, (Ids{2, 7}));
}

TEST(DraftVocabulary, D2tHoldsIdsInGguf) {
  const TempFolder folder;
  const DrafterFile drafter = open_gguf(folder, gguf_with_head({1, 5, 6}));
  EXPECT_EQ(drafter.config().draft_token_ids, (Ids{1, 5, 6}));
  EXPECT_TRUE(drafter.config().own_head);
  EXPECT_FALSE(drafter.config().brings_vocabulary) << "its head is used";
  EXPECT_EQ(drafter.require("output", 3, 8).rows(), 3u);
}

TEST(DraftVocabulary, D2tHoldsOffsetsInSafetensors) {
  const TempFolder folder;
  SafetensorsBuilder b = folder_with_offsets({1, 4, 4});
  b.tensor("t2d", "BOOL", {10}, std::string("\0\1\0\0\0\1\1\0\0\0", 10)).zeros("lm_head.weight", {3, 8});
  const DrafterFile drafter = open_folder(folder, tiny_drafter_config(R"(,"draft_vocab_size":3)"), b);
  EXPECT_EQ(drafter.config().draft_token_ids, (Ids{1, 5, 6}));
  EXPECT_TRUE(drafter.config().own_head);
  const DrafterFile without_head = open_folder(folder, tiny_drafter_config(), folder_with_offsets({1, 4, 4}));
  EXPECT_EQ(without_head.config().draft_token_ids, (Ids{1, 5, 6}));
  EXPECT_FALSE(without_head.config().own_head);
}

TEST(DraftVocabulary, D2tMayBeOfShorterIntegers) {
  const TempFolder folder;
  GgufBuilder b = tiny_drafter_gguf();
  b.tensor("d2t", {2}, TensorType::i32, bytes_of<int32_t>({8, 9}));
  EXPECT_EQ(open_gguf(folder, b).config().draft_token_ids, (Ids{8, 9}));
}

TEST(DraftVocabulary, AVocabularyOfTheTargetsSizeIsTheWholeOne) {
  const TempFolder folder;
  const std::string config = tiny_drafter_config(R"(,"draft_vocab_size":10)");
  EXPECT_EQ(open_folder(folder, config, tiny_drafter_safetensors()).config().draft_token_ids, Ids());
}

TEST(DraftVocabulary, IsWrittenAndReadBack) {
  const TempFolder folder;
  for (const GgufBuilder& b : {gguf_with_ids({0, 3, 9}), gguf_with_head({1, 5, 6})}) {
    const DrafterFile original = open_gguf(folder, b);
    const DrafterFile copy = DrafterFile::open(folder.write("copy.gguf", drafter_gguf(original, {})));
    EXPECT_EQ(copy.config().draft_token_ids, original.config().draft_token_ids);
    EXPECT_EQ(copy.config().own_head, original.config().own_head);
    EXPECT_EQ(copy.tensors().size(), original.tensors().size());
  }
}

TEST(DraftVocabulary, IsReadFromAListBesideADrafterThatNamesNone) {
  const TempFolder folder;
  folder.write("d.gguf.draft_tokens.json", "[0, 3, 9]");
  const DrafterFile file = open_gguf(folder, tiny_drafter_gguf());
  EXPECT_EQ(file.config().draft_token_ids, (Ids{0, 3, 9}));
  EXPECT_FALSE(file.config().own_head);
  test::expect_error("remove the list", [&] { open_gguf(folder, gguf_with_ids({1, 2})); });
  folder.write("d.gguf.draft_tokens.json", "[0, 3, 10]");
  test::expect_error("Element 2 of the list of tokens in d.gguf.draft_tokens.json stands for token 10",
                     [&] { open_gguf(folder, tiny_drafter_gguf()); });
  folder.write("d.gguf.draft_tokens.json", "{}");
  test::expect_error("A list of token ids is expected", [&] { open_gguf(folder, tiny_drafter_gguf()); });

  const TempFolder other;
  other.write("draft_tokens.json", "[2, 4]");
  const DrafterFile from_folder = open_folder(other, tiny_drafter_config(), tiny_drafter_safetensors());
  EXPECT_EQ(from_folder.config().draft_token_ids, (Ids{2, 4}));
}

TEST(DraftVocabulary, IsChosenWhenADrafterIsWritten) {
  const TempFolder folder;
  const DrafterFile whole = open_gguf(folder, tiny_drafter_gguf());
  const DrafterFile copy =
      DrafterFile::open(folder.write("copy.gguf", drafter_gguf(whole, {.draft_token_ids = {2, 4}})));
  EXPECT_EQ(copy.config().draft_token_ids, (Ids{2, 4}));
  test::expect_error("Element 1 of the list of tokens to draft stands for token 10; 0 to 9 is allowed.", [&] {
    drafter_gguf(whole, {.draft_token_ids = {2, 10}});
  });
  const DrafterFile own = open_gguf(folder, gguf_with_head({1, 5, 6}));
  test::expect_error("The drafter has a head of its own, over 3 tokens; others cannot be chosen.", [&] {
    drafter_gguf(own, {.draft_token_ids = {2, 4}});
  });
}

TEST(DraftVocabulary, MustLieWithinTheTargets) {
  const TempFolder folder;
  GgufBuilder b = gguf_with_ids({1, 11});
  b.without("dflash.vocab_size");
  const DrafterFile drafter = open_gguf(folder, b);
  ModelConfig target;
  target.name = "T";
  target.layers = 4;
  target.hidden = 8;
  target.vocab = 11;
  target.max_context = 64;
  test::expect_error("it drafts token 11, outside the model's vocabulary of 11 tokens",
                     [&] { check_pair(target, drafter.config()); });
}

void expect_refused(const TempFolder& folder, const GgufBuilder& b, const std::string& words) {
  test::expect_error(words, [&] { open_gguf(folder, b); });
}

TEST(DraftVocabulary, RefusesDamagedIds) {
  const TempFolder folder;
  const std::string key = "The metadata 'dflash.draft_token_ids'";
  expect_refused(folder, gguf_with_ids({}), key + " names 0 tokens; 1 to 10 are allowed.");
  expect_refused(folder, gguf_with_ids({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9}), key + " names 11 tokens; 1 to 10");
  expect_refused(folder, gguf_with_ids({0, -1}), "stands for token -1; 0 to 9 is allowed.");
  expect_refused(folder, gguf_with_ids({0, 10}),
                 "Element 1 of the metadata 'dflash.draft_token_ids' stands for token 10");
  expect_refused(folder, gguf_with_ids({4, 4}), "stands for token 4, the one before it for 4; tokens must ascend");
  expect_refused(folder, gguf_with_ids({4, 2}), "stands for token 2, the one before it for 4; tokens must ascend");
}

TEST(DraftVocabulary, RefusesADamagedD2t) {
  const TempFolder folder;
  GgufBuilder twice = gguf_with_head({1, 5, 6});
  twice.numbers<int32_t>("dflash.draft_token_ids", {1, 5, 6});
  expect_refused(folder, twice, "names its tokens twice, by 'draft_token_ids' and by the tensor 'd2t'");
  GgufBuilder other_head = gguf_with_head({1, 5, 6});
  other_head.without_tensor("output.weight").zeros("output.weight", {8, 10});
  expect_refused(folder, other_head, "The tensor 'output' has the shape [10, 8]; [3, 8] is expected.");
  GgufBuilder floats = tiny_drafter_gguf();
  expect_refused(folder, floats.zeros("d2t", {3}), "The tensor 'd2t' is F32 of shape [3]; I32 or I64 of one dimension");
  GgufBuilder inverse_only = tiny_drafter_gguf();
  expect_refused(folder, inverse_only.zeros("t2d", {10}), "'d2t', which names the tokens that it drafts, is missing");
  expect_refused(folder, gguf_with_head({1, INT64_MAX}), "stands for token 9223372036854775807; 0 to 9 is allowed.");
}

TEST(DraftVocabulary, RefusesDamagedFolders) {
  const TempFolder folder;
  const auto refused = [&](const std::string& config, const SafetensorsBuilder& weights, const std::string& words) {
    test::expect_error(words, [&] { open_folder(folder, config, weights); });
  };
  refused(tiny_drafter_config(R"(,"draft_vocab_size":4)"), folder_with_offsets({1, 4, 4}),
          "drafts 4 tokens (draft_vocab_size), but names 3; it must be the same number.");
  refused(tiny_drafter_config(R"(,"draft_vocab_size":4)"), tiny_drafter_safetensors(),
          "drafts 4 tokens (draft_vocab_size), but does not name them: the tensor 'd2t' is missing.");
  refused(tiny_drafter_config(), folder_with_offsets({1, INT64_MIN}), "stands for token -9223372036854775808");
  refused(tiny_drafter_config(), folder_with_offsets({1, 9}), "Element 1 of the tensor 'd2t' stands for token 10");
  refused(tiny_drafter_config("", R"(,"draft_token_ids":[1,"2"])"), tiny_drafter_safetensors(), "draft_token_ids");
  refused(tiny_drafter_config("", R"(,"draft_token_ids":[])"), tiny_drafter_safetensors(),
          "The field 'draft_token_ids' of dflash_config of config.json names 0 tokens; 1 to 10 are allowed.");
}

}  // namespace
}  // namespace canopy

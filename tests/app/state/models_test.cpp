// Models on the disk, their drafters, and whether a pair fits into memory (gui.md, criteria 17 and 18).

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "app/state/model_finder.h"
#include "app/state/models.h"
#include "app/state/words.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"
#include "tests/format/split_gguf.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;
using test::tiny_config;
using test::tiny_drafter_config;
using test::tiny_drafter_gguf;
using test::tiny_drafter_safetensors;
using test::tiny_gguf;
using test::tiny_safetensors;

constexpr uint64_t GiB = 1ull << 30;

/// The memory of a pair of models on a card of 24 GiB, of which other programs have 2.
MemoryUse pair_on_a_card() {
  MemoryUse use;
  use.weights = 3 * GiB;
  use.drafter = 1 * GiB;
  use.cache = 4 * GiB;
  use.context = 32768;
  use.tree = GiB / 4;
  use.working = GiB / 8;
  use.reserve = GiB / 8;
  use.budget = 24 * GiB;
  use.available = use.budget - use.total() - 2 * GiB;
  return use;
}

// ---- gui.md, criterion 17 -------------------------------------------------------------------------------------------

TEST(MemoryTable, StatesHaveARowAndDoNotGrowWithTheContext) {
  MemoryUse use = pair_on_a_card();
  use.states = GiB;
  const MemoryTable twice = memory_table_at(use, 2 * use.context);
  EXPECT_EQ(twice.bytes_of(MemoryPart::states), GiB);
  EXPECT_EQ(twice.bytes_of(MemoryPart::cache), 8 * GiB);
  EXPECT_EQ(twice.used, memory_table(use).used + 4 * GiB);
  EXPECT_EQ(memory_table(pair_on_a_card()).bytes_of(MemoryPart::states), 0u);
}

TEST(MemoryTable, ADiscreteCardShowsEveryPart) {
  const MemoryTable table = memory_table(pair_on_a_card());
  EXPECT_EQ(table.bytes_of(MemoryPart::target), 3 * GiB);
  EXPECT_EQ(table.bytes_of(MemoryPart::drafter), 1 * GiB);
  EXPECT_EQ(table.bytes_of(MemoryPart::cache), 4 * GiB);
  EXPECT_EQ(table.bytes_of(MemoryPart::tree), GiB / 2);
  EXPECT_EQ(table.bytes_of(MemoryPart::other_apps), 2 * GiB);
  EXPECT_EQ(table.used, 10 * GiB + GiB / 2);
  EXPECT_EQ(table.fit, MemoryFit::fits);
  EXPECT_EQ(share_of_bytes(table.used, table.budget), "11.27 of 25.77 GB");
  EXPECT_EQ(share_of_bytes(3'000'000, 25'769'803'776), "0.00 of 25.77 GB");
  EXPECT_EQ(share_of_bytes(62'000'000, 98'362'432), "62.0 of 98.4 MB");
}

TEST(MemoryTable, TheDrafterCountsAndItsAbsenceDoesNot) {
  MemoryUse use = pair_on_a_card();
  const uint64_t with = memory_table(use).used;
  use.available += use.drafter;
  use.drafter = 0;
  const MemoryTable without = memory_table(use);
  EXPECT_EQ(without.used, with - 1 * GiB);
  EXPECT_EQ(without.rows.size(), memory_table(pair_on_a_card()).rows.size() - 1);
}

TEST(MemoryTable, AfterAReleaseOnlyOtherProgramsHoldMemory) {
  const MemoryTable table = memory_table(after_release(pair_on_a_card()));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.bytes_of(MemoryPart::other_apps), 2 * GiB);
  EXPECT_EQ(table.budget, 24 * GiB);
}

TEST(MemoryTable, WhatOtherProgramsHoldCanMakeItTightOrTooMuch) {
  MemoryUse use = pair_on_a_card();
  use.available = 3 * GiB / 2;  // other programs have taken more of the card
  EXPECT_EQ(memory_table(use).fit, MemoryFit::tight);
  EXPECT_EQ(memory_table(use).bytes_of(MemoryPart::other_apps), use.budget - use.total() - use.available);
  // A pair not loaded yet, on a card with too little left.
  const MemoryTable table =
      memory_table({{MemoryPart::target, 6 * GiB}, {MemoryPart::cache, 2 * GiB}}, {8 * GiB, 3 * GiB});
  EXPECT_EQ(table.fit, MemoryFit::wont_fit);
  EXPECT_FALSE(table.overridden);
}

TEST(MemoryTable, AReserveThatIsNotAllocatedYetIsNobodyElses) {
  MemoryUse use = pair_on_a_card();
  use.available = use.budget - use.total() + use.reserve;
  EXPECT_EQ(memory_table(use).bytes_of(MemoryPart::other_apps), 0u);
}

TEST(MemoryTable, ALongerContextGrowsTheCacheAlone) {
  const MemoryUse use = pair_on_a_card();
  const MemoryTable twice = memory_table_at(use, 65536);
  EXPECT_EQ(twice.bytes_of(MemoryPart::cache), 8 * GiB);
  EXPECT_EQ(twice.bytes_of(MemoryPart::target), 3 * GiB);
  EXPECT_EQ(twice.bytes_of(MemoryPart::other_apps), 2 * GiB);
  EXPECT_EQ(memory_table_at(use, 131072).fit, MemoryFit::tight);
  EXPECT_EQ(memory_table_at(use, 262144).fit, MemoryFit::wont_fit);
}

TEST(MemoryTable, ARefusalCanBeOverriddenAndIsStillSaid) {
  const MemoryTable table = memory_table_at(pair_on_a_card(), 262144, true);
  EXPECT_TRUE(table.overridden);
  EXPECT_STREQ(to_string(table.fit), "Won't fit");
  EXPECT_FALSE(memory_table(pair_on_a_card(), true).overridden) << "there is nothing to override";
}

TEST(MemoryTable, AbsurdSizesDoNotWrapAround) {
  const MemoryTable table = memory_table({{MemoryPart::target, UINT64_MAX}, {MemoryPart::cache, 2}}, {GiB, 0});
  EXPECT_EQ(table.fit, MemoryFit::wont_fit);
  EXPECT_EQ(table.used, UINT64_MAX);
}

// ---- gui.md, criterion 18 -------------------------------------------------------------------------------------------

/// A file of the target that the tiny drafter was made for.
std::string tiny_target_of_four_layers() {
  test::GgufBuilder b = tiny_gguf();
  b.without("llama.block_count").value<uint32_t>("llama.block_count", 4);
  for (const std::string layer : {"blk.1.", "blk.2.", "blk.3."}) {
    b.zeros(layer + "attn_norm.weight", {8}).zeros(layer + "attn_q.weight", {8, 8});
    b.zeros(layer + "attn_k.weight", {8, 4}).zeros(layer + "attn_v.weight", {8, 4});
    b.zeros(layer + "attn_output.weight", {8, 8}).zeros(layer + "ffn_norm.weight", {8});
    b.zeros(layer + "ffn_gate.weight", {8, 16}).zeros(layer + "ffn_up.weight", {8, 16});
    b.zeros(layer + "ffn_down.weight", {16, 8});
  }
  return b.build();
}

class ModelFiles : public testing::Test {
 protected:
  fs::path model(const std::string& name, const std::string& config, const std::string& weights) {
    const fs::path folder = folder_.path() / name;
    fs::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    if (!weights.empty()) std::ofstream(folder / "model.safetensors", std::ios::binary) << weights;
    return folder;
  }
  TempFolder folder_;
};

TEST_F(ModelFiles, AGoodModelHasASizeAndNoProblem) {
  const std::string bytes = tiny_gguf().build();
  const FoundModel found = describe_model(folder_.write("good.gguf", bytes));
  EXPECT_EQ(found.problem, "");
  EXPECT_FALSE(found.drafter);
  EXPECT_EQ(found.bytes, bytes.size());
  EXPECT_EQ(describe_model(model("folder", tiny_config(), tiny_safetensors().build())).problem, "");
}

TEST_F(ModelFiles, ASplitModelIsOneModelOfAllItsParts) {
  const fs::path snapshot = folder_.path() / "models--some-org--Split" / "snapshots" / "1111" / "Q4_K_M";
  fs::create_directories(snapshot);
  const std::vector<test::GgufBuilder> parts = test::split_gguf(tiny_gguf(), {0, 5, 11});
  uint64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i].build();
    std::ofstream(snapshot / test::part_name("split", i + 1, parts.size()), std::ios::binary) << part;
    bytes += part.size();
  }
  std::ofstream(snapshot / "notes.txt") << "x";
  const std::vector<FoundModel> found = models_in_cache(folder_.path());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].problem, "");
  EXPECT_EQ(found[0].bytes, bytes);
  EXPECT_EQ(describe_model(snapshot / "split-00003-of-00003.gguf").name, "split.gguf");
  const FolderList list = list_folder(snapshot, PathFilter::models);
  ASSERT_EQ(list.entries.size(), 1u);
  EXPECT_EQ(list.entries[0].name, "split-00001-of-00003.gguf");
  EXPECT_EQ(list.entries[0].bytes, bytes);
  EXPECT_EQ(list.left_out, 1u) << "the other parts are not left out";
  EXPECT_EQ(list_folder(snapshot, PathFilter::all).entries.size(), 4u);
  fs::remove(snapshot / "split-00001-of-00003.gguf");
  EXPECT_EQ(list_folder(snapshot, PathFilter::models).entries.size(), 1u) << "what is left can be chosen and says why";
}

TEST_F(ModelFiles, AMissingShardIsNamed) {
  const fs::path folder = model("shards", tiny_config(), "");
  std::ofstream(folder / "model.safetensors.index.json")
      << R"({"weight_map":{"model.norm.weight":"model-00002-of-00002.safetensors"}})";
  const std::string problem = describe_model(folder).problem;
  EXPECT_NE(problem.find("model-00002-of-00002.safetensors does not exist"), std::string::npos) << problem;
}

TEST_F(ModelFiles, ADrafterAloneIsToldApartFromAModel) {
  const FoundModel found = describe_model(folder_.write("drafter.gguf", tiny_drafter_gguf().build()));
  EXPECT_TRUE(found.drafter);
  EXPECT_EQ(found.problem, "");
}

TEST_F(ModelFiles, ADrafterForOtherLayersOrAnotherVocabularyIsRefusedWithTheReason) {
  const fs::path one_layer = folder_.write("one.gguf", tiny_gguf().build());
  const fs::path four_layers = folder_.write("four.gguf", tiny_target_of_four_layers());
  const FoundModel drafter = describe_model(folder_.write("drafter.gguf", tiny_drafter_gguf().build()));
  const auto deep = pair_drafters(one_layer.string(), {drafter});
  ASSERT_EQ(deep.size(), 1u);
  EXPECT_FALSE(deep[0].fits);
  EXPECT_NE(deep[0].reason.find("it reads layer 2; the model has the layers 0 to 0"), std::string::npos)
      << deep[0].reason;
  std::string config = tiny_drafter_config();
  config.replace(config.find("\"vocab_size\":10"), 15, "\"vocab_size\":11");
  const fs::path folder = model("vocabulary", config, tiny_drafter_safetensors().build());
  const auto foreign = pair_drafters(four_layers.string(), {describe_model(folder)});
  ASSERT_EQ(foreign.size(), 1u);
  EXPECT_FALSE(foreign[0].fits);
  EXPECT_NE(foreign[0].reason.find("vocabulary of 11 tokens; the model has 10"), std::string::npos)
      << foreign[0].reason;
}

TEST_F(ModelFiles, TheCacheOfHuggingFaceIsListedWithNamesAndSizes) {
  const std::string bytes = tiny_safetensors().build();
  const fs::path snapshot = folder_.path() / "models--some-org--Tiny-Model" / "snapshots" / "1111";
  fs::create_directories(snapshot);
  std::ofstream(snapshot / "config.json") << tiny_config();
  std::ofstream(snapshot / "model.safetensors", std::ios::binary) << bytes;
  fs::create_directories(folder_.path() / "models--other--Unfinished" / "blobs");
  fs::create_directories(folder_.path() / "datasets--not--a-model");
  const std::vector<FoundModel> found = models_in_cache(folder_.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "other/Unfinished");
  EXPECT_NE(found[0].problem.find("never finished"), std::string::npos) << found[0].problem;
  EXPECT_EQ(found[1].name, "some-org/Tiny-Model");
  EXPECT_EQ(found[1].problem, "");
  EXPECT_EQ(found[1].bytes, bytes.size());
  EXPECT_TRUE(models_in_cache(folder_.path() / "nowhere").empty());
}

TEST_F(ModelFiles, FittingDraftersComeFirst) {
  const fs::path target = folder_.write("target.gguf", tiny_target_of_four_layers());
  std::string config = tiny_drafter_config();
  config.replace(config.find("\"num_target_layers\":4"), 21, "\"num_target_layers\":9");
  const FoundModel wrong = describe_model(model("a", config, tiny_drafter_safetensors().build()));
  const FoundModel right = describe_model(folder_.write("b.gguf", tiny_drafter_gguf().build()));
  const auto candidates = pair_drafters(target.string(), {wrong, right});
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_TRUE(candidates[0].fits) << candidates[0].reason;
  EXPECT_EQ(candidates[0].path, right.path);
  EXPECT_NE(candidates[1].reason.find("made for a model of 9 layers; this one has 4"), std::string::npos)
      << candidates[1].reason;
}

TEST_F(ModelFiles, OtherModelsCanDraftWhereTheVocabularyIsTheSame) {
  const fs::path target = folder_.write("target.gguf", tiny_target_of_four_layers());
  const FoundModel itself = describe_model(target),
                   small = describe_model(folder_.write("s.gguf", tiny_gguf().build()));
  std::string bytes = tiny_gguf().build();
  const std::string_view h("\1\0\0\0\0\0\0\0h", 9), x("\1\0\0\0\0\0\0\0x", 9);
  bytes.replace(bytes.find(h), h.size(), x);
  const FoundModel other = describe_model(folder_.write("a.gguf", bytes));
  const FoundModel drafter = describe_model(folder_.write("d.gguf", tiny_drafter_gguf().build()));
  const auto candidates = pair_drafters(target.string(), {other, itself, small, drafter});
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].path, drafter.path);
  EXPECT_EQ(candidates[0].note, "Fits this model");
  EXPECT_EQ(candidates[1].path, small.path);
  EXPECT_TRUE(candidates[1].fits);
  EXPECT_EQ(candidates[1].note, "A model with the same vocabulary, guesses word by word");
  EXPECT_FALSE(candidates[2].fits);
  EXPECT_NE(candidates[2].reason.find("another vocabulary"), std::string::npos) << candidates[2].reason;
}

TEST_F(ModelFiles, TheModelsOwnHeadAndAHeadAloneAreDrafters) {
  const std::string target = test::golden("tiny-qwen3_5-mtp-f16.gguf").string();
  const FoundModel alone = describe_model(test::golden("mtp-tiny-qwen3_5-f16.gguf")),
                   other = describe_model(test::golden("tiny-qwen3-dflash-b8"));
  EXPECT_TRUE(alone.drafter);
  EXPECT_EQ(alone.problem, "");
  EXPECT_EQ(alone.notes, (std::vector<std::string>{"a head for guesses (MTP) alone"}));
  EXPECT_EQ(describe_model(target).notes, (std::vector<std::string>{"has a head for guesses (MTP)"}));
  EXPECT_TRUE(other.notes.empty());
  const auto candidates = pair_drafters(target, {other, alone});
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_EQ(candidates[0].path, "mtp");
  EXPECT_TRUE(candidates[0].fits) << candidates[0].reason;
  EXPECT_EQ(candidates[1].path, alone.path);
  EXPECT_EQ(candidates[1].note, "The model\u2019s own head, guesses word by word");
  EXPECT_FALSE(candidates[2].fits);
}

TEST_F(ModelFiles, EagleHeadsAreDraftersOfTheirModels) {
  const FoundModel head = describe_model(test::golden("tiny-qwen3-eagle3-f16.gguf")),
                   other = describe_model(test::golden("tiny-llama3-eagle3"));
  EXPECT_TRUE(head.drafter && other.drafter);
  EXPECT_EQ(head.problem, "");
  const auto candidates = pair_drafters(test::golden("tiny-qwen3").string(), {other, head});
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates[0].path, head.path);
  EXPECT_EQ(candidates[0].note, "An EAGLE-3 head for this model, guesses word by word");
  EXPECT_FALSE(candidates[1].fits);
  EXPECT_NE(candidates[1].reason.find("it reads states of 64 elements"), std::string::npos) << candidates[1].reason;
}

TEST_F(ModelFiles, AssistantsAreDraftersOfTheirModels) {
  const FoundModel assistant = describe_model(test::golden("tiny-gemma4-assistant-f16.gguf"));
  EXPECT_TRUE(assistant.drafter);
  EXPECT_EQ(assistant.problem, "");
  const auto candidates = pair_drafters(test::golden("tiny-gemma4-f16.gguf").string(), {assistant});
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_TRUE(candidates[0].fits) << candidates[0].reason;
  EXPECT_EQ(candidates[0].note, "An assistant for this model, guesses word by word");
  EXPECT_FALSE(pair_drafters(test::golden("tiny-qwen3").string(), {assistant}).at(0).fits);
}

TEST(ModelsState, RecentModelsAreFewAndDistinct) {
  ModelsState state;
  for (int i = 0; i < 20; ++i) remember_model(state, "/models/" + std::to_string(i) + ".gguf");
  remember_model(state, "/models/15.gguf");
  EXPECT_EQ(state.recent.size(), kRecentModels);
  EXPECT_EQ(state.recent[0], "/models/15.gguf");
  EXPECT_EQ(state.recent[1], "/models/19.gguf");
}

TEST(ModelsState, AnEngineElsewhereIsToldItsOwnKey) {
  ModelsState state;
  state.engine_key = "of-the-settings";
  choose(state, OpenEngine{" gpu-box:8737 ", "typed"});
  const auto key_for = [&](const std::string& path) {
    LoadModel load;
    load.path = path;
    ask_for(state, load);
    return load.key;
  };
  EXPECT_EQ(key_for("http://gpu-box:8737"), "typed");
  EXPECT_EQ(key_for("http://gpu-box:87"), "of-the-settings");
  EXPECT_EQ(key_for("/models/a.gguf"), "");
  EXPECT_EQ(engine_address("  "), "");
  EXPECT_EQ(engine_address("http://a:1\n"), "http://a:1");
  EXPECT_EQ(begin_search(state, "http://gpu-box:8737").target, "") << "it is no file";
}

TEST(ModelsState, WhatIsChosenReachesTheLoad) {
  ModelsState state;
  choose(state, ChooseDrafter{"/models/drafter.gguf", true});
  choose(state, ChooseContext{4096, false});
  LoadModel load;
  ask_for(state, load);
  EXPECT_EQ(load.drafter, "/models/drafter.gguf");
  EXPECT_EQ(load.context, 4096u);
  choose(state, ChooseDrafter{"", false});
  ask_for(state, load);
  EXPECT_FALSE(load.draft);
}

}  // namespace
}  // namespace canopy::app

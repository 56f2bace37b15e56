// Kinds of drafters: told apart by what their files say, and listed in the manual.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "engine/format/draft_file.h"
#include "engine/format/gguf.h"
#include "tests/base/temp_folder.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

using test::golden;

/// What the manual calls a drafter, and the source of its guesses.
struct ManualName {
  std::string drafter, source;
};

ManualName name_in_manual(const DraftFile& file) {
  switch (static_cast<DraftKind>(file.index())) {
    case DraftKind::block: return {std::string(std::get<DrafterFile>(file).config().kind()), "dflash"};
    case DraftKind::head: return {"MTP head", "mtp"};
    case DraftKind::eagle: return {"EAGLE-3 head", "eagle3"};
    case DraftKind::assistant: return {"assistant", "assistant"};
    case DraftKind::model: return {"model", "draft"};
  }
  return {};
}

struct GoldenDrafter {
  const char* file;
  const char* drafter;             // as the manual has it
  const char* of_model = nullptr;  // of a head in a model's file: the model, which it is the head of
};

const GoldenDrafter kDrafters[] = {
    {"tiny-qwen3-dflash-b8", "DFlash"},
    {"tiny-qwen3-dflash-b8-f16.gguf", "DFlash"},
    {"tiny-qwen3-jetspec", "JetSpec"},
    {"tiny-qwen3-jetspec-f16.gguf", "JetSpec"},
    {"tiny-qwen3-dspark", "DSpark"},
    {"tiny-qwen3-dspark-f16.gguf", "DSpark"},
    {"tiny-qwen3-dflash2", "DFlash2"},
    {"tiny-qwen3-dflash2-f16.gguf", "DFlash2"},
    {"tiny-qwen3_5-mtp", "MTP head", "tiny-qwen3_5-mtp"},
    {"tiny-qwen3_5-mtp-f16.gguf", "MTP head", "tiny-qwen3_5-mtp"},
    {"mtp-tiny-qwen3_5-f16.gguf", "MTP head"},
    {"tiny-qwen3_5moe-mtp", "MTP head", "tiny-qwen3_5moe-mtp"},
    {"tiny-qwen3_5moe-mtp-f16.gguf", "MTP head", "tiny-qwen3_5moe-mtp"},
    {"tiny-qwen3-eagle3", "EAGLE-3 head"},
    {"tiny-qwen3-eagle3-f16.gguf", "EAGLE-3 head"},
    {"tiny-llama3-eagle3", "EAGLE-3 head"},
    {"tiny-llama3-eagle31", "EAGLE-3 head"},
    {"tiny-gemma4-assistant", "assistant"},
    {"tiny-gemma4-assistant-f16.gguf", "assistant"},
    {"tiny-qwen3", "model"},
    {"tiny-qwen3-q8_0.gguf", "model"},
    {"tiny-qwen3_5-mtp", "model"},
};

DraftFile open_golden(const GoldenDrafter& drafter) {
  std::optional<ModelFile> target;
  if (drafter.of_model != nullptr) target.emplace(ModelFile::open(golden(drafter.of_model)));
  const DraftKind kind = draft_kind(golden(drafter.file), target ? &*target : nullptr);
  DraftFile file = open_draft_file(golden(drafter.file), kind);
  EXPECT_EQ(static_cast<DraftKind>(file.index()), kind);
  return file;
}

/// The rows of the manual's table of drafters by their first cell.
std::map<std::string, std::vector<std::string>> rows_of_manual() {
  std::ifstream manual(std::string(CANOPY_SOURCE_DIR) + "/docs/using.md");
  EXPECT_TRUE(manual) << "docs/using.md is missing";
  std::map<std::string, std::vector<std::string>> rows;
  bool in_table = false;
  for (std::string line; std::getline(manual, line);) {
    const bool begins = line.starts_with("| drafter |");
    in_table = begins || (in_table && line.starts_with("|"));
    if (!in_table || begins || line.starts_with("|---")) continue;
    std::vector<std::string> cells;
    std::istringstream text(line.substr(2));
    for (std::string cell; std::getline(text, cell, '|');) {
      const size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
    }
    EXPECT_EQ(cells.size(), 5u) << line;
    rows[cells.front()] = cells;
  }
  return rows;
}

TEST(DraftKinds, AreThoseOfTheManual) {
  const auto rows = rows_of_manual();
  std::map<std::string, std::string> seen;
  for (const GoldenDrafter& each : kDrafters) {
    SCOPED_TRACE(each.file);
    const ManualName name = name_in_manual(open_golden(each));
    EXPECT_EQ(name.drafter, each.drafter);
    seen[name.drafter] = name.source;
    const auto row = rows.find(name.drafter);
    ASSERT_NE(row, rows.end()) << name.drafter;
    EXPECT_EQ(row->second[1], "`" + name.source + "`");
    if (name.drafter == "model") continue;
    const std::filesystem::path path = golden(each.file);
    const bool is_folder = std::filesystem::is_directory(path);
    std::string word;  // what the file says that it is
    if (is_folder) {
      std::ifstream config(path / "config.json");
      word = nlohmann::json::parse(config).at("architectures").at(0).get<std::string>();
    } else {
      word = GgufFile::open(path).text("general.architecture");
    }
    EXPECT_NE(row->second[is_folder ? 3 : 4].find("`" + word + "`"), std::string::npos) << word;
  }
  EXPECT_EQ(seen.size(), rows.size()) << "the manual has a kind that no golden file is of";
}

TEST(DraftKinds, WhatSaysNothingOfDraftingIsAModel) {
  const test::TempFolder folder;
  EXPECT_EQ(draft_kind(folder.path(), nullptr), DraftKind::model);
  EXPECT_EQ(draft_kind(folder.path() / "missing.gguf", nullptr), DraftKind::model);
  EXPECT_EQ(draft_kind(folder.write("broken.gguf", "GGUF"), nullptr), DraftKind::model);
  const ModelFile other = ModelFile::open(golden("tiny-qwen3"));
  EXPECT_EQ(draft_kind(golden("tiny-qwen3_5-mtp"), &other), DraftKind::model) << "another model, head or not";
}

}  // namespace
}  // namespace canopy

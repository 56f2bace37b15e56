// The table of architectures in docs/using.md: each row names the golden files that show that it runs.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/format/architecture.h"
#include "engine/format/model_file.h"
#include "tests/format/golden_path.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& path) {
  return test::file_bytes(fs::path(CANOPY_SOURCE_DIR) / path);
}

struct GoldenNames {
  std::vector<std::string> folders, files;  // of models; rising
};

std::map<std::string, GoldenNames> golden_models() {
  std::map<std::string, GoldenNames> found;
  for (const auto& entry : fs::directory_iterator(fs::path(CANOPY_SOURCE_DIR) / "tests" / "golden")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() && entry.path().extension() != ".gguf") continue;
    try {
      GoldenNames& names = found[ModelFile::open(entry.path()).config().architecture];
      (entry.is_directory() ? names.folders : names.files).push_back(name);
    } catch (const Error&) {  // a drafter, or no model at all
    }
  }
  for (auto& [architecture, names] : found) std::ranges::sort(names.folders), std::ranges::sort(names.files);
  return found;
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "`" : ", `") + name + "`";
  return list.empty() ? "–" : list;
}

/// "llama (Llama 2 and 3), qwen2 (Qwen2.5)." -> {name, models}.
std::vector<std::pair<std::string, std::string>> architectures_that_run() {
  const std::string words = what_runs();
  std::vector<std::pair<std::string, std::string>> found;
  for (size_t at = words.find(": ") + 2; at < words.size();) {
    const size_t open = words.find(" (", at), close = words.find(')', open);
    found.emplace_back(words.substr(at, open - at), words.substr(open + 2, close - open - 2));
    at = close + 3;  // behind "), "
  }
  return found;
}

TEST(ManualModels, NamesWhatShowsThatAnArchitectureRuns) {
  const std::string manual = text_of("docs/using.md"), modes = text_of("tests/session/architecture_modes_test.cpp");
  const auto goldens = golden_models();
  const auto architectures = architectures_that_run();
  ASSERT_GT(architectures.size(), 10u);
  for (const auto& [name, models] : architectures) {
    SCOPED_TRACE(name);
    const auto found = goldens.find(name);
    const GoldenNames names = found != goldens.end() ? found->second : GoldenNames();
    const bool is_part =
        goldens.upper_bound(name) != goldens.end() && goldens.upper_bound(name)->first.starts_with(name);
    EXPECT_TRUE(found != goldens.end() || is_part) << "no golden file of it, nor of what its layers are a part of";
    const std::string row =
        "| `" + name + "` | " + models + " | " + listed(names.folders) + " | " + listed(names.files) + " |\n";
    EXPECT_NE(manual.find(row), std::string::npos) << "docs/using.md lacks the row\n" << row;
    EXPECT_NE(modes.find('"' + name), std::string::npos) << "ArchitectureModes has no case of it";
  }
  const size_t table = manual.find("| architecture | models |");
  ASSERT_NE(table, std::string::npos);
  std::istringstream lines(manual.substr(table));
  size_t rows = 0;
  for (std::string line; std::getline(lines, line) && line.starts_with("|");) rows += line.starts_with("| `") ? 1 : 0;
  EXPECT_EQ(rows, architectures.size());
}

}  // namespace
}  // namespace canopy

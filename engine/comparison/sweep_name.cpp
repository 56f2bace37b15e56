#include "engine/comparison/sweep_name.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <system_error>
#include <utility>

#include "engine/base/paths.h"
#include "engine/base/utc_time.h"
#include "engine/comparison/sweep_journal.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostNamePart = 40;
constexpr const char* kJournalEnding = ".journal";

}  // namespace

fs::path sweep_folder() {
  const fs::path folder = data_dir() / "sweeps";
  std::error_code ignored;  // writing says why it is not possible
  fs::create_directories(folder, ignored);
  return folder;
}

std::string name_part(const std::string& device) {
  std::string words;
  for (const char c : device.substr(0, device.find('('))) {
    if (words.size() >= kMostNamePart) break;
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      words += static_cast<char>(std::tolower(byte));
    else if (!words.empty() && words.back() != '-')
      words += '-';
  }
  while (words.ends_with('-')) words.pop_back();
  return words.empty() ? "sweep" : words;
}

fs::path new_sweep_file(const fs::path& folder, const std::string& device) {
  const std::string name = name_part(device) + "-" + utc_time().substr(0, 10);
  std::error_code ignored;
  fs::path file = folder / (name + ".json");
  for (int i = 2; fs::exists(file, ignored) || fs::exists(journal_path(file), ignored); ++i)
    file = folder / (name + "-" + std::to_string(i) + ".json");
  return file;
}

std::vector<KeptSweep> kept_sweeps(const fs::path& folder) {
  std::map<fs::path, std::pair<fs::file_time_type, bool>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    fs::path path = entry->path();
    const auto time = fs::last_write_time(path, ignored);
    const bool journal = path.extension() == kJournalEnding;
    if (journal) path.replace_extension();
    if (path.extension() != ".json") continue;
    auto& [newest, finished] = found.try_emplace(path, time, !journal).first->second;
    newest = std::max(newest, time);
    finished = finished && !journal;
  }
  std::vector<KeptSweep> kept;
  for (const auto& [file, about] : found) kept.push_back({file, about.second});
  std::ranges::stable_sort(kept, std::greater(), [&](const KeptSweep& each) { return found.at(each.file).first; });
  return kept;
}

}  // namespace canopy

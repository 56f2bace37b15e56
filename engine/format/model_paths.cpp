#include "engine/format/model_paths.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <system_error>
#include <tuple>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/format/gguf_parts.h"

namespace canopy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view cached_prefix = "models--";
constexpr uint64_t max_ref_bytes = 256;
constexpr size_t max_entries = 10'000;  // of a folder that are looked at

fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The entries of a folder; fewer where it cannot be read to its end.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end && entries.size() < max_entries;
       it.increment(failed)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_cached_model(const fs::path& folder) {
  return folder.filename().string().starts_with(cached_prefix) && is_folder(folder);
}

/// The snapshot that the main branch was downloaded as.
std::optional<fs::path> main_snapshot(const fs::path& model) {
  try {
    std::string revision = read_small_file(model / "refs" / "main", max_ref_bytes);
    while (!revision.empty() && (revision.back() == '\n' || revision.back() == '\r')) revision.pop_back();
    const fs::path name = revision;
    if (revision.empty() || name != name.filename() || name == ".." || name == ".") return std::nullopt;
    const fs::path snapshot = model / "snapshots" / name;
    if (is_folder(snapshot)) return snapshot;
  } catch (const Error&) {  // there is no such ref
  }
  return std::nullopt;
}

fs::path snapshot_of(const fs::path& model) {
  if (const auto main = main_snapshot(model)) return *main;
  fs::path newest;
  fs::file_time_type newest_time = fs::file_time_type::min();
  for (const fs::path& snapshot : entries_of(model / "snapshots")) {
    std::error_code failed;
    const fs::file_time_type time = fs::last_write_time(snapshot, failed);
    if (failed || !is_folder(snapshot) || (!newest.empty() && time < newest_time)) continue;
    newest = snapshot;
    newest_time = time;
  }
  if (newest.empty()) {
    throw bad_input(
        "This folder of the Hugging Face cache has no snapshot, so that its download was never finished; "
        "download the model again.");
  }
  return newest;
}

bool is_projector(const fs::path& path) {
  return path.filename().string().starts_with("mmproj");
}

/// The GGUF models of a folder: of a split one only its first file that is there.
std::vector<fs::path> gguf_models(const fs::path& folder) {
  std::vector<fs::path> files = entries_of(folder);
  std::erase_if(files, [](const fs::path& path) {
    return path.extension() != ".gguf" || is_folder(path) || is_later_gguf_part(path);
  });
  if (!std::ranges::all_of(files, is_projector)) std::erase_if(files, is_projector);
  return files;
}

/// The GGUF models of a folder, or of the only folder in it.
std::vector<fs::path> gguf_models_below(const fs::path& folder) {
  std::vector<fs::path> files = gguf_models(folder);
  if (!files.empty()) return files;
  std::vector<fs::path> folders = entries_of(folder);
  std::erase_if(folders, [](const fs::path& path) { return !is_folder(path); });
  return folders.size() == 1 ? gguf_models(folders.front()) : files;
}

[[noreturn]] void refuse_several(const std::vector<fs::path>& files) {
  constexpr size_t listed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), listed); ++i) {
    names += (i == 0 ? "" : ", ") + quoted_name(files[i].filename().string());
  }
  throw bad_input("The folder holds " + std::to_string(files.size()) + " GGUF models (" + names +
                  (files.size() > listed ? ", ..." : "") + "); open one of them.");
}

/// ORG--NAME of the cached model that `path` lies in; nothing where it lies in none, or names a file of it.
std::optional<std::string> cached_name(const fs::path& path) {
  const fs::path snapshots = path.parent_path();
  if (path.filename().string().starts_with(cached_prefix)) return path.filename().string();
  if (path.filename() == "snapshots") return cached_name(snapshots);
  if (snapshots.filename() == "snapshots") return cached_name(snapshots.parent_path());
  return std::nullopt;
}

}  // namespace

fs::path resolve_model_path(const fs::path& given) {
  fs::path path = without_trailing_slash(given);
  if (path.filename() == "snapshots" && is_cached_model(path.parent_path())) path = path.parent_path();
  if (is_cached_model(path)) path = snapshot_of(path);
  std::error_code ignored;
  if (!is_folder(path) || fs::exists(path / "config.json", ignored)) return path;
  const std::vector<fs::path> files = gguf_models_below(path);
  if (files.size() > 1) refuse_several(files);
  return files.empty() ? path : files.front();
}

std::vector<fs::path> model_files(const fs::path& given) noexcept {
  try {
    fs::path path = resolve_model_path(given);
    if (path.extension() == ".safetensors" && !is_folder(path))
      path = path.has_parent_path() ? path.parent_path() : ".";
    if (!is_folder(path)) return gguf_part_files(path);
    std::vector<fs::path> files = entries_of(path);
    std::erase_if(files, [](const fs::path& file) {
      static constexpr std::string_view read[] = {".safetensors", ".json", ".jinja", ".model"};
      return std::ranges::find(read, file.extension().string()) == std::end(read) || is_folder(file);
    });
    return files;
  } catch (const std::exception&) {
    return {given};  // opening it says what is wrong
  }
}

std::string model_path_name(const fs::path& given) {
  const fs::path path = without_trailing_slash(given);
  const std::optional<std::string> cached = cached_name(path);
  if (!cached) {
    const auto part = gguf_part_name(path.filename().string());
    return printable(part ? part->stem + ".gguf" : path.filename().string());
  }
  const size_t name = cached->rfind("--");
  return printable(cached->substr(name + 2));
}

}  // namespace canopy

#include "app/models/folder_list.h"

#include <algorithm>
#include <system_error>
#include <tuple>

#include "app/models/model_finder.h"
#include "engine/format/gguf_parts.h"
#include "engine/text/case_folding.h"

namespace canopy::app {
namespace {

namespace fs = std::filesystem;

bool passes(const fs::path& file, PathFilter filter) {
  const std::string ending = file.extension().string();
  switch (filter) {
    case PathFilter::models: return ending == ".gguf" || ending == ".GGUF" || ending == ".canopytrace";
    case PathFilter::chats: return ending == ".json";
    case PathFilter::folders: return false;
    case PathFilter::all: return true;
  }
  return true;
}

FolderEntry entry_of(const fs::directory_entry& each, PathFilter filter) {
  std::error_code ignored;
  FolderEntry entry;
  entry.name = each.path().filename().string();
  entry.path = each.path().string();
  entry.folder = each.is_directory(ignored);
  entry.model = entry.folder ? holds_a_model(each.path()) : passes(each.path(), PathFilter::models);
  if (!entry.folder && each.is_regular_file(ignored)) {
    const std::vector<fs::path> parts =
        filter == PathFilter::models ? gguf_part_files(each.path()) : std::vector{each.path()};
    for (const fs::path& part : parts) {
      std::error_code unknown;
      if (const uintmax_t bytes = fs::file_size(part, unknown); !unknown) entry.bytes += bytes;
    }
  }
  return entry;
}

std::string quoted(const fs::path& path) {
  return "\u201c" + path.string() + "\u201d";
}

}  // namespace

bool holds_a_model(const fs::path& folder) {
  std::error_code ignored;
  return folder.filename().string().starts_with("models--") || fs::is_regular_file(folder / "config.json", ignored);
}

FolderList list_folder(const fs::path& folder, PathFilter filter) {
  FolderList list;
  std::error_code error;
  fs::path place = fs::absolute(folder, error).lexically_normal();
  if (!place.has_filename() && place.has_relative_path()) place = place.parent_path();  // "models/" is "models"
  list.folder = place.string();
  if (place.has_relative_path()) list.parent = place.parent_path().string();
  error.clear();
  fs::directory_iterator it(place, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    if (list.entries.size() == kMostEntries) {
      list.cut = true;
      break;
    }
    std::error_code ignored;
    if (!it->is_directory(ignored) && !passes(it->path(), filter)) {
      ++list.left_out;
      continue;
    }
    if (filter == PathFilter::models && is_later_gguf_part(it->path())) continue;  // shown as its first part
    list.entries.push_back(entry_of(*it, filter));
  }
  if (error) list.problem = "The folder " + quoted(place) + " cannot be read: " + error.message() + ".";
  std::ranges::sort(list.entries, {}, [](const FolderEntry& e) {
    return std::tuple(!e.folder, e.name.starts_with('.'), fold_case(e.name), e.name);
  });
  return list;
}

std::string path_obstacle(const fs::path& path, PathFilter filter) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "There is no file or folder " + quoted(path) + ".";
  if (error) return quoted(path) + " cannot be read: " + error.message() + ".";
  const bool folder = status.type() == fs::file_type::directory;
  if (filter == PathFilter::folders) return folder ? "" : quoted(path) + " is a file. Choose a folder.";
  if (filter != PathFilter::models) return folder ? quoted(path) + " is a folder. Choose a file in it." : "";
  return folder ? "" : open_obstacle(path);
}

}  // namespace canopy::app

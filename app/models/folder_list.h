#pragma once
// The contents of a folder for a small file browser: folders first, then the files that a filter lets through.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace canopy::app {

enum class PathFilter {
  models,   // GGUF files, folders of Hugging Face models, and recordings
  chats,    // exported chats: JSON
  folders,  // no files
  all,
};

struct FolderEntry {
  std::string name;
  std::string path;
  bool folder = false;
  bool model = false;  // a model file, or a folder that holds a model
  uint64_t bytes = 0;  // of a file; of all parts of a split model, which is listed as its first part
};

struct FolderList {
  std::string folder;                // whose contents these are
  std::string parent;                // empty: there is none
  std::vector<FolderEntry> entries;  // folders, then files, each by name; names that begin with a dot come last
  size_t left_out = 0;               // files that the filter hides
  bool cut = false;                  // there are more than kMostEntries
  std::string problem;               // why it cannot be read, as a sentence; else empty
};

inline constexpr size_t kMostEntries = 2000;

/// Reads a folder. Never throws: what cannot be read is said in `problem`.
FolderList list_folder(const std::filesystem::path& folder, PathFilter filter);

/// Whether a folder is that of a Hugging Face model, or one of the cache.
bool holds_a_model(const std::filesystem::path& folder);

/// Why a path cannot be chosen, as a sentence with the path: nothing is there, it may not be read, or it is not what is
/// wanted. Empty where it can.
std::string path_obstacle(const std::filesystem::path& path, PathFilter filter);

}  // namespace canopy::app

#pragma once
// Files and folders for code under test that opens files by their path.

#include <filesystem>
#include <string_view>
#include <vector>

namespace canopy::fuzz {

/// A file in memory, with a path of its own.
class ScratchFile {
 public:
  ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  void write(std::string_view bytes);
  const std::filesystem::path& path() const { return path_; }

 private:
  int descriptor_ = -1;
  std::filesystem::path path_;
};

/// A folder, in memory if the machine allows that; removed with this object.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  /// Writes a file; `name` must be a plain file name.
  void write(std::string_view name, std::string_view bytes);
  /// Removes the written files.
  void clear();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> written_;
};

}  // namespace canopy::fuzz

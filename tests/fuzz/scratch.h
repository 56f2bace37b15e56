#pragma once
// Places where a harness puts the files that the code under test opens by their path.

#include <filesystem>
#include <string_view>
#include <vector>

namespace canopy::fuzz {

/// One file in memory, under a path of its own.
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

/// A folder, in memory where the machine has a place for that; gone with this.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder();

  /// `name` must be a plain file name.
  void write(std::string_view name, std::string_view bytes);
  /// Removes what was written.
  void clear();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> written_;
};

}  // namespace canopy::fuzz

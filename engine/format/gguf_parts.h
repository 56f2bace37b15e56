#pragma once
// GGUF models that are split into several files, as gguf-split and its like write them: "NAME-00002-of-00003.gguf". The
// metadata is in the first part; each has its place in 'split.no', counted from 0, and tensors of its own.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

/// What the name of a part says: "m-00002-of-00003.gguf" is {"m", 2, 3}.
struct GgufPartName {
  static constexpr uint32_t most_parts = 1024;

  std::string stem;
  uint32_t number = 1;  // from 1
  uint32_t count = 1;

  /// The file name of another part.
  std::string of_part(uint32_t wanted) const;
};

/// Nothing where the name is not that of a part.
std::optional<GgufPartName> gguf_part_name(std::string_view file_name);

/// By their names alone, the files of the model that `path` is a part of, in order and as far as they exist; only
/// `path` where its name is not that of a part, or no part exists.
std::vector<std::filesystem::path> gguf_part_files(const std::filesystem::path& path);

/// Whether an earlier part than `path` exists, by their names: lists show a model once, by its first file.
bool is_later_gguf_part(const std::filesystem::path& path);

}  // namespace canopy

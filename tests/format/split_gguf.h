#pragma once
// GGUF models split into parts as gguf-split writes them: all metadata in the first part, each tensor in one of them.

#include <cstdio>
#include <string>
#include <vector>

#include "tests/base/temp_folder.h"
#include "tests/format/gguf_builder.h"

namespace canopy::test {

/// The name of a part, counted from 1.
inline std::string part_name(const std::string& stem, size_t number, size_t count) {
  char ending[40];
  std::snprintf(ending, sizeof ending, "-%05zu-of-%05zu.gguf", number, count);
  return stem + ending;
}

/// The parts of a file, to be changed before they are built. `ends` are the ends of each part's tensors.
inline std::vector<GgufBuilder> split_gguf(const GgufBuilder& whole, const std::vector<size_t>& ends) {
  std::vector<GgufBuilder> parts;
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    GgufBuilder part;
    if (i == 0) part = whole;
    part.alignment = whole.alignment;
    part.tensors.assign(whole.tensors.begin() + static_cast<std::ptrdiff_t>(begin),
                        whole.tensors.begin() + static_cast<std::ptrdiff_t>(ends[i]));
    part.value<uint16_t>("split.no", static_cast<uint16_t>(i));
    part.value<uint16_t>("split.count", static_cast<uint16_t>(ends.size()));
    part.value<int32_t>("split.tensors.count", static_cast<int32_t>(whole.tensors.size()));
    parts.push_back(std::move(part));
    begin = ends[i];
  }
  return parts;
}

/// Writes the parts under their names and returns their paths.
inline std::vector<std::filesystem::path> write_parts(const TempFolder& folder, const std::string& stem,
                                                      const std::vector<GgufBuilder>& parts) {
  std::vector<std::filesystem::path> paths;
  for (size_t i = 0; i < parts.size(); ++i) {
    paths.push_back(folder.write(part_name(stem, i + 1, parts.size()), parts[i].build()));
  }
  return paths;
}

}  // namespace canopy::test

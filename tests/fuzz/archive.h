#pragma once
// Several files in one input, as text that a fuzzer can cut and splice:
//
//   -- config.json --
//   {"hidden_size": 8}
//   -- text --
//   Hello

#include <string_view>
#include <vector>

namespace canopy::fuzz {

struct ArchivedFile {
  std::string_view name;
  std::string_view bytes;  // without the line break in front of the next file's line
};

/// The files of an input, in order. Text before the first line of a name belongs to a file without a name.
std::vector<ArchivedFile> split_archive(std::string_view input);

/// The first file of that name; empty where there is none.
std::string_view find_file(const std::vector<ArchivedFile>& files, std::string_view name);

}  // namespace canopy::fuzz

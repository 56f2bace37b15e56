#include "tests/fuzz/archive.h"

#include <algorithm>

namespace canopy::fuzz {
namespace {

constexpr std::string_view opening = "-- ", closing = " --\n";

struct Line {
  size_t begin = 0;  // of the whole line, with the line break before it
  size_t end = 0;
  std::string_view name;
};

// The next line that names a file, from `from` on; if there is none, its begin is the end of the text.
Line next_line(std::string_view input, size_t from) {
  for (size_t at = from;; ++at) {
    at = input.find(opening, at);
    if (at == std::string_view::npos) return {input.size(), input.size(), {}};
    if (at != 0 && input[at - 1] != '\n') continue;
    const size_t name = at + opening.size();
    const size_t end = input.find(closing, name);
    if (end == std::string_view::npos) return {input.size(), input.size(), {}};
    if (input.substr(name, end - name).find('\n') != std::string_view::npos) continue;
    return {at == 0 ? 0 : at - 1, end + closing.size(), input.substr(name, end - name)};
  }
}

}  // namespace

std::vector<ArchivedFile> split_archive(std::string_view input) {
  std::vector<ArchivedFile> files;
  std::string_view name;
  size_t begin = 0;
  while (true) {
    const Line line = next_line(input, begin);
    const bool is_preface = name.empty() && begin == 0;
    // If two such lines follow each other directly, the line break between them belongs to the first.
    const size_t end = std::max(begin, line.begin);
    if (!is_preface || end > 0) files.push_back({name, input.substr(begin, end - begin)});
    if (line.end == line.begin) return files;
    name = line.name;
    begin = line.end;
  }
}

std::string_view find_file(const std::vector<ArchivedFile>& files, std::string_view name) {
  const auto found = std::find_if(files.begin(), files.end(), [&](const ArchivedFile& f) { return f.name == name; });
  return found == files.end() ? std::string_view() : found->bytes;
}

}  // namespace canopy::fuzz

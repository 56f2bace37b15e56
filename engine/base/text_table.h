#pragma once
// A table of figures, written as text, CSV or Markdown.

#include <string>
#include <vector>

namespace canopy {

struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // [rows][columns]
};

/// Aligned for a terminal: text to the left, numbers to the right.
std::string as_text(const TextTable& table);

/// RFC 4180: a cell with a comma, a quote or a line break is quoted.
std::string as_csv(const TextTable& table);

/// A GitHub table; numbers to the right.
std::string as_markdown(const TextTable& table);

}  // namespace canopy

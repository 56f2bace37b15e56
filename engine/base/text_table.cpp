#include "engine/base/text_table.h"

#include <algorithm>
#include <cstddef>

namespace canopy {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789+-.") == std::string::npos;
}

/// Whether all cells of a column that have a value are numbers.
bool is_numeric(const TextTable& table, size_t column) {
  bool any = false;
  for (const auto& row : table.rows) {
    if (row[column].empty() || row[column] == "-") continue;
    if (!is_number(row[column])) return false;
    any = true;
  }
  return any;
}

/// Number of code points: the columns of a terminal that these texts take.
size_t length(const std::string& cell) {
  return static_cast<size_t>(std::ranges::count_if(cell, [](char c) { return (c & '\xc0') != '\x80'; }));
}

size_t width(const TextTable& table, size_t column) {
  size_t widest = length(table.columns[column]);
  for (const auto& row : table.rows) widest = std::max(widest, length(row[column]));
  return widest;
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string result = "\"";
  for (const char c : cell) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + quoted(cells[i]);
  return line + "\r\n";
}

std::string markdown_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) {
    line += ' ';
    for (const char c : cell) {
      if (c == '|') line += '\\';
      line += c == '\n' || c == '\r' ? ' ' : c;
    }
    line += " |";
  }
  return line + "\n";
}

}  // namespace

std::string as_text(const TextTable& table) {
  std::vector<size_t> widths;
  std::vector<bool> numeric;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(width(table, i));
    numeric.push_back(is_numeric(table, i));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string result;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - length(cells[i]), ' ');
      result += (i > 0 ? "  " : "") + (numeric[i] ? padding + cells[i] : cells[i] + padding);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  };
  std::string text = line(table.columns);
  for (const auto& row : table.rows) text += line(row);
  return text;
}

std::string as_csv(const TextTable& table) {
  std::string text = csv_line(table.columns);
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

std::string as_markdown(const TextTable& table) {
  std::string text = markdown_line(table.columns) + "|";
  for (size_t i = 0; i < table.columns.size(); ++i) text += is_numeric(table, i) ? "---:|" : "---|";
  text += "\n";
  for (const auto& row : table.rows) text += markdown_line(row);
  return text;
}

}  // namespace canopy

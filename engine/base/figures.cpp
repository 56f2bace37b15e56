#include "engine/base/figures.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ctime>

namespace canopy {
namespace {

struct Unit {
  const char* name;
  double bytes;
  int digits;  // behind the point
};

constexpr Unit kKilobytes{"kB", 1e3, 1};
constexpr Unit kMegabytes{"MB", 1e6, 1};
constexpr Unit kGigabytes{"GB", 1e9, 2};

const Unit& unit_of(uint64_t bytes) {
  if (bytes < 1'000'000) return kKilobytes;
  return bytes < 1'000'000'000 ? kMegabytes : kGigabytes;
}

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string whole(double value) {
  return number(value, 0);
}

}  // namespace

std::string byte_figures(uint64_t bytes) {
  const Unit& unit = unit_of(bytes);
  return number(static_cast<double>(bytes) / unit.bytes, unit.digits) + " " + unit.name;
}

std::string byte_figures(uint64_t bytes, uint64_t beside) {
  const std::string figures = byte_figures(bytes);
  const bool alike = bytes != beside && figures == byte_figures(beside);
  return alike || bytes < 1000 ? std::to_string(bytes) + " bytes" : figures;
}

std::string duration_figures(double seconds) {
  constexpr double kLongest = 99 * 3600;  // longer times are shown as this
  const double s = std::ceil(std::clamp(seconds, 1.0, kLongest));
  if (s < 60) return whole(s) + " s";
  if (s < 3600) return whole(std::floor(s / 60)) + " min " + whole(std::fmod(s, 60)) + " s";
  return whole(std::floor(s / 3600)) + " h " + whole(std::floor(std::fmod(s, 3600) / 60)) + " min";
}

std::string progress_figures(uint64_t done, uint64_t total, bool in_bytes, double seconds_left) {
  if (total == 0) return "";
  std::string text = std::to_string(done) + " of " + std::to_string(total);
  if (in_bytes) {
    const Unit& unit = unit_of(total);
    // One digit less than byte_figures(), since these numbers change quickly.
    const int digits = std::max(0, unit.digits - 1);
    text = number(static_cast<double>(done) / unit.bytes, digits) + " / " +
           number(static_cast<double>(total) / unit.bytes, digits) + " " + unit.name;
  }
  if (seconds_left >= 0 && done < total) text += ", " + duration_figures(seconds_left) + " left";
  return text;
}

namespace {

// Seconds: a longer window reacts late when the speed changes, a shorter one makes the estimate jump.
constexpr double kWindow = 5;
constexpr double kLeast = 0.5;    // seconds before the first estimate, which would be too noisy earlier
constexpr double kSpacing = 0.1;  // between samples that are kept

}  // namespace

std::optional<double> RemainingTime::update(double seconds, uint64_t done, uint64_t total) {
  if (samples_.empty() || seconds - samples_.back().seconds >= kSpacing) samples_.push_back({seconds, done});
  // One sample from before the window stays: the pace is taken over at least the whole window.
  while (samples_.size() > 2 && samples_[1].seconds <= seconds - kWindow) samples_.pop_front();
  const Sample& first = samples_.front();
  if (seconds - first.seconds < kLeast || done <= first.done || done > total) return std::nullopt;
  return static_cast<double>(total - done) * (seconds - first.seconds) / static_cast<double>(done - first.done);
}

std::string utc_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts = {};
  if (::gmtime_r(&now, &parts) == nullptr) return {};
  std::array<char, 32> text = {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

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

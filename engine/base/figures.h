#pragma once
// Figures for users: sizes, durations, progress and the time that is left, times of day, and tables of all these.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace canopy {

/// "98.4 MB": kB, MB and GB of powers of ten, as file managers count. Sizes of files and of memory alike,
/// so that one can be held against the other.
std::string byte_figures(uint64_t bytes);

/// The same for a size that stands beside another in one sentence: in whole bytes where they differ and the figures of
/// both would read the same, so that nobody is told that 1.50 GB are more than 1.50 GB, and below 1,000.
std::string byte_figures(uint64_t bytes, uint64_t beside);

/// "2 s", "3 min 20 s", "1 h 5 min"; rounded up, so that it is never "0 s" for something still running.
std::string duration_figures(double seconds);

/// "62 / 98 MB, 2 s left"; "3 of 9" where `done` and `total` are no bytes; empty where the total is unknown (0). A
/// negative time is unknown and left out.
std::string progress_figures(uint64_t done, uint64_t total, bool in_bytes, double seconds_left);

/// Estimate of the remaining time of an operation from its recent speed.
class RemainingTime {
 public:
  /// Takes the progress `done` of `total` at the time `seconds` of a monotonic clock. Returns the seconds left at the
  /// speed of the last few seconds; nothing in the first half second or without progress.
  std::optional<double> update(double seconds, uint64_t done, uint64_t total);

 private:
  struct Sample {
    double seconds;
    uint64_t done;
  };
  std::deque<Sample> samples_;  // of the last seconds, oldest first
};

/// The time as files keep it: "2026-11-21T20:15:00Z".
std::string utc_time();

// A table of figures, written as text, CSV or Markdown.

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

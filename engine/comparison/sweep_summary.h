#pragma once
// What a sweep's runs say of its columns.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/comparison/statistics.h"
#include "engine/comparison/sweep.h"

namespace canopy {

inline constexpr const char* kAllCategories = "all";

/// One column over the prompts of one category.
struct SweepCell {
  uint32_t contestant = 0;
  std::string category;  // kAllCategories for all of them
  uint64_t replies = 0;
  uint64_t rounds = 0;
  uint64_t tokens = 0;       // emitted by rounds: the first of each reply comes out of the prompt's pass
  double tau = 0;            // tokens a round; 0 of a server
  double mean_rows = 0;      // of a pass
  RoundTimes round_ms;       // mean of a round
  Spread tokens_per_second;  // over the repeats, each over all prompts of the category
  Ratio times_baseline;      // tokens per second / those of the baseline in the same repeat
  Ratio times_plain;         // the same of plain decoding of the same subject, S(N); not known without such a column
  Spread joules_per_token;   // of rounds; count 0 where nothing told the energy
  uint64_t different = 0;    // replies whose text differs from the baseline's
  std::optional<uint32_t> differs_at;  // the earliest token at which one does
};

/// A repeat counts with all prompts of the category, so that repeats can be compared with each other; where none is
/// whole yet, the prompts that every column has. Cells are by category in the order of the prompts, "all" last (the
/// only one where there is one category), in each by column. Columns without a run have replies 0.
std::vector<SweepCell> summarize(const Sweep& sweep, uint32_t baseline);

/// An array of the cells' figures.
nlohmann::ordered_json summary_json(const Sweep& sweep, uint32_t baseline);

/// What a reader must know of the figures, as sentences: too few repeats, clocks that moved, a software device, columns
/// that should have agreed and did not.
std::vector<std::string> remarks(const Sweep& sweep);

/// A speed that changed from the first repeat to the last, of the baseline over whole repeats: last / first. Nothing
/// with fewer than two.
std::optional<double> drift(const Sweep& sweep);

}  // namespace canopy

#pragma once
// What a sweep's runs say of its columns: statistics over repeats, the figures of each column, remarks and the verdict
// in one sentence.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/bench/sweep.h"

namespace canopy {

// Statistics of measurements that were repeated in turns.

/// Mean and sample standard deviation of values that were measured alike.
struct Spread {
  double mean = 0;
  double sd = 0;  // 0 for fewer than two values
  uint32_t count = 0;

  /// Standard error of the mean; 0 for fewer than two values, where it is not known.
  double error() const;
};

Spread spread_of(std::span<const double> values);

/// How many times as large one quantity is as another, from pairs that were measured one soon after the other. What
/// slows both of a pair alike (a clock that drops, another program) leaves their ratio as it is.
struct Ratio {
  double value = 0;    // 0: not known
  double error = 0;    // standard error; 0 for fewer than two pairs, where it is not known
  uint32_t pairs = 0;  // that it was taken of

  bool known() const { return pairs > 0; }
  bool has_error() const { return pairs > 1; }
  /// Whether it differs from 1 by more than chance explains in 19 of 20 cases (Student, "The Probable Error of a Mean",
  /// 1908): by 12.7 times its error of two pairs, 4.3 of three, twice of many. False where no error is known.
  bool differs_from_one() const;
};

/// The geometric mean of first / second, so that the ratio the other way round is 1 / value. Its error is that of the
/// mean logarithm (sample standard deviation / sqrt(pairs)), times the value. Pairs with a part that is not positive
/// and finite are left out.
Ratio ratio_of_pairs(std::span<const std::pair<double, double>> pairs);

// What a sweep's runs say of its columns.

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

// What a comparison found, in one sentence.

/// How the texts of a comparison relate.
enum class Agreement {
  unknown,   // nothing to compare yet
  same,      // all of them are the same
  may,       // some differ that may: another model, device or server
  must_not,  // some differ that must not
};

/// Repeats below which nothing is called a winner: two values have hardly an error, one has none.
inline constexpr uint32_t kLeastRepeats = 3;

/// Why so many repeats do not show that a ratio is more or less than one, as the end of a sentence; empty where they
/// do.
std::string doubt_of(const Ratio& ratio);

/// Whether a way that may guess did not, so that it was plain decoding by another name.
bool decoded_plainly(const Sweep& sweep, const SweepCell& cell);

struct Verdict {
  std::string sentence;  // "tree 16 is 1.42 ± 0.03 × ar here; same text"; empty before every column wrote once
  /// The contestant that is faster than every other one by more than chance explains; none where none is.
  std::optional<uint32_t> fastest;
  Agreement agreement = Agreement::unknown;
};

/// "1.42 ± 0.03": as many digits as the error has meaning, two where it is not known.
std::string ratio_figures(const Ratio& ratio);

/// Over all prompts; the baseline is the sweep's.
Verdict verdict_of(const Sweep& sweep);

}  // namespace canopy

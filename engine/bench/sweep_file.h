#pragma once
// Files of comparisons and sweeps: one JSON object, or the journal of one that is not finished. docs/comparing-gpus.md
// has their fields.

#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/bench/sweep.h"

namespace canopy {

/// Limits of what is read.
inline constexpr uint64_t kMostSweepBytes = uint64_t{64} << 20;
inline constexpr uint32_t kMostSweepRepeats = 1'000;

/// The object without `runs` and `summary`.
nlohmann::ordered_json sweep_header(const Sweep& sweep);
nlohmann::ordered_json to_json(const MeasuredRun& run);
/// The whole object, with a `summary` made of the runs (sweep_summary.h), which reading ignores.
nlohmann::ordered_json to_json(const Sweep& sweep);
/// The file's text.
std::string sweep_text(const Sweep& sweep);

/// Reads a file's or a journal's text; of a journal whose last line is not whole, all before it. Throws bad_input
/// naming the field, its value and what is allowed.
Sweep parse_sweep(std::string_view text);
/// The same with the file's name in front. Throws bad_input where it cannot be read or is too large.
Sweep read_sweep(const std::filesystem::path& path);

/// Throws bad_input where a measurement of so many runs would not fit into a file.
void require_few_runs(const RunCounts& counts);

/// Throws bad_input naming what it breaks: indices out of range, a run twice, times that are not finite.
void validate(const Sweep& sweep);

}  // namespace canopy

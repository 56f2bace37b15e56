#pragma once
// Sizes, durations and progress formatted for users.

#include <cstdint>
#include <string>

namespace canopy {

/// "98.4 MB": kB, MB and GB of powers of ten, as file managers count.
std::string byte_figures(uint64_t bytes);

/// "2 s", "3 min 20 s", "1 h 5 min"; rounded up, so that it is never "0 s" for something still running.
std::string duration_figures(double seconds);

/// "62 / 98 MB, 2 s left"; "3 of 9" where `done` and `total` are no bytes; empty where the total is unknown (0). A
/// negative time is unknown and left out.
std::string progress_figures(uint64_t done, uint64_t total, bool in_bytes, double seconds_left);

}  // namespace canopy

#pragma once
// Round statistics as JSON, the same fields for a live run, for its trace and in the window.

#include <nlohmann/json.hpp>

#include "engine/trace/round_statistics.h"

namespace canopy {

/// {"draft": ..., "build": ..., ...} in milliseconds.
nlohmann::ordered_json to_json(const RoundTimes& times);

/// Shares are 0 ... 1, times milliseconds; every rate stands beside what it was computed from.
nlohmann::ordered_json to_json(const RoundStatistics& statistics);

}  // namespace canopy

#pragma once

#include <string>

namespace canopy {

/// The time as files keep it: "2026-11-21T20:15:00Z".
std::string utc_time();

}  // namespace canopy

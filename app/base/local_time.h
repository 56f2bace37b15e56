#pragma once
// Moments as the user's clock shows them. Files store UTC; only what is read by people is local.

#include <cstdint>
#include <string>

namespace canopy::app {

/// "2026-11-22 00:47:27" in the user's time zone (TZ, or else the system's) for milliseconds since 1970, UTC. Empty for
/// a moment that the system's calendar cannot express.
std::string local_time(int64_t milliseconds);

/// The same with what the zone is ahead of UTC: "2026-11-22 00:47:27 +01:00". For files that are read elsewhere.
std::string local_time_and_zone(int64_t milliseconds);

}  // namespace canopy::app

#pragma once
// Moments as the user's clock shows them. Files store UTC; only what is read by people is local.

#include <cstdint>
#include <optional>
#include <string>

namespace canopy::app {

/// "2026-11-22 00:47:27" in the user's time zone (TZ, or else the system's) for milliseconds since 1970, UTC. Empty for
/// a moment that the system's calendar cannot express.
std::string local_time(int64_t milliseconds);

/// The same without seconds: "2026-11-22 00:47".
std::string local_minute(int64_t milliseconds);

/// The same with what the zone is ahead of UTC: "2026-11-22 00:47:27 +01:00". For files that are read elsewhere.
std::string local_time_and_zone(int64_t milliseconds);

/// Milliseconds since 1970 of "2026-11-22T03:16:49Z", UTC, as recordings have it; nullopt for text of any other form.
std::optional<int64_t> moment_in(const std::string& utc);

}  // namespace canopy::app

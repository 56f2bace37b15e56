#pragma once
// How figures are written (look.md, section 11): the unit behind a space, thousands with a comma, as many digits as can
// be told apart.

#include <cstdint>
#include <string>

namespace canopy::app {

/// "12,345"
std::string grouped(uint64_t value);

/// With so many digits behind the point: "8.46".
std::string fixed(double value, int digits);
/// "1,103": whole numbers and thousands.
std::string whole(double value);
/// Tokens a second: "1,103", "6.5" below ten.
std::string speed(double tokens_per_second);
/// "9.97 ms", "404.3 ms", "12,345 ms": from a hundred on, fewer digits behind the point say as much.
std::string milliseconds(double value);
/// The same without the unit.
std::string millisecond_figure(double value);
/// "8.8%"
std::string percent(double share, int digits = 1);
/// "+0.9%", "−12.0%"
std::string signed_percent(double share);
/// "×3.5"
std::string times(double ratio);
/// "1 round", "73 rounds"
std::string counted(uint64_t count, const char* one, const char* many);

}  // namespace canopy::app

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
/// "9.97 ms"
std::string milliseconds(double value);
/// "8.8%"
std::string percent(double share, int digits = 1);
/// "+0.9%", "−12.0%"
std::string signed_percent(double share);
/// "×3.5"
std::string times(double ratio);
/// "1 round", "73 rounds"
std::string counted(uint64_t count, const char* one, const char* many);

}  // namespace canopy::app

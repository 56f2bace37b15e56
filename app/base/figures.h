#pragma once
// Numbers as text (look.md, section 11): a space before the unit, commas between thousands, and only as many digits as
// a reader can use.

#include <cstdint>
#include <string>

namespace canopy::app {

/// "12,345"
std::string grouped(uint64_t value);

/// With that many digits after the decimal point: "8.46".
std::string fixed(double value, int digits);
/// "1,103": whole numbers and thousands.
std::string whole(double value);
/// Tokens a second: "1,103", "6.5" below ten.
std::string speed(double tokens_per_second);
/// "9.97 ms", "404.3 ms", "12,345 ms": the larger the value, the fewer digits after the point.
std::string milliseconds(double value);
/// The same without the unit.
std::string millisecond_figure(double value);
/// "8.8%"
std::string percent(double share, int digits = 1);
/// "+0.9%", "−12.0%", "0.0%"
std::string signed_percent(double share);
/// "×3.5"; "×0.04" below a tenth, so that nothing reads as none at all; "<×0.01"
std::string times(double ratio);
/// "1 round", "73 rounds"
std::string counted(uint64_t count, const char* one, const char* many);

}  // namespace canopy::app

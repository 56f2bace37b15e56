#pragma once
// Reading UTF-8 that may be damaged.

#include <cstddef>
#include <string>
#include <string_view>

namespace canopy {

/// U+FFFD, which stands for bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

enum class Utf8Kind {
  valid,       // one whole character
  invalid,     // a maximal part of a character that cannot be completed (Unicode 15, section 3.9, table 3-8)
  incomplete,  // the text ends inside what may become a character
};

struct Utf8Unit {
  Utf8Kind kind = Utf8Kind::valid;
  size_t length = 0;  // bytes, at least 1
};

/// The unit at the front of a text that is not empty. Overlong forms, surrogates and values over U+10FFFF are invalid.
Utf8Unit next_utf8(std::string_view text);

/// Length of the longest valid front of a text.
size_t valid_utf8_prefix(std::string_view text);

/// The text with every invalid or incomplete unit replaced by U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace canopy

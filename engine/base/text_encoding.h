#pragma once
// Text that others wrote, as UTF-8: what byte-order marks say, and what a text that is no UTF-8 seems to be.

#include <cstddef>
#include <string>
#include <string_view>

namespace canopy {

struct DecodedCharacter {
  char32_t code = 0;
  size_t length = 0;  // bytes taken, at least 1
  bool valid = false;
};

/// The first character of a UTF-8 text that is not empty. Invalid: the bytes that one U+FFFD stands for (the longest
/// beginning of a character, as Unicode recommends). Overlong forms, surrogates and codes over U+10FFFF are invalid.
DecodedCharacter decode_first(std::string_view text);

/// Appends a character as UTF-8. `code` must be no surrogate and at most U+10FFFF.
void append_utf8(std::string& text, char32_t code);

/// The bytes of a text file as UTF-8 without a byte-order mark. UTF-8 is taken with a mark or without, UTF-16 and
/// UTF-32 with one. Throws bad_input on everything else, and where a character is 0: `name` (how the sentence begins,
/// "The file notes.txt"), what it seems to be, at which byte, and what is allowed.
std::string text_from_bytes(std::string bytes, std::string_view name);

/// Whether the front of a file is that of a text, also of one that text_from_bytes() refuses: one in UTF-16 without a
/// mark, or with an old code page. False where a byte is 0 and UTF-16 or UTF-32 do not explain it.
bool begins_like_text(std::string_view front);

}  // namespace canopy

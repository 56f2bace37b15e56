#pragma once
// The alphabet of byte-level vocabularies (GPT-2's): every byte is written as one printable character, so a token is a
// string of characters. Printable bytes of Latin-1 stand for themselves; the other 68 follow from U+0100 on.

#include <string>
#include <string_view>

namespace canopy {

/// The character, as UTF-8, that stands for a byte.
std::string_view byte_level_character(unsigned char byte);

/// The bytes a token stands for; a token with a character outside the alphabet stands for itself.
std::string bytes_of_token(std::string_view token);

}  // namespace canopy

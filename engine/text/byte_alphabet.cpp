#include "engine/text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "engine/text/utf8.h"

namespace canopy {
namespace {

constexpr uint32_t alphabet_size = 0x100 + 68;  // code points below this may stand for a byte

struct ByteTables {
  std::array<std::string, 256> character;           // UTF-8 by byte
  std::array<int16_t, alphabet_size> byte_of = {};  // by code point; -1: none
};

bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

const ByteTables& alphabet() {
  static const ByteTables made = [] {
    ByteTables a;
    a.byte_of.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t code_point = stands_for_itself(byte) ? byte : next++;
      a.byte_of[code_point] = static_cast<int16_t>(byte);
      if (code_point < 0x80) {
        a.character[byte] = static_cast<char>(code_point);
      } else {
        a.character[byte] = {static_cast<char>(0xC0 | (code_point >> 6)),
                             static_cast<char>(0x80 | (code_point & 0x3F))};
      }
    }
    return a;
  }();
  return made;
}

// The byte that the character at the front of a text stands for, or -1; length in bytes of that character.
int byte_at(std::string_view text, size_t& length) {
  const Utf8Unit unit = next_utf8(text);
  length = unit.length;
  if (unit.kind != Utf8Kind::valid || length > 2) return -1;
  const auto first = static_cast<unsigned char>(text[0]);
  const uint32_t code_point =
      length == 1 ? first : (uint32_t{first} & 0x1F) << 6 | (static_cast<unsigned char>(text[1]) & 0x3F);
  return code_point < alphabet_size ? alphabet().byte_of[code_point] : -1;
}

}  // namespace

std::string_view byte_level_character(unsigned char byte) {
  return alphabet().character[byte];
}

std::string bytes_of_token(std::string_view token) {
  std::string bytes;
  size_t length = 0;
  for (size_t at = 0; at < token.size(); at += length) {
    const int byte = byte_at(token.substr(at), length);
    if (byte < 0) return std::string(token);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace canopy

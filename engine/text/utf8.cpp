#include "engine/text/utf8.h"

namespace canopy {
namespace {

// The continuation of a lead byte: the number of bytes, and the range of the first of them. The ranges exclude overlong
// forms (E0, F0), surrogates (ED) and values over U+10FFFF (F4).
struct Lead {
  size_t length = 0;  // of the whole character; 0: not a lead byte
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte >= 0xC2 && byte <= 0xDF) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Unit next_utf8(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return {Utf8Kind::invalid, 1};
  unsigned char low = lead.low;
  unsigned char high = lead.high;
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Kind::incomplete, i};
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < low || byte > high) return {Utf8Kind::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Kind::valid, lead.length};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Unit unit = next_utf8(text.substr(at));
    if (unit.kind != Utf8Kind::valid) break;
    at += unit.length;
  }
  return at;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    out.append(replacement_character);
    text.remove_prefix(next_utf8(text).length);
  }
  return out;
}

}  // namespace canopy

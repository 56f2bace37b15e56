#include "engine/base/printable.h"

#include <cstdint>
#include <cstdio>

#include "engine/base/text_encoding.h"

namespace canopy {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::string_view ellipsis = "\xe2\x80\xa6";     // …

bool is_hostile(char32_t code) {
  const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
  return code < 0x20 || within(0x7f, 0x9f)                        // control characters
         || within(0x2028, 0x2029)                                // line and paragraph separator
         || code == 0x061c || within(0x200e, 0x200f)              // bidirectional marks
         || within(0x202a, 0x202e) || within(0x2066, 0x2069)      // bidirectional overrides and isolates
         || within(0xfff9, 0xfffb) || within(0xe0000, 0xe007f)    // interlinear and tag characters: invisible text
         || within(0xfdd0, 0xfdef) || (code & 0xfffe) == 0xfffe;  // noncharacters
}

std::string escaped(char32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  char text[16];
  std::snprintf(text, sizeof text, code < 0x100 ? "\\x%02x" : "\\u%04x", static_cast<unsigned>(code));
  return text;
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes, LineBreaks line_breaks) {
  std::string result;
  size_t cut = 0;  // where to cut so that the ellipsis still fits
  while (!text.empty()) {
    const DecodedCharacter next = decode_first(text);
    const bool kept_break = line_breaks == LineBreaks::keep && (next.code == '\n' || next.code == '\t');
    if (!next.valid) {
      result += replacement;
    } else if (is_hostile(next.code) && !kept_break) {
      result += escaped(next.code);
    } else {
      result += text.substr(0, next.length);
    }
    if (result.size() > max_bytes) {
      result.resize(cut);
      if (max_bytes >= ellipsis.size()) result += ellipsis;
      return result;
    }
    if (result.size() + ellipsis.size() <= max_bytes) cut = result.size();
    text.remove_prefix(next.length);
  }
  return result;
}

}  // namespace canopy

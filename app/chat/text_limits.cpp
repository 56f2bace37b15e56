#include "app/chat/text_limits.h"

#include <cstdint>
#include <vector>

namespace canopy::app {
namespace {

/// The kind of script of a character, for a sentence about missing fonts.
const char* script_of(uint32_t c) {
  struct Range {
    uint32_t first, last;
    const char* name;
  };
  static constexpr Range kRanges[] = {
      {0x0370, 0x03FF, "Greek"},     {0x0400, 0x052F, "Cyrillic"}, {0x0530, 0x058F, "Armenian"},
      {0x0590, 0x05FF, "Hebrew"},    {0x0600, 0x08FF, "Arabic"},   {0x0900, 0x0DFF, "Indian scripts"},
      {0x0E00, 0x0E7F, "Thai"},      {0x1100, 0x11FF, "Korean"},   {0x2190, 0x2BFF, "symbols"},
      {0x2E80, 0x303F, "Chinese"},   {0x3040, 0x30FF, "Japanese"}, {0x3100, 0x9FFF, "Chinese"},
      {0xAC00, 0xD7AF, "Korean"},    {0xF900, 0xFAFF, "Chinese"},  {0x1F000, 0x1FAFF, "emoji"},
      {0x20000, 0x3FFFF, "Chinese"},
  };
  for (const Range& range : kRanges)
    if (c >= range.first && c <= range.last) return range.name;
  return "some characters";
}

}  // namespace

void note_text_limits(const MessageBody& body, std::string& note) {
  if (!note.empty()) return;
  const std::vector<uint32_t> missing = body.missing();
  if (!missing.empty()) {
    const char* script = script_of(missing.front());
    note = std::string("No font for ") + script +
           " is installed: these characters show as boxes. Install one, e.g. fonts-noto, and start again.";
  } else if (body.unshaped()) {
    note = "Joined and right-to-left scripts are shown letter by letter, from left to right. Copied text is right.";
  }
}

}  // namespace canopy::app

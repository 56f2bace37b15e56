#include "app/layout/token_label.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/printable.h"
#include "engine/text/utf8.h"

namespace canopy::app {
namespace {

constexpr std::string_view kEllipsis = "\u2026";
constexpr size_t kMostBytes = 4096;  // of a token; no label needs more

/// Removes spaces at both ends, unless there is nothing else.
std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return text;
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

void append_blanks(std::string& label, size_t count, bool alone) {
  if (count == 1 && !alone) {
    label += ' ';
    return;
  }
  label += "\u00b7";
  if (count > 1) label += "\u00d7" + std::to_string(count);
}

/// The number of bytes at the front that form no valid UTF-8 character.
size_t broken_front(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Unit unit = next_utf8(text.substr(length));
    if (unit.kind == Utf8Kind::valid) break;
    length += unit.length;
  }
  return length;
}

}  // namespace

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string shortened(std::string_view text, size_t count) {
  if (characters(text) <= count) return std::string(text);
  size_t end = 0;
  for (size_t kept = 0; kept + 1 < count; ++kept) end += next_utf8(text.substr(end)).length;
  return std::string(text.substr(0, end)) + std::string(kEllipsis);
}

std::string token_bytes(std::string_view bytes, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(bytes.size(), most); ++i) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "%s%02X", i > 0 ? " " : "", static_cast<unsigned>(static_cast<uint8_t>(bytes[i])));
    out += hex;
  }
  if (bytes.size() > most) out += " " + std::string(kEllipsis);
  return out;
}

std::string token_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token, size_t longest) {
  if (!token) return "?";
  if (!piece || piece->bytes.empty()) return "#" + std::to_string(*token);
  std::string_view text = trimmed(piece->bytes.substr(0, kMostBytes));
  const bool blank = text.find_first_not_of(' ') == std::string_view::npos;
  std::string label;
  while (!text.empty()) {
    if (text.front() == ' ') {
      const size_t run = std::min(text.find_first_not_of(' '), text.size());
      append_blanks(label, run, blank);
      text.remove_prefix(run);
    } else if (const size_t broken = broken_front(text); broken > 0) {
      label += "\u2039" + token_bytes(text.substr(0, broken)) + "\u203a";
      text.remove_prefix(broken);
    } else {
      const size_t length = next_utf8(text).length;
      label += printable(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return shortened(label, longest);
}

std::string tree_label(std::optional<trace::Piece> piece, std::optional<uint32_t> token) {
  if (!token || !piece || piece->bytes.find('\n') == std::string_view::npos) return token_label(piece, token);
  std::string label;
  std::string_view text = piece->bytes.substr(0, kMostBytes);
  while (!text.empty()) {
    const size_t line = std::min(text.find('\n'), text.size());
    const std::string_view words = text.substr(0, line);
    if (words.find_first_not_of(' ') == std::string_view::npos) {
      if (!words.empty()) label += std::to_string(words.size());
    } else {
      label += token_label(trace::Piece{words, piece->control}, token);
    }
    text.remove_prefix(line);
    if (text.empty()) break;
    label += kReturnSign;
    text.remove_prefix(1);
  }
  return shortened(label, kLongestLabel);
}

}  // namespace canopy::app

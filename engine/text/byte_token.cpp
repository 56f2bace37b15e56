#include "engine/text/byte_token.h"

#include <algorithm>

namespace canopy {

std::string text_of_marked(std::string_view token) {
  std::string text;
  for (size_t at = 0; at < token.size();) {
    const size_t mark = std::min(token.find(word_mark, at), token.size());
    text.append(token.substr(at, mark - at));
    if (mark < token.size()) text += ' ';
    at = mark + word_mark.size();
  }
  return text;
}

std::optional<uint32_t> byte_of_token(std::string_view token) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const size_t high = digits.find(token[3]);
  const size_t low = digits.find(token[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint32_t>(high << 4 | low);
}

}  // namespace canopy

#include "engine/base/base64.h"

#include <algorithm>

namespace canopy {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::span<const uint8_t> bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t at = 0; at < text.size(); at += 4) {
    const bool is_last = at + 4 == text.size();
    const std::string_view four = text.substr(at, 4);
    const size_t padding = is_last ? 4 - std::min<size_t>(four.find_last_not_of('=') + 1, 4) : 0;
    if (padding > 2) return std::nullopt;
    uint32_t word = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t digit = i + padding < 4 ? digits.find(four[i]) : 0;
      if (digit == std::string_view::npos) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t i = 0; i + padding < 3; ++i) bytes += static_cast<char>(word >> (16 - 8 * i));
  }
  return bytes;
}

}  // namespace canopy

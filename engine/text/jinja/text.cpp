#include "engine/text/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

namespace canopy::jinja {

Text::Text(std::string bytes, Origin origin)
    : bytes_(std::move(bytes)), origins_(bytes_.size(), static_cast<char>(origin)) {}

void Text::append(const Text& other) {
  bytes_ += other.bytes_;
  origins_ += other.origins_;
}

void Text::append(const Text& other, size_t begin, size_t size) {
  bytes_.append(other.bytes_, begin, size);
  origins_.append(other.origins_, begin, size);
}

void Text::append(std::string_view bytes, Origin origin) {
  bytes_ += bytes;
  origins_.append(bytes.size(), static_cast<char>(origin));
}

Text Text::part(size_t begin, size_t size) const {
  Text part;
  if (begin < bytes_.size()) part.append(*this, begin, size);
  return part;
}

size_t Text::run_length(size_t at) const {
  const size_t end = origins_.find_first_not_of(origins_[at], at);
  return (end == std::string::npos ? origins_.size() : end) - at;
}

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  utf8proc_int32_t value = 0;
  const auto left = static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size() - at, 4));
  const utf8proc_ssize_t size = utf8proc_iterate(bytes + at, left, &value);
  if (size < 1) return {static_cast<unsigned char>(text[at]), 1, false};
  return {value, static_cast<size_t>(size), true};
}

std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  starts.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).size) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).size) ++count;
  return count;
}

std::string encode_utf8(int32_t code_point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const utf8proc_ssize_t size = utf8proc_encode_char(code_point, bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(std::max<utf8proc_ssize_t>(size, 0))};
}

bool is_space(int32_t code_point) {
  if (code_point < 0x80) {
    return code_point == ' ' || (code_point >= '\t' && code_point <= '\r') ||
           (code_point >= 0x1C && code_point <= 0x1F);
  }
  if (code_point == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_letter(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal_digit(int32_t code_point) {
  return utf8proc_category(code_point) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(int32_t code_point) {
  constexpr std::array<std::pair<int32_t, int32_t>, 13> others = {{{0xB2, 0xB3},
                                                                   {0xB9, 0xB9},
                                                                   {0x1369, 0x1371},
                                                                   {0x19DA, 0x19DA},
                                                                   {0x2070, 0x2070},
                                                                   {0x2074, 0x2079},
                                                                   {0x2080, 0x2089},
                                                                   {0x2460, 0x2468},
                                                                   {0x2474, 0x247C},
                                                                   {0x2488, 0x2490},
                                                                   {0x24EA, 0x24EA},
                                                                   {0x24F5, 0x24FD},
                                                                   {0x2776, 0x2792}}};
  return is_decimal_digit(code_point) || std::any_of(others.begin(), others.end(), [&](const auto& range) {
           return code_point >= range.first && code_point <= range.second;
         });
}

bool is_numeric(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_printable(int32_t code_point) {
  if (code_point == ' ') return true;
  const utf8proc_category_t category = utf8proc_category(code_point);
  return category != UTF8PROC_CATEGORY_CN && (category < UTF8PROC_CATEGORY_ZS || category > UTF8PROC_CATEGORY_CO);
}

}  // namespace canopy::jinja

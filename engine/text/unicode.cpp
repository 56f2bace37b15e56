#include "engine/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/text.h"

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

std::string Utf8Stream::push(std::string_view bytes) {
  held_.append(bytes);
  std::string_view rest = held_;
  std::string out;
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    out.append(rest.substr(0, valid));
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Unit unit = next_utf8(rest);
    if (unit.kind == Utf8Kind::incomplete) break;
    out.append(replacement_character);
    rest.remove_prefix(unit.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return out;
}

std::string Utf8Stream::finish() {
  return to_valid_utf8(std::exchange(held_, {}));
}

namespace {

constexpr utf8proc_int32_t kDotlessI = 0x131, kDotAbove = 0x307;

/// Characters that join the one before them to another letter: accents, Japanese sound marks, the later parts of a
/// Korean syllable.
bool joins(utf8proc_int32_t c) {
  return (c >= 0x300 && c <= 0x36F) || c == 0x3099 || c == 0x309A || (c >= 0x1160 && c <= 0x11FF);
}

bool is_mark(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class != 0;
}

utf8proc_int32_t code_at(std::string_view text, size_t at) {
  utf8proc_int32_t code = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                   static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  return code;
}

/// Adds the folded form of one character.
void fold_code(utf8proc_int32_t c, std::vector<utf8proc_int32_t>& out) {
  std::array<utf8proc_int32_t, 32> codes;
  int boundary = 0;
  constexpr auto how = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
  const utf8proc_ssize_t count = utf8proc_decompose_char(c, codes.data(), codes.size(), how, &boundary);
  if (count < 0 || count > static_cast<utf8proc_ssize_t>(codes.size())) return out.push_back(c);
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    const utf8proc_int32_t each = codes[static_cast<size_t>(i)] == kDotlessI ? 'i' : codes[static_cast<size_t>(i)];
    if (each == kDotAbove && !out.empty() && out.back() == 'i') continue;
    out.push_back(each);
  }
}

/// Brings marks into canonical order: by class, those of one class as they came.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (auto at = codes.begin(); at != codes.end();) {
    const auto first = std::find_if(at, codes.end(), is_mark);
    at = std::find_if_not(first, codes.end(), is_mark);
    std::stable_sort(first, at, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return utf8proc_get_property(a)->combining_class < utf8proc_get_property(b)->combining_class;
    });
  }
}

}  // namespace

FoldedText::FoldedText(std::string_view text) {
  folded_.reserve(text.size());
  std::vector<utf8proc_int32_t> codes;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80 && (at + 1 == text.size() || static_cast<unsigned char>(text[at + 1]) < 0x80)) {
      folded_ += first >= 'A' && first <= 'Z' ? static_cast<char>(first - 'A' + 'a') : static_cast<char>(first);
      ++at;
      continue;
    }
    // A character with the marks behind it, as these may have to change places.
    const size_t begin = at, folded_begin = folded_.size();
    size_t characters = 0;
    codes.clear();
    while (at < text.size()) {
      const Utf8Unit unit = next_utf8(text.substr(at));
      if (unit.kind != Utf8Kind::valid) break;
      const utf8proc_int32_t code = code_at(text, at);
      if (characters > 0 && !is_mark(code)) break;
      fold_code(code, codes);
      ++characters;
      at += unit.length;
    }
    if (characters == 0) {
      const Utf8Unit unit = next_utf8(text.substr(at));
      folded_.append(text, at, unit.length);
      at += unit.length;
      continue;
    }
    order_marks(codes);
    for (const utf8proc_int32_t each : codes) append_utf8(folded_, static_cast<char32_t>(each));
    if (characters != 1 || codes.size() != 1 || folded_.size() - folded_begin != at - begin)
      stretches_.push_back({folded_begin, folded_.size(), begin, at});
  }
}

size_t FoldedText::begin_of(size_t folded) const {
  const auto after = std::ranges::upper_bound(stretches_, folded, {}, &Stretch::folded_begin);
  if (after == stretches_.begin()) return folded;
  const Stretch& last = *(after - 1);
  return folded < last.folded_end ? last.begin : last.end + (folded - last.folded_end);
}

size_t FoldedText::end_of(size_t folded) const {
  const auto after = std::ranges::lower_bound(stretches_, folded, {}, &Stretch::folded_begin);
  if (after == stretches_.begin()) return folded;
  const Stretch& last = *(after - 1);
  return folded < last.folded_end ? last.end : last.end + (folded - last.folded_end);
}

std::optional<FoldedText::Hit> FoldedText::find(const FoldedText& wanted, size_t from) const {
  if (wanted.folded_.empty()) return std::nullopt;
  for (size_t at = folded_.find(wanted.folded_, from); at != std::string::npos;
       at = folded_.find(wanted.folded_, at + 1)) {
    const size_t end = at + wanted.folded_.size();
    if (end < folded_.size() && static_cast<unsigned char>(folded_[end]) >= 0x80 && joins(code_at(folded_, end)))
      continue;
    return Hit{begin_of(at), end_of(end), end};
  }
  return std::nullopt;
}

std::string fold_case(std::string_view text) {
  return FoldedText(text).folded();
}

}  // namespace canopy

#include "app/platform/text_order.h"

#include <fribidi.h>
#include <utf8proc.h>

#include <algorithm>

namespace canopy::app {
namespace {

constexpr char32_t kNotUtf8 = 0xFFFD;
/// Characters before it are read from left to right and never shaped; it begins with the byte 0xD6 in UTF-8.
constexpr char32_t kFirstOther = 0x0590;
constexpr unsigned char kFirstOtherByte = 0xD6;

bool is_direction_mark(char32_t c) {
  return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

bool turns(char32_t c) {
  if (c < kFirstOther) return false;
  const FriBidiCharType type = fribidi_get_bidi_type(static_cast<FriBidiChar>(c));
  return FRIBIDI_IS_RTL(type) || type == FRIBIDI_TYPE_AN || FRIBIDI_IS_EXPLICIT(type) || FRIBIDI_IS_ISOLATE(type);
}

/// The levels of one paragraph. False where all of it is from left to right.
bool find_paragraph(std::string_view text, size_t begin, size_t end, ParagraphWay way, TextOrder& order) {
  std::vector<FriBidiChar> characters;
  std::vector<size_t> at;
  bool any = false;
  for (size_t i = begin; i < end;) {
    Character each = character_at(text, i);
    if (way == ParagraphWay::code && is_direction_mark(each.c)) each.c = 0x200B;
    any |= turns(each.c);
    characters.push_back(static_cast<FriBidiChar>(each.c));
    at.push_back(i);
    i += each.length;
  }
  if (!any) return false;
  const auto count = static_cast<FriBidiStrIndex>(characters.size());
  std::vector<FriBidiCharType> types(characters.size());
  std::vector<FriBidiBracketType> brackets(characters.size());
  std::vector<FriBidiLevel> levels(characters.size());
  fribidi_get_bidi_types(characters.data(), count, types.data());
  fribidi_get_bracket_types(characters.data(), count, types.data(), brackets.data());
  FriBidiParType base = way == ParagraphWay::code ? FRIBIDI_PAR_LTR : FRIBIDI_PAR_ON;
  if (fribidi_get_par_embedding_levels_ex(types.data(), brackets.data(), count, &base, levels.data()) == 0)
    return false;  // out of memory: as it is stored
  order.levels.resize(text.size(), 0);
  order.base.resize(text.size(), 0);
  for (size_t i = 0; i < at.size(); ++i) {
    const size_t next = i + 1 < at.size() ? at[i + 1] : end;
    for (size_t byte = at[i]; byte < next; ++byte) {
      order.levels[byte] = static_cast<uint8_t>(std::max<int>(0, levels[i]));
      order.base[byte] = FRIBIDI_IS_RTL(base) ? 1 : 0;
    }
  }
  if (end < text.size()) order.base[end] = FRIBIDI_IS_RTL(base) ? 1 : 0;  // the line's end is of the paragraph too
  return true;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

}  // namespace

Character character_at(std::string_view text, size_t at) {
  utf8proc_int32_t value = 0;
  const utf8proc_ssize_t length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(4, text.size() - at)), &value);
  if (length <= 0) return {kNotUtf8, 1};
  return {static_cast<char32_t>(value), static_cast<uint32_t>(length)};
}

bool needs_shaping(char32_t c) {
  return (c >= 0x0590 && c <= 0x109F) || (c >= 0x1100 && c <= 0x11FF) || (c >= 0x1700 && c <= 0x18AF) ||
         (c >= 0x1900 && c <= 0x1CFF) || (c >= 0xA800 && c <= 0xABFF) || (c >= 0xFB1D && c <= 0xFDFF) ||
         (c >= 0xFE70 && c <= 0xFEFE) || (c >= 0x10A00 && c <= 0x11FFF) || (c >= 0x1E800 && c <= 0x1E95F) ||
         (c >= 0x1F000 && c <= 0x1FAFF);
}

bool stays_with_letter(char32_t c) {
  return c == 0x200C || c == 0x200D || (c >= 0xFE00 && c <= 0xFE0F) || c == 0x20E3 || (c >= 0x1F3FB && c <= 0x1F3FF) ||
         (c >= 0xE0020 && c <= 0xE007F) || (c >= 0xE0100 && c <= 0xE01EF) ||
         utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_MN;
}

bool is_invisible(char32_t c) {
  return c < 0x20 || c == 0x00AD || c == 0x061C || c == 0x180E || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || (c >= 0xFE00 && c <= 0xFE0F) || c == 0xFEFF ||
         (c >= 0xE0000 && c <= 0xE0FFF);
}

bool is_private(char32_t c) {
  return (c >= 0xE000 && c <= 0xF8FF) || c >= 0xF0000;
}

bool is_space(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ZS;
}

char32_t mirrored(char32_t c) {
  FriBidiChar other = 0;
  return fribidi_get_mirror_char(static_cast<FriBidiChar>(c), &other) ? static_cast<char32_t>(other) : c;
}

void find_order(std::string_view text, size_t begin, size_t end, ParagraphWay way, TextOrder& order) {
  for (size_t at = begin; at < end;) {
    const size_t stop = std::min(text.find('\n', at), end);
    const bool other = std::any_of(text.begin() + static_cast<long>(at), text.begin() + static_cast<long>(stop),
                                   [](char c) { return static_cast<unsigned char>(c) >= kFirstOtherByte; });
    if (other) find_paragraph(text, at, stop, way, order);
    at = stop + 1;
  }
}

TextOrder order_of(std::string_view text, ParagraphWay way) {
  TextOrder order;
  find_order(text, 0, text.size(), way, order);
  return order;
}

std::vector<OrderedRun> ordered_runs(std::string_view text, const TextOrder& order, uint32_t begin, uint32_t end) {
  if (begin >= end) return {};
  if (order.plain()) return {{begin, end, false}};
  // Blanks at the end of a line stand where the paragraph ends (rule L1).
  uint32_t letters_end = end;
  while (letters_end > begin && is_blank(text[letters_end - 1])) --letters_end;
  const uint8_t base = order.rtl_paragraph(begin) ? 1 : 0;
  const auto level = [&](uint32_t byte) { return byte < letters_end ? order.levels[byte] : base; };
  std::vector<OrderedRun> runs;
  std::vector<uint8_t> levels;
  for (uint32_t at = begin; at < end;) {
    uint32_t stop = at + 1;
    while (stop < end && level(stop) == level(at)) ++stop;
    runs.push_back({at, stop, level(at) % 2 == 1});
    levels.push_back(level(at));
    at = stop;
  }
  // From the deepest level down, what is inside of it is turned round (rule L2).
  const uint8_t most = *std::max_element(levels.begin(), levels.end());
  for (uint8_t depth = most; depth > 0; --depth)
    for (size_t i = 0; i < runs.size(); ++i) {
      size_t stop = i;
      while (stop < runs.size() && levels[stop] >= depth) ++stop;
      if (stop == i) continue;
      std::reverse(runs.begin() + static_cast<long>(i), runs.begin() + static_cast<long>(stop));
      std::reverse(levels.begin() + static_cast<long>(i), levels.begin() + static_cast<long>(stop));
      i = stop;
    }
  return runs;
}

namespace {

/// Whether f says so of a character that may be read or drawn otherwise than Latin.
template <class F>
bool any_other(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < kFirstOtherByte) {
      ++at;
      continue;
    }
    const Character each = character_at(text, at);
    if (f(each.c)) return true;
    at += each.length;
  }
  return false;
}

}  // namespace

bool is_plain(std::string_view text) {
  return !any_other(
      text, [](char32_t c) { return needs_shaping(c) || turns(c) || c == 0x200D || c == 0x20E3 || c == 0xFE0F; });
}

bool reads_unlike_typed(std::string_view text) {
  return any_other(text, [](char32_t c) {
    const bool fine_apart = (c >= 0x0E00 && c <= 0x0EFF) || c >= 0x1F000;  // Thai, Lao, emoji
    return turns(c) || (needs_shaping(c) && !fine_apart);
  });
}

}  // namespace canopy::app

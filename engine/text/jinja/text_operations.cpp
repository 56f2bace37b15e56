#include "engine/text/jinja/text_operations.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "engine/text/jinja/operations.h"

namespace canopy::jinja {
namespace {

// A span of bytes in a text.
struct Range {
  size_t begin = 0, end = 0;
};

bool is_stripped(std::string_view text, const CodePoint& c, size_t at, const Text* characters) {
  if (characters == nullptr) return c.valid && is_space(c.value);
  return characters->bytes().find(text.substr(at, c.size)) != std::string_view::npos;
}

// Where the character begins that ends at `end`, not below `floor`.
size_t previous_start(std::string_view text, size_t floor, size_t end) {
  for (size_t size = 2; size <= 4 && size <= end - floor; ++size) {
    const CodePoint c = code_point_at(text, end - size);
    if (c.valid && c.size == size) return end - size;
  }
  return end - 1;
}

Range stripped(Context& context, const Text& text, const Text* characters, Sides sides) {
  const std::string_view bytes = text.bytes();
  const size_t cost = 8 + (characters == nullptr ? 0 : characters->size());  // of looking at one character
  Range range{0, bytes.size()};
  while (sides != Sides::right && range.begin < range.end) {
    const CodePoint c = code_point_at(bytes, range.begin);
    context.use_text(cost);
    if (!is_stripped(bytes, c, range.begin, characters)) break;
    range.begin += c.size;
  }
  while (sides != Sides::left && range.begin < range.end) {
    const size_t at = previous_start(bytes, range.begin, range.end);
    context.use_text(cost);
    if (!is_stripped(bytes, code_point_at(bytes, at), at, characters)) break;
    range.end = at;
  }
  return range;
}

Value cut(Context& context, const Text& text, Range range) {
  context.step();
  TextBuilder builder(context);
  builder.add(text, range.begin, range.end - range.begin);
  return builder.take();
}

// The words between white space.
std::vector<Range> words_of(Context& context, std::string_view text) {
  context.use_text(text.size());
  std::vector<Range> words;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool space = c.valid && is_space(c.value);
    if (!space && !in_word) words.push_back({at, at});
    if (!space) words.back().end = at + c.size;
    in_word = !space;
    at += c.size;
  }
  context.step(words.size());
  return words;
}

// The stretches between separators, all of them.
std::vector<Range> fields_of(Context& context, std::string_view text, std::string_view separator) {
  if (separator.empty()) throw Failure("A string is split at an empty separator.");
  std::vector<Range> fields;
  size_t begin = 0;
  while (true) {
    context.step();
    const size_t found = find_text(context, text, separator, begin);
    fields.push_back({begin, std::min(found, text.size())});
    if (found == std::string_view::npos) return fields;
    begin = found + separator.size();
  }
}

// Characters whose upper case has several characters (SpecialCasing.txt of Unicode), and how they begin a word.
struct SpecialCase {
  int32_t code_point;
  std::string_view upper, title;
};
constexpr SpecialCase special_cases[] = {
    {0x00DF, "SS", "Ss"},
    {0x0149, "\u02BCN", "\u02BCN"},
    {0x01F0, "J\u030C", "J\u030C"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03B0, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1E96, "H\u0331", "H\u0331"},
    {0x1E97, "T\u0308", "T\u0308"},
    {0x1E98, "W\u030A", "W\u030A"},
    {0x1E99, "Y\u030A", "Y\u030A"},
    {0x1E9A, "A\u02BE", "A\u02BE"},
    {0x1F50, "\u03A5\u0313", "\u03A5\u0313"},
    {0x1F52, "\u03A5\u0313\u0300", "\u03A5\u0313\u0300"},
    {0x1F54, "\u03A5\u0313\u0301", "\u03A5\u0313\u0301"},
    {0x1F56, "\u03A5\u0313\u0342", "\u03A5\u0313\u0342"},
    {0x1F80, "\u1F08\u0399", "\u1F88"},
    {0x1F81, "\u1F09\u0399", "\u1F89"},
    {0x1F82, "\u1F0A\u0399", "\u1F8A"},
    {0x1F83, "\u1F0B\u0399", "\u1F8B"},
    {0x1F84, "\u1F0C\u0399", "\u1F8C"},
    {0x1F85, "\u1F0D\u0399", "\u1F8D"},
    {0x1F86, "\u1F0E\u0399", "\u1F8E"},
    {0x1F87, "\u1F0F\u0399", "\u1F8F"},
    {0x1F88, "\u1F08\u0399", "\u1F88"},
    {0x1F89, "\u1F09\u0399", "\u1F89"},
    {0x1F8A, "\u1F0A\u0399", "\u1F8A"},
    {0x1F8B, "\u1F0B\u0399", "\u1F8B"},
    {0x1F8C, "\u1F0C\u0399", "\u1F8C"},
    {0x1F8D, "\u1F0D\u0399", "\u1F8D"},
    {0x1F8E, "\u1F0E\u0399", "\u1F8E"},
    {0x1F8F, "\u1F0F\u0399", "\u1F8F"},
    {0x1F90, "\u1F28\u0399", "\u1F98"},
    {0x1F91, "\u1F29\u0399", "\u1F99"},
    {0x1F92, "\u1F2A\u0399", "\u1F9A"},
    {0x1F93, "\u1F2B\u0399", "\u1F9B"},
    {0x1F94, "\u1F2C\u0399", "\u1F9C"},
    {0x1F95, "\u1F2D\u0399", "\u1F9D"},
    {0x1F96, "\u1F2E\u0399", "\u1F9E"},
    {0x1F97, "\u1F2F\u0399", "\u1F9F"},
    {0x1F98, "\u1F28\u0399", "\u1F98"},
    {0x1F99, "\u1F29\u0399", "\u1F99"},
    {0x1F9A, "\u1F2A\u0399", "\u1F9A"},
    {0x1F9B, "\u1F2B\u0399", "\u1F9B"},
    {0x1F9C, "\u1F2C\u0399", "\u1F9C"},
    {0x1F9D, "\u1F2D\u0399", "\u1F9D"},
    {0x1F9E, "\u1F2E\u0399", "\u1F9E"},
    {0x1F9F, "\u1F2F\u0399", "\u1F9F"},
    {0x1FA0, "\u1F68\u0399", "\u1FA8"},
    {0x1FA1, "\u1F69\u0399", "\u1FA9"},
    {0x1FA2, "\u1F6A\u0399", "\u1FAA"},
    {0x1FA3, "\u1F6B\u0399", "\u1FAB"},
    {0x1FA4, "\u1F6C\u0399", "\u1FAC"},
    {0x1FA5, "\u1F6D\u0399", "\u1FAD"},
    {0x1FA6, "\u1F6E\u0399", "\u1FAE"},
    {0x1FA7, "\u1F6F\u0399", "\u1FAF"},
    {0x1FA8, "\u1F68\u0399", "\u1FA8"},
    {0x1FA9, "\u1F69\u0399", "\u1FA9"},
    {0x1FAA, "\u1F6A\u0399", "\u1FAA"},
    {0x1FAB, "\u1F6B\u0399", "\u1FAB"},
    {0x1FAC, "\u1F6C\u0399", "\u1FAC"},
    {0x1FAD, "\u1F6D\u0399", "\u1FAD"},
    {0x1FAE, "\u1F6E\u0399", "\u1FAE"},
    {0x1FAF, "\u1F6F\u0399", "\u1FAF"},
    {0x1FB2, "\u1FBA\u0399", "\u1FBA\u0345"},
    {0x1FB3, "\u0391\u0399", "\u1FBC"},
    {0x1FB4, "\u0386\u0399", "\u0386\u0345"},
    {0x1FB6, "\u0391\u0342", "\u0391\u0342"},
    {0x1FB7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"},
    {0x1FBC, "\u0391\u0399", "\u1FBC"},
    {0x1FC2, "\u1FCA\u0399", "\u1FCA\u0345"},
    {0x1FC3, "\u0397\u0399", "\u1FCC"},
    {0x1FC4, "\u0389\u0399", "\u0389\u0345"},
    {0x1FC6, "\u0397\u0342", "\u0397\u0342"},
    {0x1FC7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"},
    {0x1FCC, "\u0397\u0399", "\u1FCC"},
    {0x1FD2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"},
    {0x1FD3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1FD6, "\u0399\u0342", "\u0399\u0342"},
    {0x1FD7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1FE2, "\u03A5\u0308\u0300", "\u03A5\u0308\u0300"},
    {0x1FE3, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301"},
    {0x1FE4, "\u03A1\u0313", "\u03A1\u0313"},
    {0x1FE6, "\u03A5\u0342", "\u03A5\u0342"},
    {0x1FE7, "\u03A5\u0308\u0342", "\u03A5\u0308\u0342"},
    {0x1FF2, "\u1FFA\u0399", "\u1FFA\u0345"},
    {0x1FF3, "\u03A9\u0399", "\u1FFC"},
    {0x1FF4, "\u038F\u0399", "\u038F\u0345"},
    {0x1FF6, "\u03A9\u0342", "\u03A9\u0342"},
    {0x1FF7, "\u03A9\u0342\u0399", "\u03A9\u0342\u0345"},
    {0x1FFC, "\u03A9\u0399", "\u1FFC"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
    {0xFB13, "\u0544\u0546", "\u0544\u0576"},
    {0xFB14, "\u0544\u0535", "\u0544\u0565"},
    {0xFB15, "\u0544\u053B", "\u0544\u056B"},
    {0xFB16, "\u054E\u0546", "\u054E\u0576"},
    {0xFB17, "\u0544\u053D", "\u0544\u056D"},
};

const SpecialCase* special_case(int32_t c) {
  const auto* found = std::lower_bound(std::begin(special_cases), std::end(special_cases), c,
                                       [](const SpecialCase& row, int32_t sought) { return row.code_point < sought; });
  return found != std::end(special_cases) && found->code_point == c ? found : nullptr;
}

std::string upper_of(int32_t c) {
  if (c < 0x80) return std::string(1, static_cast<char>(utf8proc_toupper(c)));
  const SpecialCase* special = special_case(c);
  return special != nullptr ? std::string(special->upper) : encode_utf8(utf8proc_toupper(c));
}

std::string title_of(int32_t c) {
  if (c < 0x80) return std::string(1, static_cast<char>(utf8proc_toupper(c)));
  const SpecialCase* special = special_case(c);
  return special != nullptr ? std::string(special->title) : encode_utf8(utf8proc_totitle(c));
}

bool has_case(int32_t c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

// The small letter for the one at `at`; a sigma that ends a word has a form of its own.
std::string lower_of(int32_t c, std::string_view text, size_t at) {
  if (c < 0x80) return std::string(1, static_cast<char>(utf8proc_tolower(c)));
  if (c == 0x130) return "i\u0307";
  if (c != 0x3A3) return encode_utf8(utf8proc_tolower(c));
  const size_t next = at + 2;
  const bool ends = at > 0 && has_case(code_point_at(text, previous_start(text, 0, at)).value) &&
                    (next >= text.size() || !has_case(code_point_at(text, next).value));
  return ends ? "\u03C2" : "\u03C3";
}

// Maps every character by its place: map(code point, where it begins) gives what stands for it.
template <class Map>
Text mapped(Context& context, const Text& text, Map map) {
  const std::string_view bytes = text.bytes();
  TextBuilder builder(context);
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    if (c.valid) {
      builder.add(map(c.value, at), text.origin(at));
    } else {
      builder.add(text, at, c.size);
    }
    at += c.size;
  }
  Text result = builder.take();
  result.set_safe(text.is_safe());
  return result;
}

}  // namespace

Text strip(Context& context, const Text& text, const Text* characters, Sides sides) {
  const Range range = stripped(context, text, characters, sides);
  TextBuilder builder(context);
  builder.add(text, range.begin, range.end - range.begin);
  Text result = builder.take();
  result.set_safe(text.is_safe());
  return result;
}

Text replace(Context& context, const Text& text, const Text& from, const Text& to, int64_t limit) {
  TextBuilder builder(context);
  size_t copied = 0;
  size_t search = 0;
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    context.step();
    const size_t found = find_text(context, text.bytes(), from.bytes(), search);
    if (found == std::string_view::npos) break;
    builder.add(text, copied, found - copied);
    builder.add(to);
    copied = found + from.size();
    search = copied;
    if (from.empty()) {  // Python puts `to` in front of every character and at the end
      if (search == text.size()) break;
      search += code_point_at(text.bytes(), search).size;
    }
  }
  builder.add(text, copied, text.size() - copied);
  return builder.take();
}

std::vector<Value> split(Context& context, const Text& text, const Text* separator, int64_t limit) {
  auto ranges =
      separator == nullptr ? words_of(context, text.bytes()) : fields_of(context, text.bytes(), separator->bytes());
  if (limit >= 0 && ranges.size() >= static_cast<size_t>(limit) + 1) {
    ranges.resize(static_cast<size_t>(limit) + 1);
    ranges.back().end = text.size();  // white space at the end too, as in Python
  }
  std::vector<Value> parts;
  for (const Range& range : ranges) parts.push_back(cut(context, text, range));
  return parts;
}

std::vector<Value> split_from_right(Context& context, const Text& text, const Text* separator, int64_t limit) {
  auto ranges =
      separator == nullptr ? words_of(context, text.bytes()) : fields_of(context, text.bytes(), separator->bytes());
  if (limit >= 0 && ranges.size() >= static_cast<size_t>(limit) + 1) {
    const size_t merged = ranges.size() - static_cast<size_t>(limit) - 1;
    ranges.erase(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(merged));
    ranges.front().begin = 0;  // white space at the beginning too, as in Python
  }
  std::vector<Value> parts;
  for (const Range& range : ranges) parts.push_back(cut(context, text, range));
  return parts;
}

std::vector<Value> split_lines(Context& context, const Text& text, bool keep_ends) {
  const std::string_view bytes = text.bytes();
  context.use_text(bytes.size());
  std::vector<Value> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = begin, next = bytes.size();
    for (; end < bytes.size(); ++end) {
      // Bytes behind the first of a character are none of these.
      const std::string_view rest = bytes.substr(end, 3);
      const bool ascii = std::string_view("\n\r\v\f\x1c\x1d\x1e").find(rest[0]) != std::string_view::npos;
      const size_t size = ascii                        ? (rest.starts_with("\r\n") ? 2 : 1)
                          : rest.starts_with("\u0085") ? 2
                          : rest.starts_with("\u2028") || rest.starts_with("\u2029") ? 3
                                                                                     : 0;
      if (size == 0) continue;
      next = end + size;
      break;
    }
    lines.push_back(cut(context, text, {begin, keep_ends ? next : end}));
    begin = next;
  }
  return lines;
}

Text escaped(Context& context, const Text& text) {
  if (text.is_safe()) return text;
  TextBuilder builder(context);
  const std::string_view bytes = text.bytes();
  for (size_t at = 0; at < bytes.size();) {
    const size_t special = std::min(bytes.find_first_of("&<>'\"", at), bytes.size());
    builder.add(text, at, special - at);
    if (special == bytes.size()) break;
    const char c = bytes[special];
    builder.add(c == '&'   ? "&amp;"
                : c == '<' ? "&lt;"
                : c == '>' ? "&gt;"
                : c == '"' ? "&#34;"
                           : "&#39;",
                text.origin(special));
    at = special + 1;
  }
  Text result = builder.take();
  result.set_safe(true);
  return result;
}

Text only_ascii(Context& context, const Text& text) {
  return mapped(context, text, [](int32_t c, size_t) {
    if (c < 0x80) return std::string(1, static_cast<char>(c));
    std::array<char, 16> buffer{};
    std::snprintf(buffer.data(), buffer.size(),
                  c > 0xFFFF ? "\\U%08x"
                  : c > 0xFF ? "\\u%04x"
                             : "\\x%02x",
                  static_cast<unsigned>(c));
    return std::string(buffer.data());
  });
}

Text upper(Context& context, const Text& text) {
  return mapped(context, text, [](int32_t c, size_t) { return upper_of(c); });
}

Text lower(Context& context, const Text& text) {
  return mapped(context, text, [&](int32_t c, size_t at) { return lower_of(c, text.bytes(), at); });
}

Text swap_case(Context& context, const Text& text) {
  return mapped(context, text, [&](int32_t c, size_t at) {
    const utf8proc_category_t category = utf8proc_category(c);
    if (category == UTF8PROC_CATEGORY_LU) return lower_of(c, text.bytes(), at);
    return category == UTF8PROC_CATEGORY_LL ? upper_of(c) : encode_utf8(c);
  });
}

Text fold_case(Context& context, const Text& text) {
  return mapped(context, text, [](int32_t c, size_t) {
    std::array<utf8proc_int32_t, 8> folded{};
    int last_class = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        c, folded.data(), static_cast<utf8proc_ssize_t>(folded.size()), UTF8PROC_CASEFOLD, &last_class);
    std::string result;
    for (utf8proc_ssize_t i = 0; i < count; ++i) result += encode_utf8(folded[static_cast<size_t>(i)]);
    return count < 1 ? encode_utf8(c) : result;
  });
}

Text capitalize(Context& context, const Text& text) {
  return mapped(context, text,
                [&](int32_t c, size_t at) { return at == 0 ? title_of(c) : lower_of(c, text.bytes(), at); });
}

Text title(Context& context, const Text& text, WordStart rule) {
  bool at_start = true;
  Text result = mapped(context, text, [&](int32_t c, size_t at) {
    constexpr std::string_view openers = "-({[<";
    const bool python = rule == WordStart::after_what_has_no_case;
    const bool breaks = python
                            ? !has_case(c)
                            : is_space(c) || (c < 0x80 && openers.find(static_cast<char>(c)) != std::string_view::npos);
    const bool starts = std::exchange(at_start, breaks);
    if (!python && breaks) return encode_utf8(c);
    return starts ? (python ? title_of(c) : upper_of(c)) : lower_of(c, text.bytes(), at);
  });
  if (rule == WordStart::after_space_or_bracket) result.set_safe(false);
  return result;
}

bool is_case(Context& context, const Text& text, Case wanted) {
  context.use_text(text.size());
  bool any = false, behind_letter = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const utf8proc_category_t category = c.valid ? utf8proc_category(c.value) : UTF8PROC_CATEGORY_CN;
    const bool small = category == UTF8PROC_CATEGORY_LL;
    const bool large = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
    if (wanted == Case::lower && large) return false;
    if (wanted == Case::upper && (small || category == UTF8PROC_CATEGORY_LT)) return false;
    if (wanted == Case::title && (behind_letter ? large : small)) return false;
    behind_letter = small || large;
    any = any || behind_letter;
    at += c.size;
  }
  return any;
}

Text padded(Context& context, const Text& text, int64_t width, const Text& fill, Align align) {
  if (count_characters(fill.bytes()) != 1)
    throw Failure("A text is padded with one character, not with several or none.");
  context.use_text(text.size());
  const auto size = static_cast<int64_t>(count_characters(text.bytes()));
  const int64_t missing = width > size ? width - size : 0;
  // Python puts the odd one to the left where the width is odd too.
  const int64_t left = align == Align::left ? 0 : align == Align::right ? missing : missing / 2 + (missing & width & 1);
  TextBuilder builder(context);
  constexpr int64_t block_size = 1024;
  Text block;
  for (int64_t i = std::min(missing, block_size); i > 0; --i) block.append(fill);
  const auto fill_up = [&](int64_t count) {
    for (; count >= block_size; count -= block_size) builder.add(block);
    builder.add(block, 0, static_cast<size_t>(count) * fill.size());
  };
  fill_up(left);
  builder.add(text);
  fill_up(missing - left);
  Text result = builder.take();
  result.set_safe(text.is_safe());
  return result;
}

}  // namespace canopy::jinja

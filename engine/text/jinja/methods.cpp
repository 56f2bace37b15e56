#include "engine/text/jinja/methods.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "engine/text/jinja/format_text.h"
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

namespace {

struct Method {
  std::string_view name;
  Value (*call)(Context&, const Value& self, const Arguments&);
};

// Whole text, or the part that the arguments from `index` on name as text[begin:end]; nothing where it begins behind
// the end.
struct Span {
  size_t begin = 0, end = 0;
};
std::optional<Span> span_of(Context& context, const Text& text, const Parameters& p, size_t index) {
  if (p.find(index) == nullptr && p.find(index + 1) == nullptr) return Span{0, text.size()};
  context.use_text(text.size());
  const auto starts = character_starts(text.bytes());
  const auto count = static_cast<int64_t>(starts.size()) - 1;
  const auto place = [&](size_t i, int64_t otherwise) {
    const bool given = p.find(i) != nullptr && !p.at(i).is_none();
    const int64_t at = given ? p.integer(i, 0) : otherwise;
    return at < 0 ? std::max<int64_t>(at + count, 0) : at;
  };
  const int64_t begin = place(index, 0), end = std::min(place(index + 1, count), count);
  if (begin > end) return std::nullopt;
  return Span{starts[static_cast<size_t>(begin)], starts[static_cast<size_t>(end)]};
}

template <Sides sides>
Value call_strip(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("strip", arguments, {"chars"});
  return strip(context, *self.text(), p.text_or_null(0), sides);
}

Value call_split(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("split", arguments, {"sep", "maxsplit"});
  return context.make_list(split(context, *self.text(), p.text_or_null(0), p.integer(1, -1)));
}

Value call_rsplit(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("rsplit", arguments, {"sep", "maxsplit"});
  return context.make_list(split_from_right(context, *self.text(), p.text_or_null(0), p.integer(1, -1)));
}

Value call_splitlines(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("splitlines", arguments, {"keepends"});
  return context.make_list(split_lines(context, *self.text(), p.truth(0, false)));
}

// The last occurrence in a span, or npos.
size_t find_last(Context& context, std::string_view text, std::string_view sought, const Span& span) {
  context.use_text((span.end - span.begin) * (1 + sought.size() / 64));
  const size_t found = text.substr(span.begin, span.end - span.begin).rfind(sought);
  return found == std::string_view::npos ? found : span.begin + found;
}

// (text before the first or last separator, the separator, text behind it)
template <bool from_right>
Value call_partition(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p(from_right ? "rpartition" : "partition", arguments, {"sep"}, 1);
  const Text& text = *self.text();
  const Text& separator = p.text(0);
  if (separator.empty()) throw Failure("'partition' is given an empty separator.");
  const size_t found = from_right ? find_last(context, text.bytes(), separator.bytes(), {0, text.size()})
                                  : find_text(context, text.bytes(), separator.bytes());
  context.use_text(text.size());
  const Value nothing = Value::markup("");
  if (found == std::string_view::npos) {
    return context.make(
        List{from_right ? std::vector<Value>{nothing, nothing, self} : std::vector<Value>{self, nothing, nothing},
             List::tuple});
  }
  return context.make(List{
      {text.part(0, found), text.part(found, separator.size()), text.part(found + separator.size())}, List::tuple});
}

// Whether `text` begins or ends with the argument, or with one of a tuple.
Value matches_end(Context& context, const Value& self, const Parameters& p, bool at_start) {
  const auto span = span_of(context, *self.text(), p, 1);
  if (!span) return false;
  const std::string_view text = self.text()->bytes().substr(span->begin, span->end - span->begin);
  const auto matches = [&](const Value& affix) {
    if (affix.text() == nullptr) throw Failure("A string is compared with " + std::string(affix.kind()) + ".");
    context.use_text(affix.text()->size());
    return at_start ? text.starts_with(affix.text()->bytes()) : text.ends_with(affix.text()->bytes());
  };
  if (const List* choices = p.at(0).list(); choices != nullptr && choices->is_tuple()) {
    context.step(choices->items.size());
    return std::any_of(choices->items.begin(), choices->items.end(), matches);
  }
  return matches(p.at(0));
}

Value call_startswith(Context& context, const Value& self, const Arguments& arguments) {
  return matches_end(context, self, Parameters("startswith", arguments, {"prefix", "start", "end"}, 1), true);
}

Value call_endswith(Context& context, const Value& self, const Arguments& arguments) {
  return matches_end(context, self, Parameters("endswith", arguments, {"suffix", "start", "end"}, 1), false);
}

Value call_removeprefix(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("removeprefix", arguments, {"prefix"}, 1);
  const Text& text = *self.text();
  context.use_text(text.size());
  return text.bytes().starts_with(p.text(0).bytes()) ? Value(text.part(p.text(0).size())) : self;
}

Value call_removesuffix(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("removesuffix", arguments, {"suffix"}, 1);
  const Text& text = *self.text();
  context.use_text(text.size());
  return text.bytes().ends_with(p.text(0).bytes()) ? Value(text.part(0, text.size() - p.text(0).size())) : self;
}

Value call_replace(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("replace", arguments, {"old", "new", "count"}, 2);
  return replace(context, *self.text(), p.text(0), p.text(1), p.integer(2, -1));
}

template <Text (*change)(Context&, const Text&)>
Value call_change(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a change of case", arguments, {});
  return change(context, *self.text());
}

Value call_title(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("title", arguments, {});
  return title(context, *self.text(), WordStart::after_what_has_no_case);
}

// The place of the argument in the text; -1, or a failure, where it is not in it.
template <bool last, bool must_be_there>
Value call_find(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p(must_be_there ? "index" : "find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view text = self.text()->bytes();
  const std::string_view sought = p.text(0).bytes();
  size_t found = std::string_view::npos;
  if (const auto span = span_of(context, *self.text(), p, 1)) {
    found = last ? find_last(context, text, sought, *span)
                 : find_text(context, text.substr(0, span->end), sought, span->begin);
  }
  if (found != std::string_view::npos) return static_cast<int64_t>(count_characters(text.substr(0, found)));
  if (must_be_there) throw Failure("'index' looks for something that the string does not hold.");
  return -1;
}

Value call_count(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"sub", "start", "end"}, 1);
  const auto span = span_of(context, *self.text(), p, 1);
  if (!span) return 0;
  const std::string_view text = self.text()->bytes().substr(0, span->end);
  const std::string_view sought = p.text(0).bytes();
  if (sought.empty()) {
    context.use_text(text.size());
    return static_cast<int64_t>(count_characters(text.substr(span->begin))) + 1;
  }
  int64_t count = 0;
  for (size_t at = span->begin; (at = find_text(context, text, sought, at)) != std::string_view::npos;
       at += sought.size()) {
    context.step();
    ++count;
  }
  return count;
}

Value call_join(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("join", arguments, {"iterable"}, 1);
  const bool safe = self.text()->is_safe();
  TextBuilder builder(context);
  bool first = true;
  for (const Value& part : elements(context, p.at(0))) {
    if (part.text() == nullptr && !safe) {
      throw Failure("'join' is given " + std::string(part.kind()) + " among its strings.");
    }
    if (!std::exchange(first, false)) builder.add(*self.text());
    builder.add(safe ? escaped(context, to_text(context, part)) : *part.text());
  }
  return builder.take();
}

Value call_format(Context& context, const Value& self, const Arguments& arguments) {
  return format_braces(context, *self.text(), arguments);
}

Value call_format_map(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("format_map", arguments, {"mapping"}, 1);
  if (p.at(0).dict() == nullptr)
    throw Failure("'format_map' is given " + std::string(p.at(0).kind()) + "; it must be a dict.");
  Arguments named;
  for (const auto& [key, value] : p.at(0).dict()->items) {
    context.step();
    if (key.text() != nullptr) named.named.push_back({std::string(key.text()->bytes()), value, key});
  }
  return format_braces(context, *self.text(), named);
}

template <Align align>
Value call_padded(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a method that pads", arguments, {"width", "fillchar"}, 1);
  return padded(context, *self.text(), p.integer(0, 0), p.find(1) == nullptr ? Text(" ") : p.text(1), align);
}

// Zeros behind the sign.
Value call_zfill(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("zfill", arguments, {"width"}, 1);
  const Text& text = *self.text();
  const bool has_sign = text.bytes().starts_with('-') || text.bytes().starts_with('+');
  TextBuilder builder(context);
  builder.add(text, 0, has_sign ? 1 : 0);
  builder.add(padded(context, text.part(has_sign ? 1 : 0), std::max<int64_t>(p.integer(0, 0), 1) - (has_sign ? 1 : 0),
                     Text("0"), Align::right));
  return builder.take();
}

Value call_expandtabs(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("expandtabs", arguments, {"tabsize"});
  const int64_t size = std::min<int64_t>(p.integer(0, 8), 1000);
  const Text& text = *self.text();
  TextBuilder out(context);
  int64_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    if (c.value == '\t') {
      const int64_t blanks = size > 0 ? size - column % size : 0;
      out.add(std::string(static_cast<size_t>(blanks), ' '), text.origin(at));
      column += blanks;
    } else {
      out.add(text, at, c.size);
      column = c.value == '\n' || c.value == '\r' ? 0 : column + 1;
    }
    at += c.size;
  }
  return out.take();
}

// A dict from numbers of characters to what stands for them: none takes them away.
Value call_translate(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("translate", arguments, {"table"}, 1);
  const Text& text = *self.text();
  TextBuilder out(context);
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.bytes(), at);
    const Value other = item(context, p.at(0), c.value);
    if (const auto number = other.as_integer()) {
      if (*number < 0 || *number > 0x10FFFF) throw Failure("'translate' is given a number that is no character's.");
      out.add(encode_utf8(static_cast<int32_t>(*number)), Origin::content);  // a number does not say who wrote it
    } else if (other.text() != nullptr) {
      out.add(*other.text());
    } else if (!other.is_none()) {
      out.add(text, at, c.size);
    }
    at += c.size;
  }
  return out.take();
}

Value call_maketrans(Context& context, const Value&, const Arguments& arguments) {
  const Parameters p("maketrans", arguments, {"x", "y", "z"}, 1);
  const auto number_of = [](const Text& text, size_t at) { return Value(code_point_at(text.bytes(), at).value); };
  Dict table;
  if (p.find(1) == nullptr) {
    if (p.at(0).dict() == nullptr) throw Failure("'maketrans' with one argument must be given a dict.");
    for (const auto& [key, value] : p.at(0).dict()->items) {
      set_item(context, table, key.text() != nullptr && !key.text()->empty() ? number_of(*key.text(), 0) : key, value);
    }
    return context.make(std::move(table));
  }
  const auto from = character_starts(p.text(0).bytes()), to = character_starts(p.text(1).bytes());
  if (from.size() != to.size()) throw Failure("The first two arguments of 'maketrans' must have equal lengths.");
  for (size_t i = 0; i + 1 < from.size(); ++i) {
    set_item(context, table, number_of(p.text(0), from[i]), number_of(p.text(1), to[i]));
  }
  if (const Text* removed = p.text_or_null(2)) {
    for (const size_t at : character_starts(removed->bytes())) {
      if (at < removed->size()) set_item(context, table, number_of(*removed, at), None{});
    }
  }
  return context.make(std::move(table));
}

Value refuse_bytes(Context&, const Value&, const Arguments&) {
  throw Failure("'encode' is not supported: templates have no bytes here.");
}

// Whether there are characters, and all of them are of a kind; empty_too: no character will do.
template <bool (*is_kind)(int32_t), bool empty_too = false>
Value call_all(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a question about characters", arguments, {});
  const std::string_view text = self.text()->bytes();
  context.use_text(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!c.valid || !is_kind(c.value)) return false;
    at += c.size;
  }
  return empty_too || !text.empty();
}

bool is_ascii(int32_t c) {
  return c < 0x80;
}

bool is_letter_or_digit(int32_t c) {
  return is_letter(c) || is_numeric(c);
}

Value call_isidentifier(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("isidentifier", arguments, {});
  const std::string_view text = self.text()->bytes();
  context.use_text(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool starts = c.valid && (c.value == '_' || is_letter(c.value));
    if (!starts && (at == 0 || !c.valid || !is_decimal_digit(c.value))) return false;
    at += c.size;
  }
  return !text.empty();
}

template <Case wanted>
Value call_is_case(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a question about case", arguments, {});
  return is_case(context, *self.text(), wanted);
}

template <List::Kind kind>
Value call_view(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("a view of a dict", arguments, {});
  List view{{}, kind};
  for (const auto& [key, value] : self.dict()->items) {
    view.items.push_back(kind == List::keys     ? key
                         : kind == List::values ? value
                                                : context.make(List{{key, value}, List::tuple}));
  }
  return context.make(std::move(view));
}

Value call_fromkeys(Context& context, const Value&, const Arguments& arguments) {
  const Parameters p("fromkeys", arguments, {"iterable", "value"}, 1);
  Dict dict;
  for (const Value& key : elements(context, p.at(0)))
    set_item(context, dict, key, p.find(1) == nullptr ? Value(None{}) : p.at(1));
  return context.make(std::move(dict));
}

Value call_get(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("get", arguments, {"key", "default"}, 1);
  for (const auto& [key, value] : self.dict()->items) {
    if (equal(context, key, p.at(0))) return value;
  }
  return p.find(1) == nullptr ? Value(None{}) : p.at(1);
}

Value call_copy(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("copy", arguments, {});
  return self;  // nothing can change it
}

Value call_list_index(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("index", arguments, {"value", "start", "stop"}, 1);
  const auto& items = self.list()->items;
  const auto count = static_cast<int64_t>(items.size());
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = p.integer(i, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  for (int64_t i = place(1, 0); i < place(2, count); ++i) {
    if (equal(context, items[static_cast<size_t>(i)], p.at(0))) return i;
  }
  throw Failure("'index' looks for something that the list does not hold.");
}

Value call_list_count(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("count", arguments, {"value"}, 1);
  const auto& items = self.list()->items;
  return static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(context, item, p.at(0)); }));
}

Value call_isdisjoint(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("isdisjoint", arguments, {"other"}, 1);
  const auto others = elements(context, p.at(0));
  return std::none_of(others.begin(), others.end(), [&](const Value& other) { return contains(context, self, other); });
}

Value call_bit_length(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("bit_length", arguments, {});
  return static_cast<int64_t>(self.as_big_integer()->bits());
}

Value call_bit_count(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("bit_count", arguments, {});
  return static_cast<int64_t>(self.as_big_integer()->bits_set());
}

Value call_is_integer(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("is_integer", arguments, {});
  return self.floating() == nullptr || std::trunc(*self.floating()) == *self.floating();
}

Value call_conjugate(Context&, const Value& self, const Arguments& arguments) {
  const Parameters p("conjugate", arguments, {});
  return self.floating() != nullptr ? self : Value(*self.as_big_integer());
}

// (numerator, denominator)
Value call_as_integer_ratio(Context& context, const Value& self, const Arguments& arguments) {
  const Parameters p("as_integer_ratio", arguments, {});
  if (self.floating() == nullptr) return context.make(List{{Value(*self.as_big_integer()), 1}, List::tuple});
  if (!std::isfinite(*self.floating())) throw Failure("A float that is not finite has no ratio.");
  double number = *self.floating();
  BigInteger denominator = 1;
  for (; std::trunc(number) != number; number *= 2) denominator = denominator * 2;
  return context.make(List{{Value(BigInteger::truncated(number)), Value(denominator)}, List::tuple});
}

constexpr Method text_methods[] = {
    {"capitalize", call_change<capitalize>},
    {"casefold", call_change<fold_case>},
    {"center", call_padded<Align::center>},
    {"count", call_count},
    {"encode", refuse_bytes},
    {"endswith", call_endswith},
    {"expandtabs", call_expandtabs},
    {"find", call_find<false, false>},
    {"format", call_format},
    {"format_map", call_format_map},
    {"index", call_find<false, true>},
    {"isalnum", call_all<is_letter_or_digit>},
    {"isalpha", call_all<is_letter>},
    {"isascii", call_all<is_ascii, true>},
    {"isdecimal", call_all<is_decimal_digit>},
    {"isdigit", call_all<is_digit>},
    {"isidentifier", call_isidentifier},
    {"islower", call_is_case<Case::lower>},
    {"isnumeric", call_all<is_numeric>},
    {"isprintable", call_all<is_printable, true>},
    {"isspace", call_all<is_space>},
    {"istitle", call_is_case<Case::title>},
    {"isupper", call_is_case<Case::upper>},
    {"join", call_join},
    {"ljust", call_padded<Align::left>},
    {"lower", call_change<lower>},
    {"lstrip", call_strip<Sides::left>},
    {"maketrans", call_maketrans},
    {"partition", call_partition<false>},
    {"removeprefix", call_removeprefix},
    {"removesuffix", call_removesuffix},
    {"replace", call_replace},
    {"rfind", call_find<true, false>},
    {"rindex", call_find<true, true>},
    {"rjust", call_padded<Align::right>},
    {"rpartition", call_partition<true>},
    {"rsplit", call_rsplit},
    {"rstrip", call_strip<Sides::right>},
    {"split", call_split},
    {"splitlines", call_splitlines},
    {"startswith", call_startswith},
    {"strip", call_strip<Sides::both>},
    {"swapcase", call_change<swap_case>},
    {"title", call_title},
    {"translate", call_translate},
    {"upper", call_change<upper>},
    {"zfill", call_zfill},
};

constexpr Method list_methods[] = {{"copy", call_copy}, {"count", call_list_count}, {"index", call_list_index}};
constexpr Method tuple_methods[] = {{"count", call_list_count}, {"index", call_list_index}};
constexpr Method view_methods[] = {{"isdisjoint", call_isdisjoint}};

constexpr Method dict_methods[] = {
    {"copy", call_copy},
    {"fromkeys", call_fromkeys},
    {"get", call_get},
    {"items", call_view<List::items_view>},
    {"keys", call_view<List::keys>},
    {"values", call_view<List::values>},
};

constexpr Method int_methods[] = {
    {"as_integer_ratio", call_as_integer_ratio},
    {"bit_count", call_bit_count},
    {"bit_length", call_bit_length},
    {"conjugate", call_conjugate},
    {"is_integer", call_is_integer},
};
constexpr Method float_methods[] = {
    {"as_integer_ratio", call_as_integer_ratio},
    {"conjugate", call_conjugate},
    {"is_integer", call_is_integer},
};

constexpr std::string_view list_changes[] = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::string_view dict_changes[] = {"clear", "pop", "popitem", "setdefault", "update"};

// What a method of a safe text gives is safe too.
Value safe_result(Context& context, const Value& result) {
  if (const Text* text = result.text()) {
    context.use_text(text->size());
    Text copy = *text;
    copy.set_safe(true);
    return copy;
  }
  if (result.list() == nullptr) return result;
  List list{{}, result.list()->kind};
  for (const Value& part : result.list()->items) list.items.push_back(safe_result(context, part));
  return context.make(std::move(list));
}

// A method with the value that it belongs to.
class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const Method& method) : self_(std::move(self)), method_(method) {}

  std::string_view kind() const override { return "a method"; }
  bool callable() const override { return true; }
  size_t depth() const override { return self_.depth(); }
  Value call(Context& context, const Arguments& arguments) override {
    if (self_.text() == nullptr || !self_.text()->is_safe()) return method_.call(context, self_, arguments);
    Arguments given = arguments;  // what comes into a safe text is escaped first
    const bool pads = method_.name == "center" || method_.name == "ljust" || method_.name == "rjust";
    if (pads || method_.name == "replace") {
      if (given.positional.size() > 1 && given.positional[1].text() != nullptr) {
        given.positional[1] = escaped(context, *given.positional[1].text());
      }
    }
    return safe_result(context, method_.call(context, self_, given));
  }

 private:
  Value self_;
  const Method& method_;
};

}  // namespace

std::optional<Value> find_method(const Value& value, std::string_view name) {
  std::span<const Method> methods;
  std::span<const std::string_view> changes;
  if (value.text() != nullptr) methods = text_methods;
  if (const List* list = value.list()) {
    methods = list->kind == List::list ? std::span<const Method>(list_methods)
              : list->is_view()        ? std::span<const Method>(view_methods)
                                       : std::span<const Method>(tuple_methods);
    if (list->kind == List::list) changes = list_changes;
  }
  if (value.dict() != nullptr) {
    methods = dict_methods;
    changes = dict_changes;
  }
  if (value.as_number()) methods = value.floating() != nullptr ? std::span<const Method>(float_methods) : int_methods;
  for (const Method& method : methods) {
    if (method.name == name) return Value(std::make_shared<BoundMethod>(value, method));
  }
  if (std::find(changes.begin(), changes.end(), name) != changes.end()) {
    return Value::undefined("a template may not change " + std::string(value.kind()) +
                            "; it can make a new one, or keep values in a namespace()");
  }
  return std::nullopt;
}

}  // namespace canopy::jinja

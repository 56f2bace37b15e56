#include "engine/text/jinja/text_operations.h"

#include <utf8proc.h>

#include <algorithm>

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

// Maps every character by its place.
template <class Map>
Text mapped(Context& context, const Text& text, Map map) {
  const std::string_view bytes = text.bytes();
  TextBuilder builder(context);
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    const int32_t other = c.valid ? map(c.value) : c.value;
    if (other == c.value) {
      builder.add(text, at, c.size);
    } else {
      builder.add(encode_utf8(other), text.origin(at));
    }
    at += c.size;
  }
  return builder.take();
}

}  // namespace

Text strip(Context& context, const Text& text, const Text* characters, Sides sides) {
  const Range range = stripped(context, text, characters, sides);
  TextBuilder builder(context);
  builder.add(text, range.begin, range.end - range.begin);
  return builder.take();
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
    const size_t end = std::min(bytes.find_first_of("\n\r\v\f\x1c\x1d\x1e", begin), bytes.size());
    size_t next = std::min(end + 1, bytes.size());
    if (bytes.substr(end, 2) == "\r\n") ++next;
    lines.push_back(cut(context, text, {begin, keep_ends ? next : end}));
    begin = next;
  }
  return lines;
}

Text upper(Context& context, const Text& text) {
  return mapped(context, text, utf8proc_toupper);
}

Text lower(Context& context, const Text& text) {
  return mapped(context, text, utf8proc_tolower);
}

Text capitalize(Context& context, const Text& text) {
  bool first = true;
  return mapped(context, text, [&first](int32_t c) {
    const bool is_first = std::exchange(first, false);
    return is_first ? utf8proc_totitle(c) : utf8proc_tolower(c);
  });
}

Text title(Context& context, const Text& text, WordStart rule) {
  bool at_start = true;
  return mapped(context, text, [&at_start, rule](int32_t c) {
    constexpr std::string_view openers = "-({[<";
    const bool breaks = rule == WordStart::after_any_non_letter
                            ? !is_letter(c)
                            : is_space(c) || (c < 0x80 && openers.find(static_cast<char>(c)) != std::string_view::npos);
    const bool starts = std::exchange(at_start, breaks) && !breaks;
    return breaks ? c : starts ? utf8proc_totitle(c) : utf8proc_tolower(c);
  });
}

}  // namespace canopy::jinja

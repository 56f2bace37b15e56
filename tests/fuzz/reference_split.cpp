#include "tests/fuzz/reference_split.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace canopy::fuzz {
namespace {

enum class Kind { letter, number, space, other };

struct Character {
  uint32_t code = 0;
  Kind kind = Kind::other;
  size_t begin = 0;  // in bytes of the text
};

Kind kind_of(int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return Kind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Kind::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return Kind::space;
    default: break;
  }
  // U+180E has not been white space since Unicode 6.3, but PCRE2 still has it in \s.
  const bool is_space = (code >= '\t' && code <= '\r') || code == 0x85 || code == 0x180E;
  return is_space ? Kind::space : Kind::other;
}

// The characters of a text. A matcher returns how many of them, from `at` on, form the next piece.
using Characters = std::vector<Character>;

Characters characters_of(std::string_view text) {
  Characters characters;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    characters.push_back({static_cast<uint32_t>(code), kind_of(code), at});
    at += static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 1));
  }
  return characters;
}

bool is_line_break(const Character& c) {
  return c.code == '\r' || c.code == '\n';
}

// How many characters in a row, from `at` on, satisfy a condition.
template <class F>
size_t run(const Characters& text, size_t at, F&& holds) {
  size_t end = at;
  while (end < text.size() && holds(text[end])) ++end;
  return end - at;
}

size_t run_of(const Characters& text, size_t at, Kind kind) {
  return run(text, at, [kind](const Character& c) { return c.kind == kind; });
}

// Matches 's 't 're 've 'm 'll 'd; without regard to case, the long s counts as an s.
size_t contraction(const Characters& text, size_t at, bool any_case) {
  if (text[at].code != '\'') return 0;
  for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
    size_t matched = 0;
    while (matched < ending.size() && at + 1 + matched < text.size()) {
      uint32_t code = text[at + 1 + matched].code;
      if (any_case && code >= 'A' && code <= 'Z') code += 'a' - 'A';
      if (any_case && code == 0x17F) code = 's';
      if (code != static_cast<unsigned char>(ending[matched])) break;
      ++matched;
    }
    if (matched == ending.size()) return 1 + matched;
  }
  return 0;
}

// Matches white space; before a word, a run of more than one character leaves its last one to the word.
size_t white_space(const Characters& text, size_t at) {
  const size_t length = run_of(text, at, Kind::space);
  const bool is_last = at + length == text.size();
  return length > 1 && !is_last ? length - 1 : length;
}

// Matches characters of one kind, with a space before them if there is one.
size_t spaced_run(const Characters& text, size_t at, Kind kind) {
  const size_t space = text[at].code == ' ' ? 1 : 0;
  const size_t length = run_of(text, at + space, kind);
  return length > 0 ? space + length : 0;
}

size_t next_gpt2(const Characters& text, size_t at) {
  if (const size_t length = contraction(text, at, false)) return length;
  for (const Kind kind : {Kind::letter, Kind::number, Kind::other}) {
    if (const size_t length = spaced_run(text, at, kind)) return length;
  }
  return white_space(text, at);
}

size_t next_llama3(const Characters& text, size_t at, size_t most_numbers) {
  if (const size_t length = contraction(text, at, true)) return length;
  const Character& first = text[at];
  const bool may_lead = first.kind != Kind::letter && first.kind != Kind::number && !is_line_break(first);
  const size_t letters = run_of(text, at + (may_lead ? 1 : 0), Kind::letter);
  if (letters > 0) return letters + (may_lead ? 1 : 0);
  if (first.kind == Kind::number) return std::min(run_of(text, at, Kind::number), most_numbers);
  if (const size_t length = spaced_run(text, at, Kind::other)) return length + run(text, at + length, is_line_break);
  // White space up to its last line break, if it has one.
  size_t up_to_break = run_of(text, at, Kind::space);
  while (up_to_break > 0 && !is_line_break(text[at + up_to_break - 1])) --up_to_break;
  return up_to_break > 0 ? up_to_break : white_space(text, at);
}

template <class F>
void split(std::string_view text, F&& next, std::vector<std::string_view>& pieces) {
  const Characters characters = characters_of(text);
  for (size_t at = 0; at < characters.size();) {
    const size_t end = at + std::max<size_t>(next(characters, at), 1);
    const size_t end_byte = end < characters.size() ? characters[end].begin : text.size();
    pieces.push_back(text.substr(characters[at].begin, end_byte - characters[at].begin));
    at = end;
  }
}

// Matches a single number, or everything up to the next number.
size_t next_number(const Characters& text, size_t at) {
  if (text[at].kind == Kind::number) return 1;
  return run(text, at, [](const Character& c) { return c.kind != Kind::number; });
}

}  // namespace

bool is_split_by_hand(std::string_view name) {
  return name == "gpt-2" || name == "smollm" || name == "llama-bpe" || name == "qwen2";
}

std::vector<std::string_view> split_by_hand(std::string_view name, std::string_view text) {
  std::vector<std::string_view> pieces;
  if (name == "gpt-2") {
    split(text, next_gpt2, pieces);
  } else if (name == "smollm") {
    std::vector<std::string_view> parts;
    split(text, next_number, parts);
    for (const std::string_view part : parts) split(part, next_gpt2, pieces);
  } else {
    const size_t most_numbers = name == "llama-bpe" ? 3 : 1;
    split(
        text, [&](const Characters& c, size_t at) { return next_llama3(c, at, most_numbers); }, pieces);
  }
  return pieces;
}

}  // namespace canopy::fuzz

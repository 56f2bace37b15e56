#include "tests/fuzz/reference_split.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace canopy::fuzz {
namespace {

enum class Kind { letter, number, space, other };

struct Character {
  uint32_t code = 0;
  Kind kind = Kind::other;
  bool is_punctuation = false;  // \p{P}
  bool is_cased = false;        // Lu, Ll, Lt
  size_t begin = 0;             // in bytes of the text
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

bool is_punctuation(int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_cased(int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LT;
}

// The characters of a text. A matcher returns how many of them, from `at` on, form the next piece.
using Characters = std::vector<Character>;

Characters characters_of(std::string_view text) {
  Characters characters;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    characters.push_back({static_cast<uint32_t>(code), kind_of(code), is_punctuation(code), is_cased(code), at});
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

using Pieces = std::vector<std::string_view>;

// Cuts each piece by what `match` finds in it: it says how many characters from a place on it takes, none where it
// does not match there. Matches and what lies between them are pieces.
template <class F>
Pieces cut(const Pieces& pieces, F&& match) {
  Pieces result;
  for (const std::string_view piece : pieces) {
    const Characters text = characters_of(piece);
    const auto byte_of = [&](size_t at) { return at < text.size() ? text[at].begin : piece.size(); };
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const size_t length = match(text, at);
      if (length == 0) {
        ++at;
        continue;
      }
      if (at > done) result.push_back(piece.substr(byte_of(done), byte_of(at) - byte_of(done)));
      result.push_back(piece.substr(byte_of(at), byte_of(at + length) - byte_of(at)));
      done = at += length;
    }
    if (done < text.size()) result.push_back(piece.substr(byte_of(done)));
  }
  return result;
}

bool is_in(uint32_t code, std::initializer_list<std::pair<uint32_t, uint32_t>> ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const auto& r) { return code >= r.first && code <= r.second; });
}

size_t next_line_break(const Characters& text, size_t at) {
  return is_line_break(text[at]) ? 1 : 0;
}

size_t next_numbers(const Characters& text, size_t at) {
  return run_of(text, at, Kind::number);
}

size_t one_number(const Characters& text, size_t at) {
  return text[at].kind == Kind::number ? 1 : 0;
}

// Characters that satisfy a condition, with any white space before them if there is one.
template <class F>
auto after_white_space(F holds) {
  return [holds](const Characters& text, size_t at) {
    const size_t space = text[at].kind == Kind::space ? 1 : 0;
    const size_t length = run(text, at + space, holds);
    return length > 0 ? space + length : 0;
  };
}

// DeepSeek's "letters" are those with two cases, but for blocks that its list passes over.
bool is_deepseek_letter(const Character& c) {
  return c.is_cased && !is_in(c.code, {{0x560, 0x588},
                                       {0x10C7, 0x10FF},
                                       {0x1C80, 0x1C8F},
                                       {0x2D00, 0x2D2F},
                                       {0xA790, 0xA7FF},
                                       {0xAB30, 0xAB6F},
                                       {0x10570, 0x105BF},
                                       {0x10D40, 0x10D8F},
                                       {0x16E40, 0x16EDF},
                                       {0x1D400, 0x1D7FF},
                                       {0x1DF00, 0x1DFFF}});
}

bool is_deepseek_punctuation(const Character& c) {
  if (c.code < 0x80) return c.code > ' ' && c.code < 0x7F && (c.code < '0' || c.code > '9');
  return is_in(c.code, {{0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}, {0x2018, 0x201F}, {0x3000, 0x3002}});
}

size_t next_script(const Characters& text, size_t at) {
  return run(text, at, [](const Character& c) { return is_in(c.code, {{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}}); });
}

Pieces split_deepseek_coder(Pieces pieces) {
  pieces = cut(pieces, next_line_break);
  pieces = cut(pieces, after_white_space([](const Character& c) { return c.kind == Kind::letter; }));
  pieces = cut(pieces, after_white_space([](const Character& c) { return c.is_punctuation; }));
  pieces = cut(pieces, next_script);
  return cut(pieces, one_number);
}

Pieces split_deepseek_llm(Pieces pieces) {
  pieces = cut(pieces, next_line_break);
  pieces = cut(pieces, after_white_space(is_deepseek_letter));
  pieces = cut(pieces, after_white_space(is_deepseek_punctuation));
  pieces = cut(pieces, [](const Characters& text, size_t at) {  // white space at the end
    const size_t length = run_of(text, at, Kind::space);
    return at + length == text.size() ? length : 0;
  });
  pieces = cut(pieces, next_script);
  return cut(pieces, next_numbers);
}

size_t next_viking(const Characters& text, size_t at) {
  const auto is_word = [](const Character& c) {
    constexpr std::u32string_view ends = U"(|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)";
    return c.kind != Kind::space && ends.find(static_cast<char32_t>(c.code)) == std::u32string_view::npos;
  };
  const size_t space = text[at].code == ' ' ? 1 : 0;
  const size_t length = run(text, at + space, is_word);
  return length > 0 ? space + length : 0;
}

size_t next_seed_coder(const Characters& text, size_t at) {
  size_t length = next_llama3(text, at, 1);
  // Unlike Llama 3's, a run of other characters takes no line breaks along.
  const size_t first = at + (text[at].code == ' ' ? 1 : 0);
  const bool is_other = first < text.size() && text[first].kind == Kind::other;
  while (is_other && length > 1 && is_line_break(text[at + length - 1])) --length;
  return length;
}

// Punctuation, and what GPT-2's expression takes for a run of other characters.
size_t next_punctuation(const Characters& text, size_t at, std::string_view others) {
  return run(text, at, [others](const Character& c) {
    return c.is_punctuation || (c.code < 0x80 && others.find(static_cast<char>(c.code)) != std::string_view::npos);
  });
}

size_t next_three_digits(const Characters& text, size_t at) {
  const size_t digits = run(text, at, [](const Character& c) { return c.code >= '0' && c.code <= '9'; });
  return digits >= 3 ? 3 : 0;
}

Pieces split_falcon(Pieces pieces, bool is_default) {
  const std::string_view others = is_default ? "$+<=>^~|" : "$+<=>^~|`";
  pieces = cut(pieces, [others](const Characters& text, size_t at) { return next_punctuation(text, at, others); });
  pieces = cut(pieces, next_gpt2);
  if (is_default) pieces = cut(pieces, next_numbers);
  return cut(pieces, next_three_digits);
}

struct Alias {
  std::string_view name, of;
};

constexpr Alias aliases[] = {{"mellum", "gpt-2"},        {"gigachat", "gpt-2"},     {"a.x-4.0", "gpt-2"},
                             {"falcon-h1", "llama-bpe"}, {"midm-2.0", "llama-bpe"}, {"jina-v5-nano", "llama-bpe"},
                             {"kormo", "qwen2"},         {"f2llmv2", "qwen2"},      {"", "default"}};

}  // namespace

std::string_view split_name(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(aliases), std::end(aliases), [&](const Alias& a) { return a.name == name; });
  return found == std::end(aliases) ? name : found->of;
}

bool is_split_by_hand(std::string_view name) {
  constexpr std::string_view names[] = {"gpt-2",        "smollm",     "llama-bpe", "qwen2",   "deepseek-coder",
                                        "deepseek-llm", "seed-coder", "viking",    "default", "falcon"};
  return std::find(std::begin(names), std::end(names), split_name(name)) != std::end(names);
}

std::vector<std::string_view> split_by_hand(std::string_view given, std::string_view text) {
  const std::string_view name = split_name(given);
  if (text.empty()) return {};
  if (name == "deepseek-coder") return split_deepseek_coder({text});
  if (name == "deepseek-llm") return split_deepseek_llm({text});
  if (name == "viking") return cut(cut({text}, next_viking), one_number);
  if (name == "falcon" || name == "default") return split_falcon({text}, name == "default");
  std::vector<std::string_view> pieces;
  if (name == "gpt-2") {
    split(text, next_gpt2, pieces);
  } else if (name == "smollm") {
    std::vector<std::string_view> parts;
    split(text, next_number, parts);
    for (const std::string_view part : parts) split(part, next_gpt2, pieces);
  } else if (name == "seed-coder") {
    split(text, next_seed_coder, pieces);
  } else {
    const size_t most_numbers = name == "llama-bpe" ? 3 : 1;
    split(
        text, [&](const Characters& c, size_t at) { return next_llama3(c, at, most_numbers); }, pieces);
  }
  return pieces;
}

}  // namespace canopy::fuzz

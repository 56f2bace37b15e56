#include "engine/text/vocabulary.h"

#include <utf8proc.h>

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "engine/base/error.h"
#include "engine/format/model_file.h"
#include "engine/text/unicode.h"

namespace canopy {
namespace {

// Unicode's White_Space beyond ASCII, as UTF-8.
constexpr std::string_view wide_spaces[] = {
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82", "\xE2\x80\x83",
    "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A",
    "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80",
};

bool is_ascii_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Bytes of the white space at the front of a text; 0: there is none.
size_t space_in_front(std::string_view text) {
  if (text.empty()) return 0;
  if (is_ascii_space(text.front())) return 1;
  for (const std::string_view space : wide_spaces) {
    if (text.starts_with(space)) return space.size();
  }
  return 0;
}

size_t space_at_end(std::string_view text) {
  if (text.empty()) return 0;
  if (is_ascii_space(text.back())) return 1;
  for (const std::string_view space : wide_spaces) {
    if (text.ends_with(space)) return space.size();
  }
  return 0;
}

// Whether a character is part of a word as \w of the tokenizers library is: Alphabetic, Mark, Decimal_Number,
// Connector_Punctuation and Join_Control. What is no character is none.
bool is_word_character(std::string_view text, size_t at) {
  utf8proc_int32_t c = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  if (utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &c) <= 0) return false;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: break;
  }
  const auto within = [c](utf8proc_int32_t first, utf8proc_int32_t last) { return first <= c && c <= last; };
  return within(0x200C, 0x200D) || within(0x24B6, 0x24E9) ||  // joiners; letters in circles and squares
         within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) || within(0x1F170, 0x1F189);
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t before = begin - 1;
    while (before > 0 && begin - before < 4 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
    if (is_word_character(text.substr(0, begin), before)) return false;
  }
  return end == text.size() || !is_word_character(text, end);
}

bool inside_one(std::span<const TextRange> ranges, size_t begin, size_t end) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), begin,
                                      [](size_t at, const TextRange& range) { return at < range.begin; });
  return after != ranges.begin() && std::prev(after)->end >= end;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  // A byte takes some hundred bytes of memory here, and a file may be full of them.
  constexpr uint64_t most_bytes = 4 << 20, longest = 4096;
  uint64_t bytes = 0;
  for (const AddedToken& token : tokens_) {
    bytes += token.spelling.size();
    if (token.spelling.size() > longest) {
      throw bad_input("The added token " + std::to_string(token.id) + " has " + std::to_string(token.spelling.size()) +
                      " bytes; at most " + std::to_string(longest) + " are allowed.");
    }
  }
  if (bytes > most_bytes) {
    throw bad_input("The added and control tokens have " + std::to_string(bytes) + " bytes together; at most " +
                    std::to_string(most_bytes) + " are allowed.");
  }
  for (size_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (const char c : tokens_[i].spelling) {
      const auto byte = static_cast<unsigned char>(c);
      const auto [entry, is_new] = nodes_[node].next.try_emplace(byte, static_cast<uint32_t>(nodes_.size()));
      const uint32_t child = entry->second;
      if (is_new) nodes_.emplace_back();
      if (node == 0) first_[byte] = child;
      node = child;
    }
    if (node == 0) continue;
    Node& end = nodes_[node];
    if (end.token < 0) end.token = static_cast<int64_t>(i);
    if (end.ordinary < 0 && !tokens_[i].special) end.ordinary = static_cast<int64_t>(i);
  }
}

const AddedToken* AddedTokens::longest_at(std::string_view text, size_t at,
                                          std::span<const TextRange> special_ranges) const {
  const AddedToken* best = nullptr;
  uint32_t node = first_[static_cast<unsigned char>(text[at])];
  for (size_t end = at + 1; node != 0; ++end) {
    int64_t index = nodes_[node].token;
    if (index != nodes_[node].ordinary && !inside_one(special_ranges, at, end)) index = nodes_[node].ordinary;
    if (index >= 0) best = &tokens_[static_cast<size_t>(index)];
    if (end == text.size()) break;
    const auto step = nodes_[node].next.find(static_cast<unsigned char>(text[end]));
    node = step == nodes_[node].next.end() ? 0 : step->second;
  }
  return best;
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, size_t from,
                                                    std::span<const TextRange> special_ranges) const {
  for (size_t at = from; at < text.size(); ++at) {
    const AddedToken* token = longest_at(text, at, special_ranges);
    if (token == nullptr) continue;
    // As in the tokenizers library, one that stands inside a word hides those that begin within it.
    if (token->single_word && !is_single_word(text, at, at + token->spelling.size())) {
      at += token->spelling.size() - 1;
      continue;
    }
    Match match{at, at + token->spelling.size(), token};
    if (token->strips_left) {
      while (const size_t space = space_at_end(text.substr(from, match.begin - from))) match.begin -= space;
    }
    if (token->strips_right) {
      while (const size_t space = space_in_front(text.substr(match.end))) match.end += space;
    }
    return match;
  }
  return std::nullopt;
}

const AddedToken* AddedTokens::lookup(std::string_view spelling) const {
  const auto found =
      std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) { return token.spelling == spelling; });
  return found == tokens_.end() || spelling.empty() ? nullptr : &*found;
}

namespace {

constexpr uint32_t alphabet_size = 0x100 + 68;  // code points below this may stand for a byte

struct ByteTables {
  std::array<std::string, 256> character;           // UTF-8 by byte
  std::array<int16_t, alphabet_size> byte_of = {};  // by code point; -1: none
};

bool stands_for_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

const ByteTables& alphabet() {
  static const ByteTables made = [] {
    ByteTables a;
    a.byte_of.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t code_point = stands_for_itself(byte) ? byte : next++;
      a.byte_of[code_point] = static_cast<int16_t>(byte);
      if (code_point < 0x80) {
        a.character[byte] = static_cast<char>(code_point);
      } else {
        a.character[byte] = {static_cast<char>(0xC0 | (code_point >> 6)),
                             static_cast<char>(0x80 | (code_point & 0x3F))};
      }
    }
    return a;
  }();
  return made;
}

// The byte that the character at the front of a text stands for, or -1; length in bytes of that character.
int byte_at(std::string_view text, size_t& length) {
  const Utf8Unit unit = next_utf8(text);
  length = unit.length;
  if (unit.kind != Utf8Kind::valid || length > 2) return -1;
  const auto first = static_cast<unsigned char>(text[0]);
  const uint32_t code_point =
      length == 1 ? first : (uint32_t{first} & 0x1F) << 6 | (static_cast<unsigned char>(text[1]) & 0x3F);
  return code_point < alphabet_size ? alphabet().byte_of[code_point] : -1;
}

}  // namespace

std::string_view byte_level_character(unsigned char byte) {
  return alphabet().character[byte];
}

std::string bytes_of_token(std::string_view token) {
  std::string bytes;
  size_t length = 0;
  for (size_t at = 0; at < token.size(); at += length) {
    const int byte = byte_at(token.substr(at), length);
    if (byte < 0) return std::string(token);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

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

namespace {

void check_id(const VocabularyData& data, const char* role, const std::optional<uint32_t>& id) {
  if (id && *id >= data.tokens.size()) {
    throw bad_input(std::string("The ") + role + " token has the id " + std::to_string(*id) +
                    ", but the vocabulary has only " + std::to_string(data.tokens.size()) + " entries.");
  }
}

}  // namespace

TokenType type_of_token(const VocabularyData& data, size_t id) {
  if (data.types.empty()) return TokenType::normal;
  const int32_t type = data.types[id];
  if (type == 0) return TokenType::normal;  // older converters leave it undefined
  if (type < 1 || type > 6) {
    throw bad_input("Token " + std::to_string(id) + " has the type " + std::to_string(type) + "; allowed are 1 to 6.");
  }
  return static_cast<TokenType>(type);
}

void apply_token_names(VocabularyData& data, std::vector<AddedToken>& added) {
  constexpr auto control = static_cast<int32_t>(TokenType::control);
  std::unordered_set<std::string_view> became_control;
  for (const uint32_t id : named_tokens(data.tokens, data.types).controls) {
    if (id < data.types.size() && data.types[id] == control) continue;
    if (data.types.empty()) data.types.assign(data.tokens.size(), static_cast<int32_t>(TokenType::normal));
    data.types[id] = control;
    became_control.insert(data.tokens[id]);
    const auto known =
        std::find_if(added.begin(), added.end(), [&](const AddedToken& token) { return token.id == id; });
    AddedToken& token = known != added.end() ? *known : added.emplace_back();
    token.id = id;
    token.spelling = data.tokens[id];
    token.special = true;
    token.in_normalized_text = false;
  }
  if (became_control.empty()) return;
  std::string merged;
  std::erase_if(data.merges, [&](std::string_view merge) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return false;
    merged.assign(merge.substr(0, space)).append(merge.substr(space + 1));
    return became_control.contains(merged);
  });
}

void validate_vocabulary(const VocabularyData& data) {
  if (data.tokens.empty()) throw bad_input("The vocabulary has no tokens.");
  if (data.tokens.size() >= std::numeric_limits<uint32_t>::max()) {
    throw bad_input("The vocabulary has more than 2^32 - 2 tokens.");
  }
  if (!data.types.empty() && data.types.size() != data.tokens.size()) {
    throw bad_input("The vocabulary has " + std::to_string(data.tokens.size()) + " tokens but " +
                    std::to_string(data.types.size()) + " token types.");
  }
  check_id(data, "begin-of-text", data.bos);
  check_id(data, "end-of-text", data.eos);
  check_id(data, "unknown", data.unknown);
  check_id(data, "padding", data.padding);
}

}  // namespace canopy

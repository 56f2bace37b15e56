#include "tests/fuzz/reference_tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "engine/text/unicode.h"
#include "engine/text/vocabulary.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/reference_split.h"

namespace canopy::fuzz {
namespace {

// In SentencePiece, a character without a token until the pairs around it have merged; it then becomes the unknown
// token or, without one, nothing.
constexpr uint32_t no_symbol = 0xFFFF'FFFF;

std::string composed(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  require(length >= 0, "valid text can be composed");
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)};
}

// Composes valid UTF-8 (NFC); damaged bytes stay as they are.
std::string composed_where_valid(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    result += composed(text.substr(0, valid));
    text.remove_prefix(valid);
    const size_t damaged = text.empty() ? 0 : next_utf8(text).length;
    result += text.substr(0, damaged);
    text.remove_prefix(damaged);
  }
  return result;
}

bool has_one_space(std::string_view merge) {
  return std::count(merge.begin(), merge.end(), ' ') == 1;
}

// What the names of pre-tokenizers mean besides how they split.
bool composes(const VocabularyData& data) {
  return data.model == "gpt2" && split_name(data.pre_tokenizer) == "qwen2";
}
bool keeps_whole_tokens(const VocabularyData& data) {
  return data.model == "gpt2" && split_name(data.pre_tokenizer) == "llama-bpe";
}
bool puts_space_in_front(const VocabularyData& data) {
  return data.model == "llama" && data.add_space_prefix.value_or(true);
}

}  // namespace

bool ReferenceTokenizer::covers(const VocabularyData& data) {
  if (data.model == "llama") return true;
  return data.model == "gpt2" && is_split_by_hand(data.pre_tokenizer) &&
         std::all_of(data.merges.begin(), data.merges.end(), has_one_space);
}

ReferenceTokenizer::ReferenceTokenizer(const VocabularyData& data) : data_(data) {
  std::vector<AddedToken> added;
  apply_token_names(data_, added);
  list_tokens();
  if (is_byte_level()) {
    if (data_.unknown && type(*data_.unknown) != TokenType::unknown) data_.unknown.reset();
    list_merges();
    return;
  }
  const auto unknown = std::find(data_.tokens.begin(), data_.tokens.end(), "<unk>");
  if (!data_.unknown && unknown != data_.tokens.end()) {
    data_.unknown = static_cast<uint32_t>(unknown - data_.tokens.begin());
  }
  for (const float score : data_.scores) {
    const auto better = std::count_if(data_.scores.begin(), data_.scores.end(), [&](float s) { return s > score; });
    better_.push_back(static_cast<uint32_t>(better));
  }
}

void ReferenceTokenizer::list_tokens() {
  using enum TokenType;
  for (const TokenType wanted : {normal, user_defined}) {
    for (uint32_t id = 0; id < data_.tokens.size(); ++id) {
      if (type(id) != wanted || data_.tokens[id].empty()) continue;
      const std::string token(data_.tokens[id]);
      const bool in_alphabet = is_byte_level() && wanted == normal;
      whole_.try_emplace(in_alphabet ? bytes_of_token(token) : token, id);
      if (wanted == normal) spelled_.try_emplace(token, id);
      if (wanted == user_defined) user_defined_.push_back(id);
    }
  }
  for (uint32_t id = 0; id < data_.tokens.size(); ++id) {
    if (type(id) != unused && !data_.tokens[id].empty()) spelled_.try_emplace(std::string(data_.tokens[id]), id);
  }
}

void ReferenceTokenizer::list_merges() {
  for (size_t rank = 0; rank < data_.merges.size(); ++rank) {
    const std::string_view merge = data_.merges[rank];
    const size_t space = merge.find(' ');
    const auto left = spelled_.find(merge.substr(0, space));
    const auto right = spelled_.find(merge.substr(space + 1));
    const auto merged = spelled_.find(std::string(merge.substr(0, space)).append(merge.substr(space + 1)));
    require(left != spelled_.end() && right != spelled_.end() && merged != spelled_.end(),
            "an accepted merge names tokens");
    merges_.try_emplace({left->second, right->second}, Merge{static_cast<uint32_t>(rank), merged->second});
  }
}

std::optional<uint32_t> ReferenceTokenizer::user_defined_at(std::string_view text) const {
  std::optional<uint32_t> longest;
  for (const uint32_t id : user_defined_) {
    if (!text.starts_with(data_.tokens[id])) continue;
    if (!longest || data_.tokens[id].size() > data_.tokens[*longest].size()) longest = id;
  }
  return longest;
}

std::optional<ReferenceTokenizer::Merge> ReferenceTokenizer::merge_of(uint32_t left, uint32_t right) const {
  if (is_byte_level()) {
    const auto found = merges_.find({left, right});
    return found == merges_.end() ? std::nullopt : std::optional(found->second);
  }
  // SentencePiece: merges two neighbouring tokens if both together are a token; the highest score first.
  if (left == no_symbol || right == no_symbol) return std::nullopt;
  const std::string_view left_text = data_.tokens[left], right_text = data_.tokens[right];
  const auto found_left = whole_.find(left_text), found_right = whole_.find(right_text);
  if (found_left == whole_.end() || found_left->second != left) return std::nullopt;
  if (found_right == whole_.end() || found_right->second != right) return std::nullopt;
  const auto merged = whole_.find(std::string(left_text).append(right_text));
  if (merged == whole_.end()) return std::nullopt;
  return Merge{better_[merged->second], merged->second};
}

std::string ReferenceTokenizer::normalized(std::string_view text, bool is_segment_start) const {
  if (composes(data_)) return composed(text);
  if (is_byte_level()) return std::string(text);
  std::string result(puts_space_in_front(data_) && is_segment_start ? word_mark : "");
  for (const char c : text) result += c == ' ' ? word_mark : std::string_view(&c, 1);
  return result;
}

ReferenceTokenizer::Ids ReferenceTokenizer::symbols_of(std::string_view piece) const {
  Ids symbols;
  if (is_byte_level()) {
    for (const char c : piece) {
      const auto found = spelled_.find(byte_level_character(static_cast<unsigned char>(c)));
      if (found != spelled_.end()) {
        symbols.push_back(found->second);
      } else if (data_.unknown) {
        symbols.push_back(*data_.unknown);
      }
    }
    return symbols;
  }
  for (size_t at = 0, length = 0; at < piece.size(); at += length) {
    length = next_utf8(piece.substr(at)).length;
    append_character(piece.substr(at, length), symbols);
  }
  return symbols;
}

// A character without a token becomes the tokens of its bytes. If those are missing it has no symbol, and several such
// characters in a row are one.
void ReferenceTokenizer::append_character(std::string_view character, Ids& symbols) const {
  if (const auto found = whole_.find(character); found != whole_.end()) {
    symbols.push_back(found->second);
    return;
  }
  Ids bytes;
  for (const char c : character) {
    for (size_t id = data_.tokens.size(); id-- > 0;) {
      if (type(id) != TokenType::byte || byte_of_token(data_.tokens[id]) != static_cast<unsigned char>(c)) continue;
      bytes.push_back(static_cast<uint32_t>(id));
      break;
    }
  }
  if (bytes.size() == character.size()) {
    symbols.insert(symbols.end(), bytes.begin(), bytes.end());
  } else if (symbols.empty() || symbols.back() != no_symbol) {
    symbols.push_back(no_symbol);
  }
}

void ReferenceTokenizer::encode_piece(std::string_view piece, Ids& ids) const {
  if (keeps_whole_tokens(data_)) {
    if (const auto found = whole_.find(piece); found != whole_.end()) return ids.push_back(found->second);
  }
  Ids symbols = symbols_of(piece);
  while (true) {
    std::optional<Merge> best;
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto merge = merge_of(symbols[i], symbols[i + 1]);
      if (!merge || (best && merge->rank >= best->rank)) continue;
      best = merge;
      place = i;
    }
    if (!best) break;
    symbols[place] = best->id;
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(place) + 1);
  }
  for (const uint32_t symbol : symbols) {
    if (symbol != no_symbol) {
      ids.push_back(symbol);
    } else if (data_.unknown) {
      ids.push_back(*data_.unknown);
    }
  }
}

// Encodes the text between two added tokens. Bytes that are not UTF-8 are pieces of their own.
void ReferenceTokenizer::encode_segment(std::string_view text, Ids& ids) const {
  bool is_start = true;
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    if (valid > 0) {
      const std::string plain = normalized(text.substr(0, valid), is_start);
      if (is_byte_level()) {
        for (const std::string_view piece : split_by_hand(data_.pre_tokenizer, plain)) encode_piece(piece, ids);
      } else {
        encode_piece(plain, ids);
      }
    }
    is_start = false;
    text.remove_prefix(valid);
    if (text.empty()) return;
    const size_t damaged = next_utf8(text).length;
    encode_piece(text.substr(0, damaged), ids);
    text.remove_prefix(damaged);
  }
}

std::vector<ReferenceTokenizer::Part> ReferenceTokenizer::parts_of(std::string_view text) const {
  std::vector<Part> parts;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const auto token = user_defined_at(text.substr(at));
    if (!token) {
      ++at;
      continue;
    }
    if (at > begin) parts.push_back({text.substr(begin, at - begin), std::nullopt});
    parts.push_back({text.substr(at, data_.tokens[*token].size()), token});
    at += data_.tokens[*token].size();
    begin = at;
  }
  if (begin < text.size()) parts.push_back({text.substr(begin), std::nullopt});
  return parts;
}

std::vector<uint32_t> ReferenceTokenizer::encode(std::string_view text) const {
  Ids ids;
  for (const Part& part : parts_of(text)) {
    if (part.token) {
      ids.push_back(*part.token);
    } else {
      encode_segment(part.text, ids);
    }
  }
  return ids;
}

std::string ReferenceTokenizer::round_trip(std::string_view text) const {
  std::string bytes;
  for (const Part& part : parts_of(text)) {
    const bool has_space = !part.token && puts_space_in_front(data_) && valid_utf8_prefix(part.text) > 0;
    bytes += has_space ? " " : "";
    if (!is_byte_level()) {
      bytes += text_of_marked(part.text);
    } else {
      bytes += composes(data_) && !part.token ? composed_where_valid(part.text) : std::string(part.text);
    }
  }
  if (puts_space_in_front(data_) && bytes.starts_with(' ')) bytes.erase(0, 1);
  return to_valid_utf8(bytes);
}

}  // namespace canopy::fuzz

#include "engine/text/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/printable.h"
#include "engine/format/named_tokens.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

std::vector<AddedToken> as_written(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> found;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(found),
               [](const AddedToken& token) { return !token.in_normalized_text; });
  return found;
}

// FNV-1a over the bytes and the type of each token, with its length in front.
uint64_t identity_of(const std::vector<std::string>& bytes, const std::vector<TokenType>& types) {
  uint64_t hash = 0xCBF29CE484222325u;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001B3u; };
  for (size_t id = 0; id < bytes.size(); ++id) {
    for (int shift = 0; shift < 32; shift += 8) add(static_cast<unsigned char>(bytes[id].size() >> shift));
    for (const char c : bytes[id]) add(static_cast<unsigned char>(c));
    add(id < types.size() ? static_cast<unsigned char>(types[id]) : 0);
  }
  return hash;
}

}  // namespace

Tokenizer::Tokenizer(Table table)
    : bytes_(std::move(table.bytes)),
      types_(std::move(table.types)),
      identity_(identity_of(bytes_, types_)),
      added_(as_written(table.added)),
      all_added_(std::move(table.added)),
      bos_(table.bos),
      eos_(table.eos),
      add_bos_(table.add_bos),
      drops_leading_space_(table.drops_leading_space),
      chat_template_(std::move(table.chat_template)) {
  const std::vector<std::string_view> spellings(bytes_.begin(), bytes_.end());
  std::vector<int32_t> numbers;
  for (const TokenType type : types_) numbers.push_back(static_cast<int32_t>(type));
  NamedTokens named = named_tokens(spellings, numbers);
  end_ids_ = std::move(named.ends);
  message_end_ids_ = std::move(named.message_ends);
  if (eos_ && !std::binary_search(message_end_ids_.begin(), message_end_ids_.end(), *eos_)) end_ids_.push_back(*eos_);
  std::erase_if(end_ids_, [&](uint32_t id) { return !is_special(id) && id != eos_; });
  std::sort(end_ids_.begin(), end_ids_.end());
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  const TextSpan span{text, special};
  return encode(std::span(&span, 1));
}

std::vector<uint32_t> Tokenizer::encode(std::span<const TextSpan> spans, TextPlace place) const {
  std::string text;
  std::vector<TextRange> special_ranges;
  for (const TextSpan& span : spans) {
    if (span.special == SpecialTokens::parse) special_ranges.push_back({text.size(), text.size() + span.text.size()});
    text.append(span.text);
  }
  std::vector<uint32_t> ids;
  size_t at = 0;
  while (at < text.size()) {
    const auto match = added_.find(text, at, special_ranges);
    const size_t ordinary_end = match ? match->begin : text.size();
    const std::string_view ordinary = std::string_view(text).substr(at, ordinary_end - at);
    if (!ordinary.empty()) encode_ordinary(ordinary, at == 0 ? place : TextPlace::segment_start, ids);
    if (!match) break;
    ids.push_back(match->token->id);
    at = match->end;
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const uint32_t id : ids) {
    if (!skip_special || !is_special(id)) bytes.append(token_bytes(id));
  }
  if (drops_leading_space_ && bytes.starts_with(' ')) bytes.erase(0, 1);
  return to_valid_utf8(bytes);
}

std::string_view Tokenizer::token_bytes(uint32_t id) const {
  return id < bytes_.size() ? std::string_view(bytes_[id]) : std::string_view();
}

std::string Tokenizer::piece(uint32_t id) const {
  return printable(token_bytes(id));
}

bool Tokenizer::is_special(uint32_t id) const {
  return id < types_.size() && (types_[id] == TokenType::control || types_[id] == TokenType::unknown);
}

std::optional<uint32_t> Tokenizer::find_special(std::string_view spelling) const {
  const AddedToken* token = all_added_.lookup(spelling);
  return token == nullptr ? std::nullopt : std::optional(token->id);
}

}  // namespace canopy

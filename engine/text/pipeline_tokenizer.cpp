#include "engine/text/pipeline_tokenizer.h"

#include <utility>

#include "engine/text/utf8.h"

namespace canopy {
namespace {

// The tokens that are looked for in normalized text, spelled as they look there.
std::vector<AddedToken> normalized_tokens(std::span<const AddedToken> added, const TextNormalizer& normalizer) {
  std::vector<AddedToken> found;
  std::string buffer;
  for (const AddedToken& token : added) {
    if (!token.in_normalized_text || valid_utf8_prefix(token.spelling) < token.spelling.size()) continue;
    found.push_back(token);
    found.back().spelling = std::string(normalizer.apply(token.spelling, TextPlace::text_start, buffer));
  }
  return found;
}

}  // namespace

Tokenizer::Table PipelineTokenizer::table_of(const VocabularyData& data, std::vector<AddedToken> added,
                                             bool drops_leading_space) {
  validate_vocabulary(data);
  Table table;
  table.types.reserve(data.tokens.size());
  table.bytes.reserve(data.tokens.size());
  for (size_t id = 0; id < data.tokens.size(); ++id) table.types.push_back(type_of_token(data, id));
  table.added = std::move(added);
  table.bos = data.bos;
  table.eos = data.eos;
  table.add_bos = data.add_bos.value_or(false) && data.bos.has_value();
  table.drops_leading_space = drops_leading_space;
  table.chat_template = data.chat_template;
  return table;
}

PipelineTokenizer::PipelineTokenizer(Table table, TextNormalizer normalizer, PreTokenizer pre_tokenizer)
    : Tokenizer(table),
      normalizer_(std::move(normalizer)),
      pre_tokenizer_(std::move(pre_tokenizer)),
      normalized_added_(normalized_tokens(table.added, normalizer_)) {}

void PipelineTokenizer::encode_ordinary(std::string_view bytes, TextPlace place, std::vector<uint32_t>& ids) const {
  std::string buffer;
  std::vector<std::string_view> pieces;
  while (!bytes.empty()) {
    const size_t valid = valid_utf8_prefix(bytes);
    const std::string_view text =
        valid > 0 ? normalizer_.apply(bytes.substr(0, valid), place, buffer) : std::string_view();
    for (size_t at = 0; at < text.size();) {
      const auto match = normalized_added_.find(text, at, {});
      const size_t end = match ? match->begin : text.size();
      if (end > at) {
        pre_tokenizer_.split(text.substr(at, end - at), pieces);
        encode_pieces(pieces, ids);
      }
      if (!match) break;
      ids.push_back(match->token->id);
      at = match->end;
    }
    place = TextPlace::inside;
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const std::string_view damaged = bytes.substr(0, next_utf8(bytes).length);
    encode_pieces({&damaged, 1}, ids);
    bytes.remove_prefix(damaged.size());
  }
}

}  // namespace canopy

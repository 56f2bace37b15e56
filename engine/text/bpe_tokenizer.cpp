#include "engine/text/bpe_tokenizer.h"

#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/text/byte_alphabet.h"
#include "engine/text/byte_token.h"
#include "engine/text/utf8.h"
#include "engine/text/vocabulary_merges.h"

namespace canopy {
namespace {

using Alphabet = BpeTokenizer::Alphabet;

uint32_t checked_byte_of_token(const VocabularyData& data, size_t id) {
  if (const auto byte = byte_of_token(data.tokens[id])) return *byte;
  throw bad_input("Token " + std::to_string(id) + " is of the type byte, but its text is not of the form <0x0A>.");
}

bool is_ordinary(TokenType type) {
  return type == TokenType::normal || type == TokenType::user_defined;
}

// The bytes that a token stands for.
std::string bytes_of(const VocabularyData& data, size_t id, Alphabet alphabet) {
  const std::string_view token = data.tokens[id];
  const TokenType type = type_of_token(data, id);
  if (alphabet == Alphabet::bytes) return type == TokenType::normal ? bytes_of_token(token) : std::string(token);
  if (type == TokenType::byte) return std::string(1, static_cast<char>(checked_byte_of_token(data, id)));
  return is_ordinary(type) ? text_of_marked(token) : std::string(token);
}

// Tokens by their spelling in the file, as merges name them. A normal token wins over another one of the same spelling.
TokenIndex index_spellings(const VocabularyData& data) {
  TokenIndex index;
  for (const bool normal : {true, false}) {
    for (size_t id = 0; id < data.tokens.size(); ++id) {
      const TokenType type = type_of_token(data, id);
      if (type != TokenType::unused && (type == TokenType::normal) == normal) {
        index.add(data.tokens[id], static_cast<uint32_t>(id));
      }
    }
  }
  return index;
}

// Tokens by their text in a piece; only those that text may become.
TokenIndex index_pieces(const VocabularyData& data, Alphabet alphabet) {
  TokenIndex index;
  for (const TokenType wanted : {TokenType::normal, TokenType::user_defined}) {
    for (size_t id = 0; id < data.tokens.size(); ++id) {
      if (type_of_token(data, id) != wanted) continue;
      if (alphabet == Alphabet::bytes) {
        index.add(bytes_of(data, id, alphabet), static_cast<uint32_t>(id));
      } else {
        index.add(data.tokens[id], static_cast<uint32_t>(id));
      }
    }
  }
  return index;
}

BaseSymbols base_symbols(const VocabularyData& data, const TokenIndex& spellings, const TokenIndex& pieces,
                         const BpeTokenizer::Options& options) {
  if (options.alphabet == Alphabet::bytes) return BaseSymbols::of_bytes(spellings, options.unknown);
  BaseSymbols::Fallback fallback{{}, options.unknown, options.fuses_unknown, options.ranks_by_score};
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (type_of_token(data, id) != TokenType::byte) continue;
    fallback.byte_tokens[checked_byte_of_token(data, id)] = static_cast<uint32_t>(id);
  }
  return BaseSymbols::of_characters(pieces, fallback);
}

}  // namespace

Tokenizer::Table BpeTokenizer::table_of(const VocabularyData& data, std::vector<AddedToken> added,
                                        const Options& options) {
  Table table = PipelineTokenizer::table_of(data, std::move(added), options.drops_leading_space);
  for (size_t id = 0; id < data.tokens.size(); ++id) table.bytes.push_back(bytes_of(data, id, options.alphabet));
  return table;
}

BpeTokenizer::BpeTokenizer(const VocabularyData& data, std::vector<AddedToken> added, Options options)
    : PipelineTokenizer(table_of(data, std::move(added), options), std::move(options.normalizer),
                        std::move(options.pre_tokenizer)),
      options_(std::move(options)),
      reproduced_(data.tokens.size()) {
  const TokenIndex spellings = index_spellings(data);
  whole_ = index_pieces(data, options_.alphabet);
  base_ = base_symbols(data, spellings, whole_, options_);
  VocabularyMerges merges = options_.ranks_by_score ? scored_merges(data, whole_) : listed_merges(data, spellings);
  merges_ = std::move(merges.table);
  cuts_words_ = options_.alphabet == Alphabet::characters && !merges.joins_words && !options_.ignore_merges &&
                whole_.find(word_mark).has_value() && keeps_marks_apart(data);
}

// Whether two marks that merge were neighbours in the text. Where merges are listed, symbols are all there is: a
// character that is dropped, or whose unknown token is a mark itself, brings the marks around it together.
bool BpeTokenizer::keeps_marks_apart(const VocabularyData& data) const {
  if (options_.ranks_by_score) return true;
  if (base_.drops_characters()) return false;
  return !options_.unknown || !data.tokens[*options_.unknown].ends_with(word_mark);
}

void BpeTokenizer::encode_pieces(std::span<const std::string_view> pieces, std::vector<uint32_t>& ids) const {
  Scratch scratch;
  for (const std::string_view piece : pieces) {
    if (cuts_words_) {
      encode_words(piece, scratch, ids);
    } else {
      encode_piece(piece, scratch, ids);
    }
  }
}

// Without pre-tokenizer a whole text is one piece. Where no merge can join the end of a word to the mark in front of
// the next, the words merge as if each stood alone.
void BpeTokenizer::encode_words(std::string_view text, Scratch& scratch, std::vector<uint32_t>& ids) const {
  size_t begin = 0;
  size_t mark = text.find(word_mark, 1);
  for (; mark != std::string_view::npos; mark = text.find(word_mark, mark + word_mark.size())) {
    if (text.substr(0, mark).ends_with(word_mark)) continue;
    encode_piece(text.substr(begin, mark - begin), scratch, ids);
    begin = mark;
  }
  encode_piece(text.substr(begin), scratch, ids);
}

void BpeTokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<uint32_t>& ids) const {
  const auto whole = whole_.find(piece);
  const bool counts_at_once =
      whole && (options_.ignore_merges || reproduced_[*whole].load(std::memory_order_relaxed) == Whole::yes);
  if (counts_at_once) {
    ids.push_back(*whole);
    return;
  }
  auto& symbols = scratch.symbols;
  symbols.clear();
  base_.append(piece, symbols);
  if (symbols.size() >= std::numeric_limits<uint32_t>::max()) {
    throw bad_input("A text of more than 4 GiB cannot be tokenized.");
  }
  merges_.apply(symbols, scratch.merging);
  base_.release_places(symbols);
  if (whole) {
    const bool reproduced = symbols.size() == 1 && symbols[0] == *whole;
    reproduced_[*whole].store(reproduced ? Whole::yes : Whole::no, std::memory_order_relaxed);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

}  // namespace canopy

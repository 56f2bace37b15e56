#include "engine/text/bpe_tokenizer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/base/text.h"
#include "engine/text/unicode.h"

namespace canopy {
namespace {

uint64_t mixed(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= 0x9E3779B97F4A7C15u;
  hash ^= hash >> 29;
  return hash;
}

// Eight bytes at a time: most pieces of a text are one or two words.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = text.size() * 0xBF58476D1CE4E5B9u;
  while (text.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    hash = mixed(hash ^ word) * 0x94D049BB133111EBu;
    text.remove_prefix(sizeof word);
  }
  uint64_t word = 0;
  std::memcpy(&word, text.data(), text.size());
  return mixed(mixed(hash ^ word) * 0x94D049BB133111EBu);
}

}  // namespace

TokenIndex::TokenIndex() : slots_(16) {}

size_t TokenIndex::slot_of(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = static_cast<size_t>(hash) & mask;
  for (; slots_[at].entry != 0; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && text_of(entries_[slots_[at].entry - 1]) == text) break;
  }
  return at;
}

void TokenIndex::grow() {
  slots_.assign(slots_.size() * 2, {});
  for (size_t i = 0; i < entries_.size(); ++i) {
    const uint64_t hash = hash_of(text_of(entries_[i]));
    slots_[slot_of(text_of(entries_[i]), hash)] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(i + 1)};
  }
}

void TokenIndex::add(std::string_view text, uint32_t id) {
  if (text.empty() || id == std::numeric_limits<uint32_t>::max()) return;
  if ((entries_.size() + 1) * 2 > slots_.size()) grow();
  const uint64_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.entry != 0) return;
  const auto begin = checked_cast<uint32_t>(texts_.size(), "length of all tokens together");
  entries_.push_back({begin, checked_cast<uint32_t>(text.size(), "length of a token"), id});
  texts_.append(text);
  slot = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(entries_.size())};
  longest_ = std::max(longest_, text.size());
}

std::optional<uint32_t> TokenIndex::find(std::string_view text) const {
  if (text.empty() || text.size() > longest_) return std::nullopt;
  const Slot& slot = slots_[slot_of(text, hash_of(text))];
  if (slot.entry == 0) return std::nullopt;
  return entries_[slot.entry - 1].id;
}

BaseSymbols BaseSymbols::of_bytes(const TokenIndex& tokens, std::optional<uint32_t> unknown) {
  BaseSymbols symbols;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto id = tokens.find(byte_level_character(static_cast<unsigned char>(byte)));
    symbols.single_ids_[byte] = id ? id : unknown;
  }
  return symbols;
}

BaseSymbols BaseSymbols::of_characters(const TokenIndex& tokens, const Fallback& fallback) {
  BaseSymbols symbols;
  symbols.characters_ = &tokens;
  symbols.fallback_ = fallback;
  for (uint32_t byte = 0; byte < 0x80; ++byte) {
    const char character = static_cast<char>(byte);
    symbols.single_ids_[byte] = tokens.find({&character, 1});
  }
  return symbols;
}

void BaseSymbols::append(std::string_view piece, std::vector<uint32_t>& symbols) const {
  if (characters_ == nullptr) {
    for (const char c : piece) {
      const auto& id = single_ids_[static_cast<unsigned char>(c)];
      if (id) symbols.push_back(*id);
    }
    return;
  }
  for (size_t at = 0, length = 0; at < piece.size(); at += length) {
    const auto byte = static_cast<unsigned char>(piece[at]);
    length = byte < 0x80 ? 1 : next_utf8(piece.substr(at)).length;
    const std::string_view character = piece.substr(at, length);
    const auto id = byte < 0x80 ? single_ids_[byte] : characters_->find(character);
    if (id) {
      symbols.push_back(*id);
    } else {
      append_fallback(character, symbols);
    }
  }
}

void BaseSymbols::append_fallback(std::string_view character, std::vector<uint32_t>& symbols) const {
  const auto token_of = [&](char c) { return fallback_.byte_tokens[static_cast<unsigned char>(c)]; };
  if (std::all_of(character.begin(), character.end(), [&](char c) { return token_of(c).has_value(); })) {
    for (const char c : character) symbols.push_back(*token_of(c));
    return;
  }
  if (fallback_.holds_place) {
    if (symbols.empty() || symbols.back() != place_holder) symbols.push_back(place_holder);
    return;
  }
  if (!fallback_.unknown) return;
  const bool follows_one = !symbols.empty() && symbols.back() == *fallback_.unknown;
  if (!fallback_.fuses_unknown || !follows_one) symbols.push_back(*fallback_.unknown);
}

void BaseSymbols::release_places(std::vector<uint32_t>& symbols) const {
  if (!fallback_.holds_place) return;
  if (fallback_.unknown) {
    std::replace(symbols.begin(), symbols.end(), place_holder, *fallback_.unknown);
  } else {
    std::erase(symbols, place_holder);
  }
}

bool BaseSymbols::drops_characters() const {
  const auto has_token = [](const std::optional<uint32_t>& id) { return id.has_value(); };
  return !fallback_.unknown && !std::all_of(fallback_.byte_tokens.begin(), fallback_.byte_tokens.end(), has_token);
}

namespace {

constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

// Up to this many symbols, looking through all pairs for the best one is faster than keeping them in order.
constexpr size_t short_piece = 48;

// The lowest rank comes out first; between equal ones the leftmost, for the position is the lower half.
constexpr auto later = std::greater<uint64_t>();

}  // namespace

MergeTable::MergeTable(size_t expected) {
  grow(std::bit_ceil(std::max<size_t>(16, expected + expected / 2)));
}

void MergeTable::grow(size_t capacity) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(capacity));
  mask_ = capacity - 1;
  used_ = 0;
  for (const Slot& slot : old) {
    if (slot.key != empty) add(static_cast<uint32_t>(slot.key >> 32), static_cast<uint32_t>(slot.key), slot.merge);
  }
}

void MergeTable::add(uint32_t left, uint32_t right, Merge merge) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow(slots_.size() * 2);
  const uint64_t key = key_of(left, right);
  size_t at = home(key);
  while (slots_[at].key != empty && slots_[at].key != key) at = (at + 1) & mask_;
  if (slots_[at].key == key) return;
  slots_[at] = {key, merge};
  ++used_;
}

void MergeTable::apply(std::vector<uint32_t>& symbols, Scratch& scratch) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= short_piece) {
    apply_short(symbols, scratch);
  } else {
    apply_long(symbols, scratch);
  }
}

void MergeTable::apply_short(std::vector<uint32_t>& symbols, Scratch& scratch) const {
  auto& rank = scratch.rank;
  auto& id = scratch.id;
  size_t count = symbols.size();
  rank.assign(count, none);
  id.resize(count);
  const auto look_up = [&](size_t left) {
    const Merge* merge = left + 1 < count ? find(symbols[left], symbols[left + 1]) : nullptr;
    rank[left] = merge != nullptr ? merge->rank : none;
    if (merge != nullptr) id[left] = merge->id;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    const auto best = std::min_element(rank.begin(), rank.begin() + static_cast<ptrdiff_t>(count - 1));
    if (*best == none) break;
    const auto left = best - rank.begin();
    symbols[static_cast<size_t>(left)] = id[static_cast<size_t>(left)];
    const auto last = static_cast<ptrdiff_t>(count);
    std::move(symbols.begin() + left + 2, symbols.begin() + last, symbols.begin() + left + 1);
    std::move(rank.begin() + left + 2, rank.begin() + last, rank.begin() + left + 1);
    std::move(id.begin() + left + 2, id.begin() + last, id.begin() + left + 1);
    --count;
    look_up(static_cast<size_t>(left));
    if (left > 0) look_up(static_cast<size_t>(left) - 1);
  }
  symbols.resize(count);
}

void MergeTable::apply_long(std::vector<uint32_t>& symbols, Scratch& scratch) const {
  // No structured binding: clang 14 cannot capture those in lambdas.
  auto& rank = scratch.rank;
  auto& id = scratch.id;
  auto& next = scratch.next;
  auto& previous = scratch.previous;
  auto& queue = scratch.queue;
  const auto count = static_cast<uint32_t>(symbols.size());
  rank.assign(count, none);
  id.resize(count);
  next.resize(count);
  previous.resize(count);
  queue.clear();
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : none;
    previous[i] = i > 0 ? i - 1 : none;
  }
  // Notes the pair that begins at a symbol; true when it can merge.
  const auto look_up = [&](uint32_t left) {
    const Merge* merge = next[left] != none ? find(symbols[left], symbols[next[left]]) : nullptr;
    rank[left] = merge != nullptr ? merge->rank : none;
    if (merge == nullptr) return false;
    id[left] = merge->id;
    return true;
  };
  const auto offer = [&](uint32_t left) {
    if (!look_up(left)) return;
    queue.push_back(uint64_t{rank[left]} << 32 | left);
    std::push_heap(queue.begin(), queue.end(), later);
  };
  for (uint32_t i = 0; i + 1 < count; ++i) {
    if (look_up(i)) queue.push_back(uint64_t{rank[i]} << 32 | i);
  }
  std::make_heap(queue.begin(), queue.end(), later);
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), later);
    const uint64_t entry = queue.back();
    queue.pop_back();
    const auto left = static_cast<uint32_t>(entry);
    if (rank[left] != entry >> 32) continue;  // the pair has changed since it was queued
    const uint32_t right = next[left];
    symbols[left] = id[left];
    rank[right] = none;  // gone
    next[left] = next[right];
    if (next[right] != none) previous[next[right]] = left;
    if (previous[left] != none) offer(previous[left]);
    offer(left);
  }
  // The first symbol never goes, and what is left moves towards it.
  uint32_t kept = 0;
  for (uint32_t i = 0; i != none; i = next[i]) symbols[kept++] = symbols[i];
  symbols.resize(kept);
}

namespace {

// The merges of a vocabulary: those that its file lists, or those that follow from its scores.

struct VocabularyMerges {
  MergeTable table;
  bool joins_words = false;  // some merge has a word mark inside that does not follow another one
};

// A token is cut in two at each of its characters; SentencePiece itself trains tokens of at most 16 characters, and
// runs of spaces of a few dozen.
constexpr size_t longest_scored_token = 1024;  // bytes

struct Split {
  std::string_view left, right;
  uint32_t left_id = 0, right_id = 0, merged_id = 0;
};

void add(VocabularyMerges& merges, const Split& split, uint32_t rank) {
  merges.table.add(split.left_id, split.right_id, {rank, split.merged_id});
  merges.joins_words |= split.right.starts_with(word_mark) && !split.left.ends_with(word_mark);
}

[[noreturn]] void refuse_token(std::string_view merge, size_t rank, std::string_view token) {
  throw bad_input("Merge " + std::to_string(rank) + ", \"" + printable(merge, 80) + "\", needs the token \"" +
                  printable(token, 80) + "\", which is not in the vocabulary.");
}

// A token may hold spaces itself, so every space is tried; almost always there is one.
Split read_merge(std::string_view merge, size_t rank, const TokenIndex& tokens) {
  const size_t first = merge.find(' ', 1);
  if (merge.empty() || first == std::string_view::npos || first + 1 == merge.size()) {
    throw bad_input("Merge " + std::to_string(rank) + " is \"" + printable(merge, 80) +
                    "\"; it must be two tokens with a space between them.");
  }
  std::string merged;
  for (size_t space = first; space != std::string_view::npos; space = merge.find(' ', space + 1)) {
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const auto left_id = tokens.find(left);
    const auto right_id = tokens.find(right);
    if (!left_id || !right_id) continue;
    merged.assign(left).append(right);
    const auto merged_id = tokens.find(merged);
    if (merged_id) return {left, right, *left_id, *right_id, *merged_id};
    if (merge.find(' ', space + 1) == std::string_view::npos) refuse_token(merge, rank, merged);
  }
  const std::string_view left = merge.substr(0, first);
  refuse_token(merge, rank, tokens.find(left) ? merge.substr(first + 1) : left);
}

// Ranks by token; equal scores share one, so that of equal ones the leftmost merges first.
std::vector<uint32_t> ranks_of_scores(const std::vector<float>& scores) {
  std::vector<float> order(scores);
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<uint32_t> ranks;
  ranks.reserve(scores.size());
  for (const float score : scores) {
    const auto at = std::lower_bound(order.begin(), order.end(), score, std::greater<>());
    ranks.push_back(static_cast<uint32_t>(at - order.begin()));
  }
  return ranks;
}

void check_scores(const VocabularyData& data) {
  if (data.scores.size() != data.tokens.size()) {
    throw bad_input("The vocabulary has " + std::to_string(data.tokens.size()) + " tokens but " +
                    std::to_string(data.scores.size()) +
                    " scores; a tokenizer of the kind \"llama\" needs one for each.");
  }
  const auto nan = std::find_if(data.scores.begin(), data.scores.end(), [](float score) { return std::isnan(score); });
  if (nan != data.scores.end()) {
    throw bad_input("The score of token " + std::to_string(nan - data.scores.begin()) + " is not a number.");
  }
}

/// The ranks are the places in data.merges. Throws Error(bad_input) when a merge is no two tokens with a space between
/// them, or names a token that is not in the index.
VocabularyMerges listed_merges(const VocabularyData& data, const TokenIndex& tokens) {
  VocabularyMerges merges{MergeTable(data.merges.size())};
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    add(merges, read_merge(data.merges[rank], rank, tokens), static_cast<uint32_t>(rank));
  }
  return merges;
}

/// SentencePiece's rule: neighbours merge when together they are a token, the one with the highest score first. The
/// index holds the tokens that may merge. Throws Error(bad_input) when scores are missing or no numbers, or when a
/// token is absurdly long.
VocabularyMerges scored_merges(const VocabularyData& data, const TokenIndex& tokens) {
  check_scores(data);
  const std::vector<uint32_t> ranks = ranks_of_scores(data.scores);
  VocabularyMerges merges{MergeTable(2 * data.tokens.size())};
  for (uint32_t id = 0; id < data.tokens.size(); ++id) {
    const std::string_view token = data.tokens[id];
    if (tokens.find(token) != id) continue;  // one that never comes out of merging
    if (token.size() > longest_scored_token) {
      throw bad_input("Token " + std::to_string(id) + " is " + std::to_string(token.size()) + " bytes long; at most " +
                      std::to_string(longest_scored_token) + " are allowed.");
    }
    for (size_t at = next_utf8(token).length; at < token.size(); at += next_utf8(token.substr(at)).length) {
      const std::string_view left = token.substr(0, at);
      const std::string_view right = token.substr(at);
      const auto left_id = tokens.find(left);
      const auto right_id = tokens.find(right);
      if (left_id && right_id) add(merges, {left, right, *left_id, *right_id, id}, ranks[id]);
    }
  }
  return merges;
}

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
    throw bad_input("A text of more than 4 GB cannot be tokenized.");
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

#include "engine/text/byte_level_bpe.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/byte_alphabet.h"
#include "engine/text/normalizer.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

TokenType type_of(const VocabularyData& data, size_t id) {
  if (data.types.empty()) return TokenType::normal;
  const int32_t type = data.types[id];
  if (type == 0) return TokenType::normal;  // older converters leave it undefined
  if (type < 1 || type > 6) {
    throw bad_input("Token " + std::to_string(id) + " has the type " + std::to_string(type) + "; allowed are 1 to 6.");
  }
  return static_cast<TokenType>(type);
}

void check_id(const VocabularyData& data, const char* role, const std::optional<uint32_t>& id) {
  if (id && *id >= data.tokens.size()) {
    throw bad_input(std::string("The ") + role + " token has the id " + std::to_string(*id) +
                    ", but the vocabulary has only " + std::to_string(data.tokens.size()) + " entries.");
  }
}

void validate_vocabulary(const VocabularyData& data) {
  if (data.tokens.empty()) throw bad_input("The vocabulary has no tokens.");
  if (data.tokens.size() >= none) throw bad_input("The vocabulary has more than 2^32 - 2 tokens.");
  if (!data.types.empty() && data.types.size() != data.tokens.size()) {
    throw bad_input("The vocabulary has " + std::to_string(data.tokens.size()) + " tokens but " +
                    std::to_string(data.types.size()) + " token types.");
  }
  check_id(data, "begin-of-text", data.bos);
  check_id(data, "end-of-text", data.eos);
  check_id(data, "unknown", data.unknown);
  check_id(data, "padding", data.padding);
  check_id(data, "stand-in", data.token_less_byte);
}

// A neighbouring pair that could merge. Stale entries stay in the queue and are recognised when they come out.
struct Pair {
  uint32_t rank = 0;
  uint32_t left = 0;  // position of the left symbol
  uint32_t left_id = 0;
  uint32_t right_id = 0;
  uint32_t merged_id = 0;

  // The queue gives the lowest rank first, and the leftmost of equal ones.
  bool operator<(const Pair& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
};

}  // namespace

std::vector<AddedToken> ByteLevelBpe::added_by_type(const VocabularyData& data) {
  validate_vocabulary(data);
  std::vector<AddedToken> added;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    const TokenType type = type_of(data, id);
    const bool special = type == TokenType::control || type == TokenType::unknown;
    if (special || type == TokenType::user_defined) {
      added.push_back({static_cast<uint32_t>(id), std::string(data.tokens[id]), special, false, false});
    }
  }
  return added;
}

ByteLevelBpe::ByteLevelBpe(const VocabularyData& data, std::vector<AddedToken> added, PreTokenizer pre_tokenizer,
                           Options options)
    : Tokenizer([&] {
        validate_vocabulary(data);
        Table table;
        table.bytes.reserve(data.tokens.size());
        table.types.reserve(data.tokens.size());
        for (size_t id = 0; id < data.tokens.size(); ++id) {
          const TokenType type = type_of(data, id);
          table.types.push_back(type);
          table.bytes.push_back(type == TokenType::normal ? bytes_of_token(data.tokens[id])
                                                          : std::string(data.tokens[id]));
        }
        table.added = std::move(added);
        table.bos = data.bos;
        table.eos = data.eos;
        table.add_bos = data.add_bos && data.bos.has_value();
        table.chat_template = data.chat_template;
        return table;
      }()),
      pre_tokenizer_(std::move(pre_tokenizer)),
      options_(options) {
  byte_ids_.fill(data.token_less_byte);
  std::unordered_map<std::string_view, uint32_t> ids;
  ids.reserve(data.tokens.size());
  for (const bool normal : {true, false}) {  // a normal token wins over another one of the same spelling
    for (size_t id = 0; id < data.tokens.size(); ++id) {
      const TokenType type = type_of(data, id);
      if (type != TokenType::unused && (type == TokenType::normal) == normal) {
        ids.try_emplace(data.tokens[id], static_cast<uint32_t>(id));
      }
    }
  }
  index_bytes(ids);
  index_merges(data, ids);
  if (options_.ignore_merges) index_whole_tokens();
}

void ByteLevelBpe::index_bytes(const std::unordered_map<std::string_view, uint32_t>& ids) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(byte_level_character(static_cast<unsigned char>(byte)));
    if (found != ids.end()) byte_ids_[byte] = found->second;
  }
}

void ByteLevelBpe::index_merges(const VocabularyData& data, const std::unordered_map<std::string_view, uint32_t>& ids) {
  merges_.reserve(data.merges.size());
  const auto id_of = [&](std::string_view token, size_t rank) {
    const auto found = ids.find(token);
    if (found != ids.end()) return found->second;
    throw bad_input("Merge " + std::to_string(rank) + ", \"" + printable(data.merges[rank], 80) +
                    "\", needs the token \"" + printable(token, 80) + "\", which is not in the vocabulary.");
  };
  std::string merged;
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const size_t space = merge.find(' ', 1);
    if (merge.empty() || space == std::string_view::npos || space + 1 == merge.size()) {
      throw bad_input("Merge " + std::to_string(rank) + " is \"" + printable(merge, 80) +
                      "\"; it must be two tokens with a space between them.");
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    merged.assign(left).append(right);
    const uint64_t key = uint64_t{id_of(left, rank)} << 32 | id_of(right, rank);
    merges_.try_emplace(key, Merge{static_cast<uint32_t>(rank), id_of(merged, rank)});
  }
}

void ByteLevelBpe::index_whole_tokens() {
  whole_.reserve(vocab_size());
  for (uint32_t id = 0; id < vocab_size(); ++id) {
    if (!is_special(id) && !token_bytes(id).empty()) whole_.try_emplace(token_bytes(id), id);
  }
}

void ByteLevelBpe::encode_ordinary(std::string_view bytes, std::vector<uint32_t>& ids) const {
  while (!bytes.empty()) {
    const size_t valid = valid_utf8_prefix(bytes);
    if (valid > 0) encode_valid(bytes.substr(0, valid), ids);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    const size_t damaged = next_utf8(bytes).length;
    encode_piece(bytes.substr(0, damaged), ids);
    bytes.remove_prefix(damaged);
  }
}

void ByteLevelBpe::encode_valid(std::string_view text, std::vector<uint32_t>& ids) const {
  std::string normalized;
  if (options_.normalizer == Normalizer::nfc) {
    normalized = normalize_nfc(text);
    text = normalized;
  }
  for (const std::string_view piece : pre_tokenizer_.split(text)) encode_piece(piece, ids);
}

void ByteLevelBpe::encode_piece(std::string_view piece, std::vector<uint32_t>& ids) const {
  if (options_.ignore_merges) {
    const auto whole = whole_.find(piece);
    if (whole != whole_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  std::vector<uint32_t> symbols;
  symbols.reserve(piece.size());
  for (const char c : piece) {
    const auto& id = byte_ids_[static_cast<unsigned char>(c)];
    if (id) symbols.push_back(*id);
  }
  if (symbols.size() >= none) throw bad_input("A text of more than 4 GiB cannot be tokenized.");
  merge_piece(std::move(symbols), ids);
}

const ByteLevelBpe::Merge* ByteLevelBpe::find_merge(uint32_t left, uint32_t right) const {
  const auto found = merges_.find(uint64_t{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

// n log n in the symbols of the piece: neighbours are linked, and pairs wait in a queue by rank.
void ByteLevelBpe::merge_piece(std::vector<uint32_t> symbols, std::vector<uint32_t>& ids) const {
  const auto count = static_cast<uint32_t>(symbols.size());
  if (count == 0) return;
  std::vector<uint32_t> next(count);
  std::vector<uint32_t> previous(count);
  std::priority_queue<Pair> queue;
  const auto offer = [&](uint32_t left) {
    const uint32_t right = next[left];
    if (right == none) return;
    const Merge* merge = find_merge(symbols[left], symbols[right]);
    if (merge != nullptr) queue.push({merge->rank, left, symbols[left], symbols[right], merge->id});
  };
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1 < count ? i + 1 : none;
    previous[i] = i > 0 ? i - 1 : none;
  }
  for (uint32_t i = 0; i + 1 < count; ++i) offer(i);
  while (!queue.empty()) {
    const Pair pair = queue.top();
    queue.pop();
    const uint32_t right = next[pair.left];
    if (symbols[pair.left] != pair.left_id || right == none || symbols[right] != pair.right_id) continue;
    symbols[pair.left] = pair.merged_id;
    symbols[right] = none;  // gone: no entry of the queue matches it any more
    next[pair.left] = next[right];
    if (next[right] != none) previous[next[right]] = pair.left;
    if (previous[pair.left] != none) offer(previous[pair.left]);
    offer(pair.left);
  }
  for (uint32_t i = 0; i != none; i = next[i]) ids.push_back(symbols[i]);
}

}  // namespace canopy

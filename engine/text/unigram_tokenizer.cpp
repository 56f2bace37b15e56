#include "engine/text/unigram_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/base/error.h"
#include "engine/text/unicode.h"

namespace canopy {
namespace {

using Tokens = std::vector<std::pair<std::string_view, uint32_t>>;

// Tokens of a node: a range of the sorted list, which have their first `depth` bytes in common.
struct Range {
  size_t begin = 0, end = 0, depth = 0;
};

}  // namespace

PrefixTree::PrefixTree(Tokens tokens) {
  // A byte takes some thirty bytes of memory here, and each byte of a text is looked at as often as the longest token
  // has bytes.
  constexpr uint64_t most_bytes = 32 << 20, longest = 1024;
  uint64_t bytes = 0;
  for (const auto& [spelling, id] : tokens) {
    bytes += spelling.size();
    if (spelling.size() > longest) {
      throw bad_input("The token " + std::to_string(id) + " has " + std::to_string(spelling.size()) +
                      " bytes; at most " + std::to_string(longest) + " are allowed.");
    }
  }
  if (bytes > most_bytes) {
    throw bad_input("The tokens have " + std::to_string(bytes) + " bytes together; at most " +
                    std::to_string(most_bytes) + " are allowed.");
  }
  std::erase_if(tokens, [](const auto& token) { return token.first.empty(); });
  std::stable_sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // Breadth first, so that the children of a node lie together.
  std::vector<Range> ranges = {{0, tokens.size(), 0}};
  nodes_.emplace_back();
  for (size_t node = 0; node < ranges.size(); ++node) {
    Range range = ranges[node];
    while (range.begin < range.end && tokens[range.begin].first.size() == range.depth) {
      nodes_[node].token = tokens[range.begin++].second;
    }
    nodes_[node].children = static_cast<uint32_t>(nodes_.size());
    while (range.begin < range.end) {
      const char byte = tokens[range.begin].first[range.depth];
      size_t end = range.begin;
      while (end < range.end && tokens[end].first[range.depth] == byte) ++end;
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      ranges.push_back({range.begin, end, range.depth + 1});
      ++nodes_[node].count;
      range.begin = end;
    }
  }
}

uint32_t PrefixTree::child_of(uint32_t node, unsigned char byte) const {
  const auto begin = nodes_.begin() + nodes_[node].children;
  const auto end = begin + nodes_[node].count;
  const auto found =
      std::lower_bound(begin, end, byte, [](const Node& child, unsigned char b) { return child.byte < b; });
  return found == end || found->byte != byte ? none : static_cast<uint32_t>(found - nodes_.begin());
}

namespace {

constexpr double unknown_penalty = 10;  // below the least score, as in SentencePiece

std::string token_text(const VocabularyData& data, size_t id) {
  const TokenType type = type_of_token(data, id);
  if (type == TokenType::byte) return std::string(1, static_cast<char>(*byte_of_token(data.tokens[id])));
  const bool is_text = type == TokenType::normal || type == TokenType::user_defined;
  return is_text ? text_of_marked(data.tokens[id]) : std::string(data.tokens[id]);
}

PrefixTree tree_of(const VocabularyData& data) {
  std::vector<std::pair<std::string_view, uint32_t>> tokens;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    const TokenType type = type_of_token(data, id);
    if (type == TokenType::normal || type == TokenType::user_defined) {
      tokens.emplace_back(data.tokens[id], static_cast<uint32_t>(id));
    }
  }
  return PrefixTree(std::move(tokens));
}

}  // namespace

/// The best way to the end of a part of a piece.
struct UnigramTokenizer::Step {
  double score = -std::numeric_limits<double>::infinity();
  size_t begin = 0;  // of its last token
  uint32_t id = 0;
  bool is_reached = false;
};

Tokenizer::Table UnigramTokenizer::table_of(const VocabularyData& data, std::vector<AddedToken> added,
                                            const Options& options) {
  Table table = PipelineTokenizer::table_of(data, std::move(added), options.drops_leading_space);
  if (options.scores.size() != data.tokens.size()) {
    throw bad_input("The vocabulary has " + std::to_string(data.tokens.size()) + " tokens but " +
                    std::to_string(options.scores.size()) + " scores.");
  }
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (!std::isfinite(options.scores[id])) {
      throw bad_input("The score of token " + std::to_string(id) + " is not a number.");
    }
    table.bytes.push_back(token_text(data, id));
  }
  return table;
}

UnigramTokenizer::UnigramTokenizer(const VocabularyData& data, std::vector<AddedToken> added, Options options)
    : PipelineTokenizer(table_of(data, std::move(added), options), std::move(options.normalizer),
                        std::move(options.pre_tokenizer)),
      tokens_(tree_of(data)),
      scores_(std::move(options.scores)),
      unknown_(options.unknown) {
  unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - unknown_penalty;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (type_of_token(data, id) != TokenType::byte) continue;
    byte_tokens_[*byte_of_token(data.tokens[id])] = static_cast<uint32_t>(id);
  }
  if (unknown_ && *unknown_ >= data.tokens.size()) {
    throw bad_input("The unknown token has the id " + std::to_string(*unknown_) + ", but the vocabulary has only " +
                    std::to_string(data.tokens.size()) + " entries.");
  }
  const bool has_all_bytes =
      std::all_of(byte_tokens_.begin(), byte_tokens_.end(), [](const auto& id) { return id.has_value(); });
  if (!unknown_ && !has_all_bytes) {
    throw bad_input("The vocabulary has neither an unknown token nor a token for every byte.");
  }
}

void UnigramTokenizer::encode_pieces(std::span<const std::string_view> pieces, std::vector<uint32_t>& ids) const {
  std::vector<Step> steps;
  for (const std::string_view piece : pieces) encode_piece(piece, steps, ids);
}

void UnigramTokenizer::find_best(std::string_view piece, std::vector<Step>& steps) const {
  constexpr uint32_t no_token = 0xFFFFFFFF;  // a character without one
  steps.assign(piece.size() + 1, {});
  steps[0] = {0, 0, 0, true};
  const auto reach = [&](size_t begin, size_t end, uint32_t id, double score) {
    if (steps[end].is_reached && !(score > steps[end].score)) return;  // of equal ones the first stays
    steps[end] = {score, begin, id, true};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const std::string_view rest = piece.substr(begin);
    const size_t character = next_utf8(rest).length;
    const double score = steps[begin].score;
    bool has_character = false;
    tokens_.for_each_prefix(rest, [&](size_t length, uint32_t id) {
      reach(begin, begin + length, id, scores_[id] + score);
      has_character = has_character || length == character;
    });
    if (!has_character) reach(begin, begin + character, no_token, unknown_score_ + score);
    begin += character;
  }
}

void UnigramTokenizer::encode_piece(std::string_view piece, std::vector<Step>& steps,
                                    std::vector<uint32_t>& ids) const {
  find_best(piece, steps);
  std::vector<size_t> ends;
  for (size_t end = piece.size(); end > 0; end = steps[end].begin) ends.push_back(end);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const size_t begin = steps[*end].begin;
    if (steps[*end].id < scores_.size()) {
      ids.push_back(steps[*end].id);
      continue;
    }
    auto last = end;  // several characters in a row without a token
    while (last + 1 != ends.rend() && steps[*(last + 1)].id >= scores_.size()) ++last;
    append_unknown(piece.substr(begin, *last - begin), ids);
    end = last;
  }
}

void UnigramTokenizer::append_unknown(std::string_view text, std::vector<uint32_t>& ids) const {
  const bool has_bytes = std::all_of(text.begin(), text.end(),
                                     [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)].has_value(); });
  if (!has_bytes) return ids.push_back(*unknown_);
  for (const char c : text) ids.push_back(*byte_tokens_[static_cast<unsigned char>(c)]);
}

}  // namespace canopy

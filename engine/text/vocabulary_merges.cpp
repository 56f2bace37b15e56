#include "engine/text/vocabulary_merges.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/printable.h"
#include "engine/text/byte_token.h"
#include "engine/text/utf8.h"

namespace canopy {
namespace {

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

}  // namespace

VocabularyMerges listed_merges(const VocabularyData& data, const TokenIndex& tokens) {
  VocabularyMerges merges{MergeTable(data.merges.size())};
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    add(merges, read_merge(data.merges[rank], rank, tokens), static_cast<uint32_t>(rank));
  }
  return merges;
}

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

}  // namespace canopy

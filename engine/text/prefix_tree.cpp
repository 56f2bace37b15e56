#include "engine/text/prefix_tree.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"

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

}  // namespace canopy

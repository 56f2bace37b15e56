#pragma once
// Finds all tokens that a text begins with.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace canopy {

class PrefixTree {
 public:
  PrefixTree() = default;
  /// Tokens with their ids; empty ones are left out, and of equal ones the last id counts.
  explicit PrefixTree(std::vector<std::pair<std::string_view, uint32_t>> tokens);

  /// Calls found(length, id) for each token that the text begins with, the shortest first.
  template <class F>
  void for_each_prefix(std::string_view text, F&& found) const {
    uint32_t node = 0;
    for (size_t at = 0; at < text.size() && node < nodes_.size(); ++at) {
      const uint32_t child = child_of(node, static_cast<unsigned char>(text[at]));
      if (child == none) return;
      node = child;
      if (nodes_[node].token != none) found(at + 1, nodes_[node].token);
    }
  }

 private:
  static constexpr uint32_t none = 0xFFFFFFFF;
  struct Node {
    uint32_t children = 0;  // the first of them; they lie one after the other, by their bytes
    uint32_t token = none;
    uint16_t count = 0;  // of children
    unsigned char byte = 0;
  };

  uint32_t child_of(uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_;
};

}  // namespace canopy

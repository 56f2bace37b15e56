#pragma once
// Suffix drafts (SuffixDecoding, arXiv 2411.04975): what stood behind the last
// tokens of a text wherever they stood before, as a draft tree with
// probabilities by count. Costs no pass of any model.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/speculation/draft_source.h"

namespace canopy {

/// Counts of all strings of up to max_depth tokens in some texts. Paths without
/// a branch are one node, so memory grows with the texts and not with
/// max_depth; a token costs time in proportion to max_depth.
class SuffixTrie {
 public:
  /// Throws Error(bad_input) unless 1 <= max_depth <= kMostDepth.
  explicit SuffixTrie(uint32_t max_depth);

  static constexpr uint32_t kMostDepth = 256;

  uint32_t max_depth() const { return max_depth_; }

  /// Begins another text, to which append() adds from now on. The ones before
  /// stay as they are.
  void begin_text();
  void append(uint32_t token);
  void append(std::span<const uint32_t> tokens) {
    for (const uint32_t token : tokens) append(token);
  }
  /// Forgets the oldest text that is left. Not the one that append() adds to:
  /// throws std::logic_error.
  void forget_oldest();
  void clear();

  size_t texts() const { return texts_.size(); }
  /// Tokens of the texts that are left.
  size_t tokens() const { return live_tokens_; }
  size_t memory_bytes() const;

  /// A string that stands in the texts; of its own, the empty one: a node, and how many tokens of it and
  /// of the way to it are passed.
  struct Place {
    uint32_t node = 0;
    uint32_t into = 0;  // tokens of the node's own label that belong to the string
  };

  /// The string one token longer; false, and `place` as it was, where the texts
  /// do not have it.
  bool follow(Place& place, uint32_t token) const;
  /// The last `length` tokens of the text that append() adds to; at most own_end() of them.
  Place end_of_text(uint32_t length) const { return {ends_[length - 1], nodes_[ends_[length - 1]].length}; }
  uint32_t own_end() const { return static_cast<uint32_t>(ends_.size()); }
  /// Places in the texts where the string stands.
  uint32_t count(Place place) const { return nodes_[place.node].count; }

  struct Child {
    uint32_t token = 0;
    uint32_t count = 0;
    Place place;
  };
  /// Appends what stands behind the string: most frequent first, ties by the
  /// lower token.
  void children(Place place, std::vector<Child>& out) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Text {
    uint64_t first = 0;  // in tokens_, counted from the first text of all times
    uint64_t size = 0;
  };
  struct Node {
    uint32_t count = 0;
    uint32_t length = 0;  // of the label: tokens_[label ...]
    uint64_t label = 0;
    uint32_t parent = kNone;
    uint32_t first_child = kNone, next_sibling = kNone, previous_sibling = kNone;
    uint32_t children = 0;
  };

  // Every string that ends a text ends a node, so that all strings within a
  // label have the node's count.

  uint32_t token_at(uint64_t position) const { return tokens_[static_cast<size_t>(position - forgotten_)]; }
  uint32_t first_token(const Node& node) const { return token_at(node.label); }
  uint32_t child_of(uint32_t node, uint32_t token) const;
  uint32_t make_node();
  void link(uint32_t parent, uint32_t child);
  void unlink(uint32_t child);
  /// The string that ends the text at `node`, one token longer: that token's
  /// position. Returns its node.
  uint32_t extend(uint32_t node, uint64_t position);
  void rebuild();

  // Children by (parent, token), open addressing.
  struct Edge {
    uint32_t parent = kNone, token = 0, child = kNone;
  };
  size_t slot_of(uint32_t parent, uint32_t token) const;
  void put_edge(uint32_t parent, uint32_t token, uint32_t child);
  void drop_edge(uint32_t parent, uint32_t token);

  uint32_t max_depth_;
  std::deque<Text> texts_;
  std::vector<uint32_t> tokens_;
  uint64_t forgotten_ = 0;  // tokens in front of tokens_[0]
  size_t live_tokens_ = 0;
  std::vector<Node> nodes_;
  std::vector<uint32_t> free_;
  std::vector<Edge> edges_;
  size_t used_edges_ = 0;
  std::deque<uint32_t> ends_;  // nodes of the strings that end the text appended
                               // to: 1 token, 2 tokens, ...
};

/// How far suffix drafts go.
struct SuffixSettings {
  uint32_t most_nodes = 24;
  double factor = 1;     // nodes for each token of the match
  double offset = 0;     // and beside
  double least_p = 0.1;  // a path's probability by counts; less likely ones are left out
  bool tree = true;      // false: the likeliest path alone
};

struct SuffixNode {
  uint32_t token = 0;
  uint32_t parent = 0;  // 0: the root; n: node n - 1 of the draft
  double p = 0;         // of the path from the root: its count over the match's
  WentOn went_on = {};  // behind the path to its parent, wherever anything follows that
};

struct SuffixDraft {
  std::vector<SuffixNode> nodes;
  uint32_t match = 0;   // tokens that were found again
  uint32_t places = 0;  // where they stand, the end of the text appended to included
  double score = 0;     // sum of p: the tokens that counts expect to be right

  void clear() { nodes.clear(), match = 0, places = 0, score = 0; }
};

/// Whether the first of two drafts is the one to take: by score, the first where they are equal.
bool is_better_or_equal(const SuffixDraft& first, const SuffixDraft& second);

/// Looks for drafts; keeps its memory from one to the next.
class SuffixSearch {
 public:
  /// The best draft behind `context`, whose last token is the root: over all matches of its last 1 ... max_depth - 1
  /// tokens the one with the largest score, ties to the longer match. Empty where no end of the context stands
  /// elsewhere.
  void draft(const SuffixTrie& trie, std::span<const uint32_t> context, const SuffixSettings& settings,
             SuffixDraft& draft);

 private:
  struct Prospect {
    double p = 0;
    uint32_t token = 0;
    uint32_t parent = 0;  // in the draft, as SuffixNode::parent
    uint32_t depth = 0;
    uint32_t rank = 0;
    SuffixTrie::Place place;
    WentOn went_on;
    bool operator<(const Prospect& other) const;
  };

  void find_matches(const SuffixTrie& trie, std::span<const uint32_t> context);
  void grow(const SuffixTrie& trie, SuffixTrie::Place match, uint32_t budget, const SuffixSettings& settings,
            SuffixDraft& draft);

  std::vector<SuffixTrie::Place> matches_;  // [m - 1] where the last m tokens stand
  std::vector<Prospect> frontier_;          // a heap
  std::vector<SuffixTrie::Child> children_;
  SuffixDraft tried_;
};

// The drafts of a text that is being written, from what stands in it.

/// Reads prompt and reply as they grow, each token once.
class TextDrafter {
 public:
  static constexpr uint32_t kMostNodes = 32;
  /// Matches and the paths behind them, together: matches of 40 tokens leave room for 24.
  static constexpr uint32_t kDepth = 64;

  /// own: whether the text itself is looked up. earlier: texts that are, none of which is being written; null: none.
  /// They must outlive this.
  explicit TextDrafter(bool own = true, const SuffixTrie* earlier = nullptr);

  /// The text as it is now. One that is shorter than before is read anew, else it goes on as it was.
  void read(std::span<const uint32_t> text);
  /// What it suggests behind its last token, paths of at most `depths` tokens. Stays as it is until the next call.
  const FreeDraft& draft(uint32_t depths);

  size_t memory_bytes() const { return trie_.memory_bytes(); }

 private:
  struct Kept {
    uint32_t node = CandidateNode::root, depth = 0;
    double p = 1;
  };

  bool own_;
  const SuffixTrie* earlier_;
  SuffixTrie trie_;
  std::vector<uint32_t> end_;  // the last tokens
  size_t read_ = 0;
  SuffixSearch search_;
  SuffixDraft found_, found_earlier_;
  std::vector<Kept> kept_;  // by place in found_, the root first
  FreeDraft draft_;
};

}  // namespace canopy

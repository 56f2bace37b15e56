#pragma once
// One draft tree from several sources: what each of them expects behind a path becomes one distribution over the next
// token, and the best-first search of DDTree runs over these. Each node remembers who proposed it.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/ddtree.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

/// How the probabilities that sources give the same token become one.
enum class MergeRule {
  noisy_or,  // 1 - product of (1 - p): sources that err independently
  max,       // the largest
};

/// Adds nodes in order of the probability of their paths, as TreeBuilder does for one source of marginals. Equal
/// probabilities: the lower tuple of ranks first. Keeps its memory from tree to tree.
class MixedTreeBuilder {
 public:
  void begin(uint32_t root_token, MergeRule rule = MergeRule::noisy_or);

  /// A source that says the same of every path of a length: rows[d] lists what may follow a path of d tokens.
  /// `calibration` turns its log p, the last one of all longer paths; empty: none. Its nodes get the bit `source`, one
  /// that no other source of the tree has. Throws Error(bad_input) for a p outside (0, 1]; std::logic_error once next()
  /// was called.
  void add_rows(DraftSources source, std::span<const std::vector<TokenCandidate>> rows,
                std::span<const DepthCalibration> calibration = {});
  /// A source that says what may follow the paths that it names. Also throws for a parent that does not come before.
  void add_tree(DraftSources source, std::span<const CandidateNode> nodes,
                std::span<const DepthCalibration> calibration = {});

  /// Adds the most probable path that is not in the tree yet; false where there is none.
  bool next();
  void build(uint32_t budget) {
    while (tree_.drafted() < budget && next()) {
    }
  }
  /// Before next(): the path of the most probable token behind each token instead, at most `budget` of them.
  void build_chain(uint32_t budget);
  /// Keeps the first `width` nodes and ends the search.
  void cut(uint32_t width);

  const DraftTree& tree() const { return tree_; }
  /// Probability of a node's token given its path, of all sources together.
  double probability_of(uint32_t node) const { return probabilities_[node]; }

 private:
  struct Child {
    uint32_t token = 0;
    DraftSources sources = 0;
    double q = 0;
  };
  struct Source {
    DraftSources bit = 0;
    size_t depths = 0;                              // of rows
    std::vector<std::vector<TokenCandidate>> rows;  // [at least depths]
    std::vector<CandidateNode> nodes;
    std::vector<uint32_t> first_child;   // [nodes + 1] of node i - 1, [0] of the root; an index, or kNoNode
    std::vector<uint32_t> next_sibling;  // [nodes]
  };
  /// The merged children of a node: list_[first ... first + count).
  struct List {
    size_t first = 0;
    uint32_t count = 0;
    bool known = false;
  };
  struct Prospect {
    double score = 0;
    uint32_t parent = 0;
    uint32_t rank = 0;
  };

  Source& new_source(DraftSources bit);
  void start();
  uint32_t add_child(uint32_t parent, uint32_t rank, double score);
  void expand(uint32_t node);
  void take(DraftSources source, const TokenCandidate& candidate);
  void push(uint32_t parent, uint32_t rank);
  bool after(const Prospect& a, const Prospect& b) const;
  bool lower_ranks(Prospect a, Prospect b) const;

  MergeRule rule_ = MergeRule::noisy_or;
  std::vector<Source> sources_;  // [at least used_]: they keep their memory
  size_t used_ = 0;
  DraftTree tree_;
  std::vector<double> probabilities_;
  std::vector<uint32_t>
      places_;                  // by node and source: in `first_child` of that source; kLost where it has no such path
  std::vector<List> lists_;     // by node
  std::vector<List> of_depth_;  // of the nodes that only sources of rows know
  std::vector<Child> children_;
  std::vector<Prospect> frontier_;  // a heap: the best in front
  std::vector<Child> merged_;       // of the node that is expanded
  std::vector<size_t> depths_;      // of a source that is added
  bool started_ = false;
};

}  // namespace canopy

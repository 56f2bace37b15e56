#pragma once
// One draft tree from several sources: what each of them expects behind a path becomes one distribution over the next
// token, and the best-first search of DDTree runs over these. Each node remembers who proposed it.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/ddtree.h"

namespace canopy {

/// One token that a source expects behind a path, and its probability given the path.
struct TokenCandidate {
  uint32_t token = 0;
  double p = 0;
};

/// A token behind a path that a source names itself.
struct CandidateNode {
  static constexpr uint32_t root = UINT32_MAX;

  uint32_t parent = root;  // index in the list, smaller than this node's; `root` for children of the tree's root
  uint32_t token = 0;
  double p = 0;  // given the path
};

/// How the probabilities that sources give the same token become one.
enum class MergeRule {
  noisy_or,  // 1 - product of (1 - p): sources that err independently
  max,       // the largest
};

/// Adds nodes in order of the probability of their paths, as TreeBuilder does for one source of marginals. Equal
/// probabilities: the lower tuple of ranks first. Keeps its memory from tree to tree.
class MixedTreeBuilder {
 public:
  static constexpr uint32_t kMostSources = 32;

  void begin(uint32_t root_token, MergeRule rule = MergeRule::noisy_or);

  /// A source that says the same of every path of a length: rows[d] lists what may follow a path of d tokens.
  /// `calibration` turns its log p. Returns the number of the source. Throws Error(bad_input) for a p outside (0, 1] or
  /// too many sources; std::logic_error once next() was called.
  uint32_t add_rows(std::span<const std::vector<TokenCandidate>> rows, const DepthCalibration& calibration = {});
  /// A source that says what may follow the paths that it names. Also throws for a parent that does not come before.
  uint32_t add_tree(std::span<const CandidateNode> nodes, const DepthCalibration& calibration = {});

  /// Adds the most probable path that is not in the tree yet; false where there is none.
  bool next();
  void build(uint32_t budget) {
    while (tree_.drafted() < budget && next()) {
    }
  }

  const DraftTree& tree() const { return tree_; }
  /// Which sources proposed a node, bit i for source i; 0 for the root.
  uint32_t sources_of(uint32_t node) const { return sources_of_[node]; }
  /// Probability of a node's token given its path, of all sources together.
  double probability_of(uint32_t node) const { return probabilities_[node]; }

 private:
  struct Child {
    uint32_t token = 0;
    uint32_t sources = 0;
    double q = 0;
  };
  struct Source {
    std::vector<std::vector<TokenCandidate>> rows;
    std::vector<CandidateNode> nodes;
    std::vector<std::vector<uint32_t>> children;  // of node i - 1; [0] of the root
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

  Source& new_source();
  void expand(uint32_t node);
  void take(uint32_t source, const TokenCandidate& candidate);
  void push(uint32_t parent, uint32_t rank);
  bool after(const Prospect& a, const Prospect& b) const;
  bool lower_ranks(Prospect a, Prospect b) const;

  MergeRule rule_ = MergeRule::noisy_or;
  std::vector<Source> sources_;
  DraftTree tree_;
  std::vector<uint32_t> sources_of_;
  std::vector<double> probabilities_;
  std::vector<uint32_t> places_;  // by node and source: in `children` of that source; kLost where it has no such path
  std::vector<List> lists_;       // by node
  std::vector<List> of_depth_;    // of the nodes that only sources of rows know
  std::vector<Child> children_;
  std::vector<Prospect> frontier_;  // a heap: the best in front
  std::vector<Child> merged_;       // of the node that is expanded
  bool started_ = false;
};

}  // namespace canopy

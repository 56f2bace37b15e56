#pragma once
// The draft tree of a round, built node by node: DDTree's best-first search over what the sources of drafts expect
// behind each path. One block drafter gives marginals by depth, of which more can be asked; several sources become one
// distribution over the next token behind each path, and each node remembers who proposed it.

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

enum class TreeStep {
  added,             // one more node
  needs_candidates,  // the next node may be one beyond the candidates of starved_depth(): extend() first
  complete,          // there is no other node
};

/// Adds nodes in order of their score, the log of the path's probability: after n nodes the tree holds the n most
/// probable paths. Equal scores: the lower tuple of ranks first (a path comes before those that continue it).
///
///   builder.begin(root, depths, vocab);                      // of one block drafter
///   while (builder.build(budget) == TreeStep::needs_candidates) builder.extend(more of builder.starved_depth());
///
///   builder.begin(root);                                     // of several sources
///   builder.add_rows(...), builder.add_tree(...);
///   builder.build(budget);
///
/// A rule that stops by value calls next() itself, reads tree().nodes().back().score, and may cut() afterwards. Keeps
/// its memory from tree to tree: trees no larger than those before allocate nothing.
class TreeBuilder {
 public:
  /// Starts a tree of a block drafter alone; depths[d - 1] holds the candidates of depth d, which are copied. A node's
  /// log q is the drafter's own.
  ///   available    candidates that exist at every depth: the vocabulary, or fewer where higher ranks shall not occur
  ///   calibration  one entry a depth; empty for none
  /// Throws Error(bad_input) naming the depth for no candidates, more than `available`, lists of different lengths, NaN
  /// or infinite values, candidates out of order, a log_sum_exp below the largest logit, or a bad calibration.
  void begin(uint32_t root_token, std::span<const DepthCandidates> depths, uint32_t available,
             std::span<const DepthCalibration> calibration = {});

  /// Starts a tree of the sources that are added. A node's log q is that of all of them together, calibrated.
  void begin(uint32_t root_token, MergeRule rule = MergeRule::noisy_or);
  /// A source that says the same of every path of a length: rows[d] lists what may follow a path of d tokens.
  /// `calibration` turns its log p, the last one of all longer paths; empty: none. Its nodes get the bit `source`, one
  /// that no other source of the tree has. Throws Error(bad_input) for a p outside (0, 1]; std::logic_error once next()
  /// was called, and for a tree of a block drafter alone.
  void add_rows(DraftSources source, std::span<const std::vector<TokenCandidate>> rows,
                std::span<const DepthCalibration> calibration = {});
  /// A source that says what may follow the paths that it names. Also throws for a parent that does not come before.
  void add_tree(DraftSources source, std::span<const CandidateNode> nodes,
                std::span<const DepthCalibration> calibration = {});

  /// Adds the most probable path that is not in the tree yet.
  TreeStep next();

  /// next() until `budget` nodes are drafted. Returns added when they are (also when nothing was left to do).
  TreeStep build(uint32_t budget);

  /// The path of the most probable token behind each token instead, at most `budget` of them: of a block drafter the
  /// tree of plain DFlash. Ends the search.
  void build_chain(uint32_t budget);

  /// After needs_candidates: the depth (1 ...) whose last candidate is in the tree, and how many it has.
  uint32_t starved_depth() const { return starved_depth_; }
  uint32_t candidates_at(uint32_t depth) const { return lists_.at(depth - 1).count; }

  /// Gives a depth of a block drafter more candidates: the ones it has, in the same order, and at least one more. The
  /// tree continues as if they had been there from the start. Throws Error(bad_input) as begin() does, and when they do
  /// not continue those that were there.
  void extend(uint32_t depth, const DepthCandidates& more);

  const DraftTree& tree() const { return tree_; }
  /// Keeps the first `width` nodes and ends the search.
  void cut(uint32_t width);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// A token that may follow a path.
  struct Child {
    uint32_t token = 0;
    DraftSources sources = 0;
    float logit = 0;   // of a block drafter
    double log_q = 0;  // of a block drafter
    double gain = 0;   // of a block drafter: calibrated log q, what it adds to its path's score
    double q = 0;      // of several sources: merged and calibrated
    WentOn went_on = {};
  };
  /// What may follow a path, most probable first: children_[first ... first + count).
  struct List {
    size_t first = 0;
    uint32_t count = 0;
  };
  /// Of a depth of a block drafter, whose list has the same index.
  struct Level {
    double log_sum_exp = 0;
    DepthCalibration calibration;
  };
  struct Source {
    DraftSources bit = 0;
    size_t depths = 0;                              // of rows
    std::vector<std::vector<TokenCandidate>> rows;  // [at least depths]
    std::vector<CandidateNode> nodes;
    std::vector<uint32_t> first_child;   // [nodes + 1] of node i - 1, [0] of the root; an index, or kNone
    std::vector<uint32_t> next_sibling;  // [nodes]
  };
  /// A path that could be added: the child of that rank of a node.
  struct Prospect {
    double score = 0;
    uint32_t parent = 0;
    uint32_t rank = 0;
  };

  void reset(uint32_t root_token);
  void append_candidates(uint32_t depth, const DepthCandidates& given);
  Source& new_source(DraftSources bit);
  void start();
  uint32_t add_child(uint32_t parent, uint32_t rank, double score);
  void expand(uint32_t node);
  uint32_t list_behind(uint32_t node);
  void take(DraftSources source, const TokenCandidate& candidate);
  void push(uint32_t parent, uint32_t rank);
  bool after(const Prospect& a, const Prospect& b) const;
  bool lower_ranks(Prospect a, Prospect b) const;

  DraftTree tree_;
  std::vector<Child> children_;
  std::vector<List> lists_;
  std::vector<uint32_t> list_of_;   // by node: in lists_, or kNone
  std::vector<uint32_t> of_depth_;  // the list of all paths of a length that no source names; kNone: not made yet
  std::vector<Prospect> frontier_;  // a heap: the best in front
  bool started_ = false;
  // Of a block drafter.
  bool is_block_ = false;
  std::vector<Level> levels_;
  uint32_t available_ = 0;
  uint32_t starved_depth_ = 0;  // 0: none
  Prospect starved_;            // the path that waits for a candidate; its score is not known
  // Of several sources.
  MergeRule rule_ = MergeRule::noisy_or;
  std::vector<Source> sources_;  // [at least used_]: they keep their memory
  size_t used_ = 0;
  std::vector<uint32_t> places_;  // by node and source: in `first_child` of that source; kNone: it has no such path
  std::vector<Child> merged_;     // of the node that is expanded
  std::vector<size_t> depths_;    // of a source that is added
};

}  // namespace canopy

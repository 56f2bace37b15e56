#pragma once
// DDTree: the draft tree of a round, the rows of the target's pass that verify it, and the path that the target
// accepts.

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/compute/rows.h"

namespace canopy {

// The draft tree of one round: what the target verifies in one pass, a row a node.

/// Where the tokens of draft trees come from, as bits: a node has those of all that proposed it.
using DraftSources = uint8_t;
inline constexpr DraftSources kFromDflash = 1;     // a DFlash drafter's marginals
inline constexpr DraftSources kFromSuffix = 2;     // the text itself: what stood behind the same tokens before
inline constexpr DraftSources kFromRecycling = 4;  // what the target found likeliest behind the same token lately
inline constexpr DraftSources kFromEarlier = 8;    // earlier replies, as the text itself
inline constexpr DraftSources kFromDraft = 16;     // a small model with the target's vocabulary, token by token
inline constexpr DraftSources kFromMtp = 32;       // a head of the target that predicts further tokens, token by token
inline constexpr DraftSources kFromEagle = 64;     // an EAGLE-3 head, token by token
inline constexpr DraftSources kFromAssistant = 128;  // an assistant that reads the target's keys, token by token
/// Whatever model drafts: a pair has at most one of them, and asking for either asks that.
inline constexpr DraftSources kFromModels = kFromDflash | kFromDraft | kFromMtp | kFromEagle | kFromAssistant;
/// Of these, what drafts token by token.
inline constexpr DraftSources kFromSteps = kFromDraft | kFromMtp | kFromEagle | kFromAssistant;
inline constexpr DraftSources kAllSources = kFromModels | kFromSuffix | kFromRecycling | kFromEarlier;
/// Those that are asked where nothing else is said. Recycling makes every pass give the likeliest tokens of all rows,
/// and brought less than that takes on the processor that it was measured on. What comes of earlier replies may show
/// words of other chats.
inline constexpr DraftSources kUsualSources = kFromDflash | kFromSuffix;
/// Those that cost no pass.
inline constexpr DraftSources kFreeSources = kFromSuffix | kFromRecycling | kFromEarlier;

/// "dflash", "suffix", "recycling", "earlier", "draft", "mtp", "eagle3", "assistant".
std::vector<std::string_view> source_names(DraftSources sources);
/// "dflash,suffix"; "none" of none: what parse_sources() reads.
std::string list_of(DraftSources sources);
/// The sources of a list like "dflash,suffix"; "none": none. Throws Error(bad_input) naming what is allowed.
DraftSources parse_sources(std::string_view list);

/// How often a text went on with a token behind the place that a guess was found at.
struct WentOn {
  uint32_t times = 0;   // with this token
  uint32_t places = 0;  // where the same words stood and anything followed; 0: nothing was counted
  bool operator==(const WentOn&) const = default;
};

/// One token that may follow the path from the root to its parent.
struct TreeNode {
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  uint32_t token = 0;
  uint32_t parent = none;    // index in the tree; none for the root
  uint32_t depth = 0;        // distance from the root
  uint32_t rank = 0;         // among the candidates of its depth, or of its parent, 0 the most probable
  double log_q = 0;          // log of the token's probability by its sources, at most 0
  double score = 0;          // log of the path's probability by which the tree is ordered; the root's is 0
  DraftSources sources = 0;  // that proposed it; none for the root, and where it was not recorded
  WentOn went_on = {};       // where a text proposed it
};

/// Nodes with parents before their children; node 0 is the root. Any first part of it is a tree too.
class DraftTree {
 public:
  explicit DraftTree(uint32_t root_token = 0) { reset(root_token); }

  /// A tree of the root alone. Keeps its memory.
  void reset(uint32_t root_token);

  /// Appends a child of node `parent` and returns its index. Throws Error(bad_input) when there is no such parent. That
  /// siblings have different tokens is the caller's care.
  uint32_t add(uint32_t parent, uint32_t token, uint32_t rank, double log_q, double score, DraftSources sources = 0,
               WentOn went_on = {});

  /// Keeps the first `width` nodes. Throws Error(bad_input) unless 1 <= width <= width().
  void cut(uint32_t width);

  /// Rows of the pass: the root and the drafted nodes.
  uint32_t width() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t drafted() const { return width() - 1; }
  std::span<const TreeNode> nodes() const { return nodes_; }
  const TreeNode& operator[](uint32_t node) const { return nodes_[node]; }

  /// The child of `parent` that carries `token`, or TreeNode::none. Looks at the nodes behind `parent` only, so that
  /// following a path costs one sweep over the tree.
  uint32_t child(uint32_t parent, uint32_t token) const;
  /// The likeliest child of `parent`, or TreeNode::none.
  uint32_t first_child(uint32_t parent) const;

 private:
  std::vector<TreeNode> nodes_;
};

// What a tree is built of (tree_builder.h).

/// The k most probable tokens of one depth, as the top-k op returns them.
struct DepthCandidates {
  std::span<const uint32_t> tokens;  // [k] all different
  std::span<const float> logits;     // [k] largest first, ties by the lowest token
  double log_sum_exp = 0;            // over the whole row, so that log q = logit - log_sum_exp
};

/// Turns the drafter's log q of one depth into the one that orders the tree: min(0, scale * log q + shift). scale >= 0,
/// so that ranks keep their order.
struct DepthCalibration {
  double scale = 1;
  double shift = 0;
};

// A draft tree as rows of a pass: the tree knows no device and the rows know no tree.

/// Where the K/V of a tree's nodes goes, asked for node by node in order. The root and the likeliest chain below it,
/// each node the first child of the one before, go where the text goes on: what of them is accepted need not be moved.
/// Other nodes go to slots of trees.
class TreeSlots {
 public:
  /// Behind `committed` positions of a text that has places for `end`; node i to first_slot + i - 1.
  TreeSlots(const DraftTree& tree, std::span<const uint32_t> pages, uint32_t committed, uint32_t end,
            uint32_t first_slot)
      : tree_(tree), pages_(pages), committed_(committed), end_(end), first_slot_(first_slot) {}

  uint32_t of(uint32_t node) {
    const uint32_t position = committed_ + tree_[node].depth;
    const bool continues = node == 0 || tree_[node].parent == chain_end_;
    if (node > 0 && (!continues || position >= end_)) return first_slot_ + node - 1;
    chain_end_ = node;
    return slot_of(pages_, position);
  }

 private:
  const DraftTree& tree_;
  std::span<const uint32_t> pages_;  // the page table
  uint32_t committed_, end_, first_slot_;
  uint32_t chain_end_ = 0;
};

/// Appends the tree's nodes to the pass, in order: node i becomes row (batch.width() before) + i, at position
/// committed + depth, its K/V where TreeSlots says, seeing `committed` positions and its path from the root. Throws
/// Error(bad_input) when a slot or position does not fit 32 bits; validate() checks them against the device's limits.
inline void add_tree(const DraftTree& tree, uint32_t committed, uint32_t end, uint32_t first_slot, RowBatch& batch) {
  checked_add(first_slot, tree.width(), "last slot of the draft tree");
  checked_add(committed, tree.width(), "last position of the draft tree");
  const uint32_t first_row = batch.width();
  size_t ancestors = 0;
  for (const TreeNode& node : tree.nodes()) ancestors += node.depth + 1;
  batch.rows.reserve(batch.rows.size() + tree.width());
  batch.ancestors.reserve(batch.ancestors.size() + ancestors);
  TreeSlots slots(tree, batch.pages, committed, end, first_slot);
  for (uint32_t i = 0; i < tree.width(); ++i) {
    const uint32_t parent = tree[i].parent;
    const int32_t row = parent == TreeNode::none ? -1 : static_cast<int32_t>(first_row + parent);
    batch.add_node(tree[i].token, slots.of(i), committed, row);
  }
}

// Which of a draft tree the target would have written itself.

/// The accepted path of a round. The round emits the tokens of nodes[1 ...], then the bonus, which is the next root.
struct AcceptedPath {
  std::vector<uint32_t> nodes = {0};  // indices in the tree; nodes[d] has depth d, nodes[0] is the root
  uint32_t bonus = 0;                 // the target's own token after the last node

  uint32_t accepted() const { return static_cast<uint32_t>(nodes.size()) - 1; }
  uint32_t emitted() const { return accepted() + 1; }
};

/// The target's own next token at a node, and whether the text ends with it: then no child of it is followed, since
/// autoregressive decoding would not have computed its row.
struct WalkedToken {
  WalkedToken(uint32_t id, bool is_last = false) : token(id), ends(is_last) {}  // NOLINT: most walks do not end early
  uint32_t token = 0;
  bool ends = false;
};

/// From the root on, takes the target's own next token, choose(node), and follows the child that carries it, until
/// there is none. choose is called once for each node of the path, in order, and nodes holds the path up to that node:
/// what penalties and random numbers depend on is known by then. Replaces what `path` held and keeps its memory.
template <std::invocable<uint32_t> Choose>
void accept(const DraftTree& tree, Choose&& choose, AcceptedPath& path) {
  path.nodes.assign(1, 0);
  for (;;) {
    const uint32_t node = path.nodes.back();
    const WalkedToken next = choose(node);
    path.bonus = next.token;
    const uint32_t child = next.ends ? TreeNode::none : tree.child(node, next.token);
    if (child == TreeNode::none) return;
    path.nodes.push_back(child);
  }
}

// Acceptance by given rates, to measure what a drafter of that quality would bring on a device. Drafts and passes are
// real, and so are their times; the text is not the target's.

inline constexpr size_t kMostAcceptRates = 64;

/// Rates of a list like "0.8,0.7,0.6". Throws Error(bad_input) naming the first that is wrong and what is allowed.
std::vector<double> parse_accept_rates(std::string_view list);
/// "0.8,0.7,0.6": what parse_accept_rates() reads.
std::string list_of(std::span<const double> rates);
/// Throws Error(bad_input) unless all are in [0, 1] and there are at most kMostAcceptRates of them.
void validate_accept_rates(std::span<const double> rates);

/// The number in [0, 1) that decides about a place of a reply: the same in every mode and on every machine.
double accept_draw(uint64_t seed, uint64_t turn, uint64_t place);

/// The token that is emitted at a node. rates[d] is the probability that the walk goes on from depth d to d + 1, the
/// last one that of all deeper depths: where `draw` is below it, the token of the node's first child, the likeliest.
/// Else, and where the node has no child, the target's `own` token; where a child carries that, the next id below
/// `vocab` that no child carries and that is none of `stops`. So no child but the first is ever accepted. `stops`:
/// sorted.
uint32_t token_by_rates(const DraftTree& tree, uint32_t node, uint32_t own, std::span<const double> rates, double draw,
                        uint32_t vocab, std::span<const uint32_t> stops);

}  // namespace canopy

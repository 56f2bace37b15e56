#pragma once
// What a drafter says of the tokens behind a text; and whatever can be asked for such a draft: a model's drafter, or a
// recording of one.

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/speculation/ddtree.h"

namespace canopy {

// What a drafter says: the most probable tokens of each depth of a block, or behind each path that it went on with.

struct BlockDraft {
  static constexpr uint32_t none = UINT32_MAX;

  uint32_t depths = 0;
  uint32_t candidates = 0;         // of each list
  std::vector<uint32_t> tokens;    // [lists, candidates] ids of the target's vocabulary
  std::vector<float> logits;       // [lists, candidates] largest first, ties by the lowest token
  std::vector<float> log_sum_exp;  // [lists] over all tokens that the drafter's head is over
  /// Empty: list i is of depth i + 1, behind whatever tokens. Else, as a model gives them that drafts token by token,
  /// list i is of what follows one path: list 0 the root, each other the candidate behind[i] of a list before it, which
  /// is list * candidates + rank. [lists]
  std::vector<uint32_t> behind = {};
  /// Of lists behind paths: they come of one pass over a block whose tokens depend on those before them, and cost no
  /// pass of their own.
  bool in_one_pass = false;

  uint32_t lists() const { return static_cast<uint32_t>(log_sum_exp.size()); }
  bool is_by_token() const { return !behind.empty(); }

  DepthCandidates list(uint32_t i) const {
    const size_t first = size_t{i} * candidates;
    return {std::span(tokens).subspan(first, candidates), std::span(logits).subspan(first, candidates),
            double{log_sum_exp[i]}};
  }
  /// depth: 1 ... depths; of a draft that is not made token by token.
  DepthCandidates at(uint32_t depth) const { return list(depth - 1); }

  /// Of a draft made token by token: the list of what follows `token` behind the path of `list`; none where no pass
  /// went on with that.
  uint32_t list_behind(uint32_t list, uint32_t token) const {
    for (uint32_t i = list + 1; i < lists(); ++i) {
      if (behind[i] / candidates == list && tokens[behind[i]] == token) return i;
    }
    return none;
  }
  /// Of a draft made token by token, a pass for each depth: the paths that each pass after the first went on with. Else
  /// empty.
  std::vector<uint32_t> beams() const;
};

/// How many drafted tokens the path of each list has, by BlockDraft::behind of lists of `candidates`; empty where that
/// is.
std::vector<uint32_t> path_lengths(std::span<const uint32_t> behind, uint32_t candidates);

/// How much is to be drafted.
struct DraftWish {
  uint32_t depths = 1;  // tokens behind the root
  /// For a model that drafts token by token: what a pass over 1, 2, ... paths takes, in tokens, a token being the time
  /// that one more accepted token saves. A pass goes on with the paths whose probability is most above that, and the
  /// draft ends where it is above it for none. Empty: always the likeliest path alone.
  std::span<const double> costs = {};
  std::span<const DepthCalibration> calibration = {};  // by depth, of these probabilities; empty: as the model says
  /// For a block whose tokens depend on those before them: nodes of the tree that will be built. There are lists behind
  /// all of it then. 0: behind the likeliest path, token by token.
  uint32_t nodes = 0;
  /// Where the drafter says how likely the likeliest token of a list is right, its probability is that, and those of
  /// the others what is left. Trees are then ordered by it.
  bool by_confidence = false;
};

/// All the candidates of a depth that a tree asked for, more than the draft had of it: those first, then further ones.
struct MoreCandidates {
  uint32_t depth = 0;
  std::vector<uint32_t> tokens = {};
  std::vector<float> logits = {};
};

/// A draft with all that was built of it, to build the same again.
struct KeptDraft {
  BlockDraft block;
  std::vector<MoreCandidates> more;  // ascending depths, each at most once

  /// The further candidates of a depth; null where none were asked for.
  const MoreCandidates* more_at(uint32_t depth) const {
    for (const MoreCandidates& each : more) {
      if (each.depth == depth) return &each;
    }
    return nullptr;
  }
};

// Drafts that cost no pass.

/// One token that a source expects behind a path, and its probability given the path.
struct TokenCandidate {
  uint32_t token = 0;
  double p = 0;
  WentOn went_on = {};
};

/// A token behind a path that a source names itself.
struct CandidateNode {
  static constexpr uint32_t root = UINT32_MAX;

  uint32_t parent = root;  // index in the list, smaller than this node's; `root` for children of the tree's root
  uint32_t token = 0;
  double p = 0;  // given the path
  WentOn went_on = {};
};

/// What stood behind the last tokens of a text where they stood before, or what was recycled (token_recycling.h).
struct FreeDraft {
  std::vector<CandidateNode> nodes;
  uint32_t match = 0;    // tokens of the text's end that were found again; 0: none, or not looked for
  bool earlier = false;  // in earlier replies, not in the text itself
  uint32_t depth = 0;    // of the deepest node; children of the root have 1

  bool empty() const { return nodes.empty(); }
};

// What drafts the tokens behind a text: a model's drafter, or a recording of one.

class DraftSource {
 public:
  virtual ~DraftSource() = default;

  /// Tokens of the longest draft of a model, B - 1; 0: no model drafts here, and draft() is not called.
  virtual uint32_t max_depth() const = 0;
  /// Features that the next draft injects first.
  virtual uint32_t backlog() const = 0;
  /// Features that can wait for one.
  virtual uint32_t most_waiting() const = 0;
  /// Tokens that are drafted at all: the vocabulary, or a part of it.
  virtual uint32_t drafted_tokens() const = 0;
  /// The bit of what draft() gives.
  virtual DraftSources drafted_by() const { return kFromDflash; }
  /// Paths that one pass can go on with, where it drafts token by token.
  virtual uint32_t most_beams() const { return 1; }

  /// What the text itself suggests behind its last token, at most `depths` tokens deep: some microseconds. Empty where
  /// nothing was found, or nobody looks. Stays as it is until the next call.
  virtual const FreeDraft& from_text(uint32_t depths) = 0;

  /// What was recycled for the root; likewise.
  virtual const FreeDraft& recycled(uint32_t root, uint32_t depths) = 0;

  /// Drafts behind the root, which stands behind the text: 1 ... max_depth() tokens. Null when stop was requested.
  /// Stays as it is until the next call.
  virtual const BlockDraft* draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) = 0;
  /// Milliseconds of the last draft by the device's clock; 0 where it has none.
  virtual double device_ms() const { return 0; }

  /// Replaces both lists by the candidates of a depth of the last draft: those that it had, then others, `count` of
  /// them where there are as many. False where no more are known than `known`.
  virtual bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
                    std::vector<float>& logits) = 0;
};

}  // namespace canopy

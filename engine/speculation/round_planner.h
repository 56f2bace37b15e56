#pragma once
// Decides what a round verifies: the root alone, a chain or a tree, over anything that drafts. Each mode has its
// planner; the rest of a round is the same in all modes (docs/architecture.md, "Rounds").

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/speculation/bastion.h"
#include "engine/speculation/ddtree.h"
#include "engine/speculation/draft_source.h"
#include "engine/speculation/round_record.h"
#include "engine/speculation/speculation_state.h"
#include "engine/speculation/tree_builder.h"

namespace canopy {

// Drafts behind a text and builds the draft tree of a round from the candidates.
class TreeDrafter {
 public:
  /// The source must outlive this.
  explicit TreeDrafter(DraftSource& source) : source_(source) {}

  /// Begins a round: looks for drafts behind the root that cost no pass, at most `depths` tokens deep. False where
  /// there are none.
  bool find(uint32_t root, uint32_t depths);

  /// Drafts `depths` tokens behind the root by the model. False when stop was requested.
  bool draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop);

  /// Starts a tree over what was found and drafted in this round. `calibration` is the model's, one entry for each
  /// depth or none at all, `groups` those of drafts that cost no pass.
  void begin(std::span<const DepthCalibration> calibration, std::span<const DepthCalibration> groups);
  /// Starts a tree over the model's draft alone. Only the `available` most probable tokens of a depth are used, of a
  /// draft that is not made token by token.
  void begin(std::span<const DepthCalibration> calibration = {}, uint32_t available = TreeNode::none);

  /// TreeBuilder::next(), with candidates fetched where the tree wants more than the draft brought. False: complete, or
  /// the source has no more candidates.
  bool next();

  /// The `budget` most probable paths, or all there are.
  void build(uint32_t budget);

  /// Adds nodes until the rule ends the tree.
  void grow(PaperRule& rule);

  /// The most probable token behind each token, as far as `budget` goes.
  void build_chain(uint32_t budget) { builder_.build_chain(budget); }

  void cut(uint32_t width) { builder_.cut(width); }

  const DraftTree& tree() const { return builder_.tree(); }
  /// What cost no pass in this round.
  const FreeDraft& found() const { return *found_; }
  const FreeDraft& recycled() const { return *recycled_; }
  bool has_found() const { return found_ != nullptr && !(found_->empty() && recycled_->empty()); }
  /// The model's draft of this round; there must be one.
  const BlockDraft& last() const { return *draft_; }
  /// Of the last draft, by the device's clock.
  double device_ms() const { return source_.device_ms(); }
  /// The lists of the last draft, without candidates that were fetched later.
  std::span<const DepthCandidates> candidates() const { return lists_; }
  /// A copy of the last draft with all that was fetched for its trees.
  std::shared_ptr<const KeptDraft> kept() const;

 private:
  bool fetch_more(uint32_t depth);
  bool is_by_token() const { return draft_ != nullptr && draft_->is_by_token(); }
  void begin_mixed(std::span<const DepthCalibration> calibration);
  void list_rows();
  void list_nodes();

  DraftSource& source_;
  TreeBuilder builder_;
  const FreeDraft *found_ = nullptr, *recycled_ = nullptr;
  uint32_t root_ = 0;
  uint32_t available_ = 0;
  const BlockDraft* draft_ = nullptr;
  std::vector<DepthCandidates> lists_;
  std::vector<std::vector<TokenCandidate>> rows_;  // [at least lists_] of the model's draft, in a mixed tree
  std::vector<CandidateNode> nodes_;               // the same of one that is made token by token
  std::vector<uint32_t> node_of_;                  // of its candidates; CandidateNode::root of one without a node
  std::vector<MoreCandidates> more_;               // that were fetched, by depth
};

/// Where a round starts and how far its tree may reach: what is deeper or larger could not be emitted, committed or
/// verified.
struct RoundStart {
  uint32_t root = 0;
  uint32_t context = 0;       // committed positions
  uint32_t remaining = 0;     // tokens that the reply may still get, at least 1
  uint32_t context_left = 0;  // free positions of the cache, the root's included
  uint32_t rows = 0;          // of a pass, and of its tree's slots
  bool keep_draft = false;    // in the round's record

  /// Tokens of the longest path that could be emitted and committed.
  uint32_t depths() const { return std::min(remaining, context_left) - 1; }
  uint32_t budget() const { return rows - 1; }
};

class RoundPlanner {
 public:
  virtual ~RoundPlanner() = default;

  /// The tree of the next round; null when stop was requested. Writes the record's shape, choice, predictions and the
  /// times of draft and build. The tree stays as it is until the next call.
  virtual const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) = 0;

  /// The round as it went; not called for one that was cancelled. Says in the record whether its times teach anything.
  virtual void observe(RoundRecord& record) { (void)record; }
};

/// Keeps the draft in the record, with all that was fetched for the round's trees, where that is wanted.
void keep_draft(const RoundStart& start, const TreeDrafter& trees, RoundRecord& record);

/// How drafting stands before the first round of a reply, for a recording; `source` is null in a mode without drafts.
/// Works out the costs where a mode that predicts needs them.
TraceDrafting drafting_before(const RoundStart& first, DecodeMode mode, const DraftSource* source,
                              SpeculationState& state);

/// Replaces the times of a round: it takes what `times` says, in the stages that it knows. draft: the model's; null
/// without one.
void take_times(const PassCost& times, const BlockDraft* draft, RoundRecord& record);

/// The root alone.
class ArPlanner final : public RoundPlanner {
 public:
  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token&) override;

 private:
  DraftTree tree_;
};

/// Always drafts, by the model and from the text, and verifies the same kind and size of tree. Where costs were
/// measured, it says what other widths would have promised.
class FixedPlanner final : public RoundPlanner {
 public:
  /// mode is chain or tree; budget counts for the tree. state, which may be null, learns from the drafts. Both must
  /// outlive the planner.
  FixedPlanner(DecodeMode mode, uint32_t budget, DraftSource& source, SpeculationState* state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(RoundRecord& record) override;

 private:
  void watch(const RoundStart& start, uint32_t depths, uint32_t width, RoundRecord& record);
  void forecast(const RoundStart& start, uint32_t depths, uint32_t width, RoundRecord& record);

  DecodeMode mode_;
  uint32_t budget_;
  DraftSource& source_;
  SpeculationState* state_;
  TreeDrafter trees_;
  ArPlanner ar_;  // where nothing can be drafted
};

// The mode adaptive: each round verifies the width that is expected to emit the most tokens per second; autoregressive
// decoding is one of the choices.

class AdaptivePlanner final : public RoundPlanner {
 public:
  /// Starts a reply. Source and state must outlive the planner.
  AdaptivePlanner(DraftSource& source, SpeculationState& state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(RoundRecord& record) override;

 private:
  const DraftTree* build(const RoundStart& start, uint32_t depths, RoundRecord& record);
  void describe(WidthChoice choice, RoundRecord& record) const;

  DraftSource& source_;
  SpeculationState& state_;
  TreeDrafter trees_;
  ArPlanner ar_;
  uint64_t recordings_ = 0;  // SpeculationState::recordings() before the round
};

/// The published rule (CostPolicy::paper): drafts every round, by the model alone, and ends the tree at the first node
/// whose cost exceeds its expected gain.
class PaperPlanner final : public RoundPlanner {
 public:
  /// Source and state must outlive the planner.
  PaperPlanner(const PaperRuleSettings& settings, DraftSource& source, SpeculationState& state);

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::stop_token& stop) override;
  void observe(RoundRecord& record) override;

 private:
  const DraftTree* build(const RoundStart& start, RoundRecord& record);

  PaperRuleSettings settings_;
  DraftSource& source_;
  SpeculationState& state_;
  TreeDrafter trees_;
  ArPlanner ar_;
};

}  // namespace canopy

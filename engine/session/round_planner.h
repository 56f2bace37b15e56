#pragma once
// What a round verifies: the root alone, a chain or a tree. One planner a mode; ReplyWriter does the rest alike.

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/session/round_record.h"
#include "engine/session/tree_drafter.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Where a round starts and how far its tree may reach: what is deeper or larger could not be emitted, committed or
/// verified.
struct RoundStart {
  uint32_t root = 0;
  uint32_t context = 0;    // committed positions
  uint32_t remaining = 0;  // tokens that the reply may still get, at least 1
  uint32_t depths = 0;     // 0: nothing can be drafted
  uint32_t budget = 0;     // drafted nodes
};

class RoundPlanner {
 public:
  virtual ~RoundPlanner() = default;

  /// The tree of the next round; null when keep_going said no. Writes the record's shape, choice, predictions and the
  /// times of draft and build. The tree stays as it is until the next call.
  virtual const DraftTree* plan(const RoundStart& start, RoundRecord& record,
                                const std::function<bool()>& keep_going) = 0;

  /// The round as it went; not called for one that was cancelled.
  virtual void observe(const RoundRecord& record) { (void)record; }
};

/// The root alone.
class PlainPlanner final : public RoundPlanner {
 public:
  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::function<bool()>&) override;

 private:
  DraftTree tree_;
};

/// Always drafts, and verifies the same kind and size of tree.
class FixedPlanner final : public RoundPlanner {
 public:
  /// mode is chain or tree; budget counts for the tree. The drafter must outlive the planner.
  FixedPlanner(DecodeMode mode, uint32_t budget, Drafter& drafter)
      : mode_(mode), budget_(budget), drafter_(drafter), trees_(drafter) {}

  const DraftTree* plan(const RoundStart& start, RoundRecord& record, const std::function<bool()>& keep_going) override;

 private:
  DecodeMode mode_;
  uint32_t budget_;
  Drafter& drafter_;
  TreeDrafter trees_;
  PlainPlanner plain_;  // where nothing can be drafted
};

}  // namespace canopy

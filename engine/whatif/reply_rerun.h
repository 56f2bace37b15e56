#pragma once
// The rounds of one recorded reply, once more, by the planner that would have written it.

#include <memory>
#include <optional>
#include <string>

#include "engine/planning/round_planner.h"
#include "engine/speculation/accept.h"
#include "engine/whatif/recorded_drafts.h"
#include "engine/whatif/what_if_state.h"

namespace canopy {

class ReplyRerun {
 public:
  /// All must outlive it. Throws bad_input for a mode that needs a drafter where none was recorded.
  ReplyRerun(const RecordedReply& reply, size_t index, const WhatIfWish& wish, WhatIfState& state,
             std::stop_token stop);

  bool at_end() const { return root_ + 1 >= reply_.text.size() || cut_; }
  /// The round behind the last one; nothing where its draft was not recorded, or at the end.
  std::optional<WhatIfRound> next();
  /// A round at the place of a recorded one, with its draft or what is known of it; nothing where nothing is.
  std::optional<WhatIfRound> at(const RoundRecord& recorded);

  /// Why next() gave nothing, as a sentence.
  std::string missing() const;
  /// Why the rounds may be other ones than these, as a sentence; empty where they are not.
  const std::string& doubt() const { return doubt_; }

 private:
  std::optional<WhatIfRound> run(RoundStart start, const RoundRecord* recorded,
                                 std::shared_ptr<const KeptDraft> instead);
  void walk(RoundRecord& record);
  void describe(RoundRecord& record) const;
  void time(const RoundRecord* recorded, WhatIfRound& round);
  double ar_ms(const PassCost& cost, const RoundRecord& record) const;
  void note_doubt();
  const RoundRecord* recorded_at(uint32_t committed);

  const RecordedReply& reply_;
  size_t index_;
  DecodeMode mode_;
  WhatIfState& shared_;
  std::stop_token stop_;
  uint32_t widest_;
  RecordedDrafts drafts_;
  SpeculationState& state_;
  std::unique_ptr<RoundPlanner> planner_;
  const DraftTree* tree_ = nullptr;  // of the round
  AcceptedPath path_;                // likewise
  size_t root_ = 0;                  // in the text
  uint32_t rounds_ = 0;              // so far
  size_t next_recorded_ = 0;         // the recorded round that was looked at last
  std::optional<RoundRecord> looked_at_;
  bool cut_ = false;  // the text ends in the middle of a round that would have gone on
  std::string doubt_;
};

}  // namespace canopy

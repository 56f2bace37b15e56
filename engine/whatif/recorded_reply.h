#pragma once
// A recorded reply as a re-run of it needs it: its text, its rounds, its drafts, and what was known when it began.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/planning/round_planner.h"
#include "engine/speculation/cost_policy.h"
#include "engine/trace/trace_reader.h"

namespace canopy {

struct RecordedReply {
  size_t index = 0;  // among the replies of its trace
  DecodeMode mode = DecodeMode::ar;
  CostPolicy policy = CostPolicy::measured;
  uint32_t budget = 0;   // of mode tree
  uint32_t context = 0;  // positions of the cache; 0: not known
  /// Its tokens, as far as they are known: the root of the first round, then what its rounds emitted.
  std::vector<uint32_t> text;
  bool ended = false;           // by itself or a limit, with the last of these tokens
  TraceDrafting drafting;       // as recorded, or as far as the rounds tell
  bool knows_drafting = false;  // it was recorded
  bool dense = false;           // there is a draft behind every root that a round could begin with

  size_t rounds = 0;
  /// Throws bad_input where a record is damaged.
  std::function<RoundRecord(size_t round)> round;
  /// The draft behind so many committed positions; null where there is none.
  std::function<std::shared_ptr<const KeptDraft>(uint32_t committed)> draft;

  /// Committed positions before a round whose root is text[index].
  uint32_t committed(size_t index) const { return drafting.committed + static_cast<uint32_t>(index); }
  /// Where a round with that root starts; text[index] is not the last token.
  RoundStart start(size_t index) const;
};

/// The replies of a trace whose text is known; all hold on to it. Throws bad_input where a round is damaged.
std::vector<RecordedReply> recorded_replies(const std::shared_ptr<const TraceReader>& trace);

/// Fills in what a reply that was recorded without it must have had, from its rounds: called where `knows_drafting` is
/// false, once rounds and text are there.
void guess_drafting(RecordedReply& reply, uint32_t prompt_tokens);

/// What is known of a draft from the tree that was built of it; null for a round without a tree. Any tree that is no
/// wider than that one comes out as of the draft itself; what is not known of a depth are tokens of no probability.
std::shared_ptr<const KeptDraft> draft_of_tree(const RoundRecord& record);

}  // namespace canopy

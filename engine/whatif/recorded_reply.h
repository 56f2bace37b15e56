#pragma once
// A recorded reply as a re-run of it needs it: its text, its rounds, what was known when it began, and its drafts as a
// drafter behind the text that the re-run has written so far.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/speculation/beam_draft.h"
#include "engine/speculation/draft_source.h"
#include "engine/speculation/pass_cost.h"
#include "engine/speculation/round_planner.h"
#include "engine/speculation/suffix_trie.h"
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
  std::vector<uint32_t> prompt;  // its tokens, before those
  bool ended = false;            // by itself or a limit, with the last of these tokens
  TraceDrafting drafting;        // as recorded, or as far as the rounds tell
  bool knows_drafting = false;   // it was recorded
  bool dense = false;            // there is a draft behind every root that a round could begin with

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

// The drafts of a recording, as a drafter behind the text that a re-run has written so far.

class RecordedDrafts final : public DraftSource, private NodeRunner {
 public:
  /// Behind the first root. depth: of the drafter's longest draft, 0 without one; deepest: of all drafts. left:
  /// features that waited when the reply before this one ended; none: what waits at the first root is what was
  /// recorded. The reply must outlive this.
  RecordedDrafts(const RecordedReply& reply, uint32_t depth, std::optional<uint32_t> left = {},
                 uint32_t deepest = UINT32_MAX);

  uint32_t max_depth() const override { return depth_; }
  uint32_t backlog() const override { return waiting_; }
  uint32_t most_beams() const override { return reply_.drafting.beams; }
  uint32_t most_waiting() const override { return most_waiting_; }
  uint32_t drafted_tokens() const override;
  DraftSources drafted_by() const override;
  const FreeDraft& from_text(uint32_t depths) override;
  /// What the target said of tokens beside the path was not recorded.
  const FreeDraft& recycled(uint32_t, uint32_t) override { return nothing_; }
  /// Null, too, where nothing was recorded.
  const BlockDraft* draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) override;
  bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
            std::vector<float>& logits) override;

  /// The next draft is behind so many positions; where that is not null it is this one, which has all candidates there
  /// are (draft_of_tree).
  void move_to(uint32_t committed, std::shared_ptr<const KeptDraft> instead = nullptr);
  /// The draft since then; null: none.
  const BlockDraft* drafted() const { return drafted_; }
  /// A round has committed so many tokens; with `drafted`, a draft had injected what waited. What a model that drafts
  /// token by token has run of them need not be read again.
  void commit(uint32_t tokens, bool drafted);

  /// Of the last draft: it has fewer depths, or paths, than were asked for.
  bool is_shallow() const { return shallow_; }
  /// Of the last draft: a tree asked for more candidates than were recorded.
  bool is_starved() const { return starved_; }

 private:
  bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) override;
  uint32_t run_since_draft() const;

  const RecordedReply& reply_;
  uint32_t depth_, deepest_;
  std::vector<uint32_t> whole_text_;  // prompt and reply
  TextDrafter found_;
  FreeDraft nothing_;
  uint32_t most_waiting_;
  uint32_t waiting_;
  uint32_t committed_;
  std::shared_ptr<const KeptDraft> instead_, current_;
  BlockDraft cut_;  // of current_, where less is asked for than it has
  bool by_token_;
  DraftTree tree_;                    // of the nodes that a draft made token by token goes on with
  std::vector<uint32_t> lists_;       // of current_, by its nodes; BlockDraft::none of those that were not recorded
  std::optional<size_t> draft_root_;  // of the last one: its place in the reply's text
  uint32_t since_draft_ = 0;          // tokens committed since
  const BlockDraft* drafted_ = nullptr;
  bool shallow_ = false, starved_ = false;
};

}  // namespace canopy

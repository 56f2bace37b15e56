#pragma once
// The drafts of a recording, as a drafter behind the text that a re-run has written so far.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/planning/draft_source.h"
#include "engine/whatif/recorded_reply.h"

namespace canopy {

class RecordedDrafts final : public DraftSource {
 public:
  /// Behind the first root. depth: of the longest draft, at most. left: features that waited when the reply before this
  /// one ended; none: what waits at the first root is what was recorded. The reply must outlive this.
  RecordedDrafts(const RecordedReply& reply, uint32_t depth, std::optional<uint32_t> left = {});

  uint32_t max_depth() const override { return depth_; }
  uint32_t backlog() const override { return waiting_; }
  uint32_t most_waiting() const override { return most_waiting_; }
  uint32_t drafted_tokens() const override;
  /// Null, too, where nothing was recorded: is_missing() then.
  const BlockDraft* draft(uint32_t root, uint32_t depths, const std::stop_token& stop) override;
  bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
            std::vector<float>& logits) override;

  /// The next draft is behind so many positions; where that is not null it is this one, which has all candidates there
  /// are (draft_of_tree).
  void move_to(uint32_t committed, std::shared_ptr<const KeptDraft> instead = nullptr);
  /// Whether there was a draft since then.
  bool drafted() const { return drafted_; }
  /// A round has committed so many tokens; with `drafted`, a draft had injected what waited.
  void commit(uint32_t tokens, bool drafted);

  /// Of the last call of draft(): no draft was recorded there.
  bool is_missing() const { return missing_; }
  /// Of the last draft: it has fewer depths than were asked for.
  bool is_shallow() const { return shallow_; }
  /// Of the last draft: a tree asked for more candidates than were recorded.
  bool is_starved() const { return starved_; }

 private:
  const RecordedReply& reply_;
  uint32_t depth_;
  uint32_t most_waiting_;
  uint32_t waiting_;
  uint32_t committed_;
  std::shared_ptr<const KeptDraft> instead_, current_;
  BlockDraft cut_;  // of current_, where fewer depths are asked for than it has
  bool drafted_ = false, missing_ = false, shallow_ = false, starved_ = false;
};

}  // namespace canopy

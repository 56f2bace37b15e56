#pragma once
// Writes one reply: reads the prompt, then runs rounds until a stop token, a limit or a request to stop ends it. The
// rounds' drafts are those of the loaded pair.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/session/draft_model.h"
#include "engine/session/reply.h"
#include "engine/session/resident_texts.h"
#include "engine/speculation/draft_source.h"
#include "engine/speculation/round_planner.h"
#include "engine/speculation/sampler.h"
#include "engine/speculation/speculation_state.h"
#include "engine/speculation/suffix_trie.h"
#include "engine/speculation/token_recycling.h"

namespace canopy {

// A loaded pair of models as the choice of a round's width sees it.

/// The statistics of a pair on its device, which is measured (a second) as soon as its roofline is needed; of a model
/// alone where both others are null. All must outlive them.
std::unique_ptr<SpeculationState> pair_speculation(const Model& target, const Drafter* drafter,
                                                   const DraftModel* draft_model, CostTable table);

/// The sizes of the target that its roofline depends on.
ModelShape model_shape(const Model& model);

/// The drafts behind a sequence: by its drafter, where it has one, and from the text. Both must outlive this.
class SequenceDrafts final : public DraftSource {
 public:
  /// By the drafter alone.
  explicit SequenceDrafts(Sequence& sequence) : sequence_(sequence), sources_(kFromDflash) {}
  /// `text`: prompt and reply so far, the root last, as it is at each call.
  /// `recycling`: what the target said lately; null: nothing is recycled.
  /// `earlier`: earlier replies to look in; null: none.
  /// `model`: that drafts in the place of a drafter; null: none.
  SequenceDrafts(Sequence& sequence, const std::vector<uint32_t>& text, const RecyclingTable* recycling,
                 const SuffixTrie* earlier, DraftModel* model, DraftSources sources)
      : sequence_(sequence),
        text_(&text),
        recycling_(recycling),
        model_((sources & kFromModels) != 0 ? model : nullptr),
        found_((sources & kFromSuffix) != 0, earlier),
        sources_(sources) {}

  uint32_t max_depth() const override {
    if (model_ != nullptr) return model_->deepest(text_->size());
    return asks_drafter() ? sequence_.drafter()->max_depth() : 0;
  }
  uint32_t backlog() const override { return model_ != nullptr ? model_->unread(text_->size()) : sequence_.backlog(); }
  uint32_t most_waiting() const override { return model_ != nullptr ? UINT32_MAX : Drafter::most_waiting(); }
  uint32_t drafted_tokens() const override {
    if (model_ != nullptr) return model_->drafted_tokens();
    return asks_drafter() ? sequence_.drafter()->drafted_tokens() : 0;
  }
  const FreeDraft& from_text(uint32_t depths) override;
  const FreeDraft& recycled(uint32_t root, uint32_t depths) override;
  const BlockDraft* draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) override;
  double device_ms() const override { return model_ != nullptr ? model_->device_ms() : draft_.device_ms; }
  /// Tokens of the last draft.
  uint32_t drafted_depths() const { return drafted_; }
  bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
            std::vector<float>& logits) override;

  const Draft& last() const { return draft_; }

 private:
  bool asks_drafter() const { return sequence_.drafter() != nullptr && (sources_ & kFromModels) != 0; }

  Sequence& sequence_;
  const std::vector<uint32_t>* text_ = nullptr;
  const RecyclingTable* recycling_ = nullptr;
  DraftModel* model_ = nullptr;
  uint32_t drafted_ = 0;
  TextDrafter found_;
  DraftSources sources_;
  FreeDraft recycled_;
  FreeDraft nothing_;
  Draft draft_;
};

/// The objects that a reply is written with.
struct ReplyParts {
  Model& model;
  const TextModel& text;
  ResidentTexts& texts;                 // of the model
  SpeculationState* state = nullptr;    // null: mode adaptive is not possible
  bool draws_on_device = false;         // tokens are drawn there, not on the host; the same ones
  const SuffixTrie* earlier = nullptr;  // earlier replies to draft from; null: none
  RecyclingTable* recycling = nullptr;  // what the model said lately, to draft from and to add to; null: nothing is
  DraftModel* draft_model = nullptr;    // null: a drafter drafts, or none
};

/// Rows of one pass while a prompt is read, a power of two: fewer on a software device, where a pass takes long.
uint32_t prefill_chunk(const Model& model);

class ReplyWriter {
 public:
  /// Throws what Engine::reply() throws for its arguments. All references must outlive the writer.
  ReplyWriter(const ReplyParts& parts, std::span<const uint32_t> prompt, const ReplySettings& settings,
              const ReplyCallbacks& callbacks);

  Reply write();

 private:
  std::unique_ptr<RoundPlanner> make_planner();
  void check(std::span<const uint32_t> prompt) const;
  void begin_with(std::span<const uint32_t> begun);
  void require_token(uint32_t id, const char* where) const;
  bool stopped() const { return callbacks_.stop.stop_requested(); }
  HeadOutput head() const;
  void choose_by(ForwardInput& input) const;
  bool drafts() const { return settings_.mode != DecodeMode::ar; }
  /// Other passes leave no aux hidden states, as writing them costs time.
  bool asks_drafter() const {
    return drafts() && (settings_.sources & kFromModels) != 0 && parts_.texts.drafter() != nullptr;
  }
  bool asks_draft_model() const {
    return drafts() && (settings_.sources & kFromModels) != 0 && parts_.draft_model != nullptr;
  }
  DraftSources asked_sources() const;
  bool recycles() const {
    return drafts() && (settings_.sources & kFromRecycling) != 0 && parts_.recycling != nullptr &&
           parts_.model.config().vocab >= kLikeliest;
  }
  uint32_t committed() const { return sequence_->length(); }

  std::optional<uint32_t> prefill();
  bool read_prompt(std::span<const uint32_t> tokens, bool last);

  bool round();
  RoundStart start() const;
  bool accept_path(RoundRecord& record);
  uint32_t choose(uint32_t row);
  uint32_t choose_at(uint32_t node);
  void recycle();
  void commit(RoundRecord& record);
  void describe_nodes(RoundRecord& record) const;
  bool cancelled();
  PlainBeside plain_beside();
  PlainBeside plain_behind();

  bool append(uint32_t token);
  bool loops_at(uint32_t token);
  void report(std::string_view shown) const;

  ReplyParts parts_;
  Sequence* sequence_ = nullptr;  // of the parts' texts, from write() on
  const ReplySettings& settings_;
  const ReplyCallbacks& callbacks_;
  Sampler sampler_;
  TokenAdjustments adjustments_;  // of history_
  ReplyText text_;
  LoopGuard loops_;                       // of the reply, where it is asked for
  std::vector<uint32_t> history_;         // prompt and reply; its last token is the root
  HeadOutput head_ = HeadOutput::none;    // of the last pass
  ForwardOutput output_;                  // likewise
  std::optional<SequenceDrafts> drafts_;  // of sequence_, in modes that draft
  std::unique_ptr<RoundPlanner> planner_;
  const DraftTree* tree_ = nullptr;  // of the round
  AcceptedPath path_;                // of the round
  uint32_t longest_ = 0;             // tokens of the reply
  bool goes_on_ = false;             // with the whole text that was current before
  Reply reply_;
};

}  // namespace canopy

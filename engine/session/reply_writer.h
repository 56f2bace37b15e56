#pragma once
// Writes one reply: reads the prompt, then runs rounds until a stop token, a limit or a request to stop ends it. The
// rounds' drafts are those of the loaded pair.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model/drafter.h"
#include "engine/model/feature_drafter.h"
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
/// alone where both others are null. `measured`: of the same pair, whose measurement of the device they take; null:
/// they have one made. All must outlive them.
std::unique_ptr<SpeculationState> pair_speculation(const Model& target, const FeatureDrafter* drafter,
                                                   const DraftModel* draft_model, CostTable table,
                                                   SpeculationState* measured = nullptr);

/// The sizes of the target that its roofline depends on.
ModelShape model_shape(const Model& model);
/// Those that follow from its configuration: elements count two bytes each.
ModelShape model_shape(const ModelConfig& config);

/// The drafts behind a sequence: by its drafter, where it has one, and from the text. Both must outlive this.
class SequenceDrafts final : public DraftSource {
 public:
  /// By the drafter alone.
  explicit SequenceDrafts(Sequence& sequence) : sequence_(sequence), sources_(kFromModels) {}
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
  uint32_t backlog() const override { return model_ != nullptr ? model_->unread(*text_) : sequence_.backlog(); }
  uint32_t most_waiting() const override { return model_ != nullptr ? UINT32_MAX : FeatureDrafter::most_waiting(); }
  uint32_t drafted_tokens() const override {
    if (model_ != nullptr) return model_->drafted_tokens();
    return asks_drafter() ? sequence_.drafter()->drafted_tokens() : 0;
  }
  DraftSources drafted_by() const override {
    return model_ != nullptr ? kFromDraft : asks_drafter() ? sequence_.drafter()->source() : kFromDflash;
  }
  uint32_t most_beams() const override {
    return model_ != nullptr ? model_->most_beams() : asks_drafter() ? sequence_.drafter()->most_beams() : 1;
  }
  const FreeDraft& from_text(uint32_t depths) override;
  const FreeDraft& recycled(uint32_t root, uint32_t depths) override;
  const BlockDraft* draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) override;
  double device_ms() const override { return model_ != nullptr ? model_->device_ms() : draft_.device_ms; }
  /// The last draft; null before the first.
  const BlockDraft* drafted() const { return drafted_; }
  bool more(uint32_t depth, uint32_t known, uint32_t count, std::vector<uint32_t>& tokens,
            std::vector<float>& logits) override;

  const Draft& last() const { return draft_; }

 private:
  bool asks_drafter() const { return sequence_.drafter() != nullptr && (sources_ & kFromModels) != 0; }

  Sequence& sequence_;
  const std::vector<uint32_t>* text_ = nullptr;
  const RecyclingTable* recycling_ = nullptr;
  DraftModel* model_ = nullptr;
  const BlockDraft* drafted_ = nullptr;
  TextDrafter found_;
  DraftSources sources_;
  FreeDraft recycled_;
  FreeDraft nothing_;
  Draft draft_;
};

/// Rows of one pass while a prompt is read, a power of two: no more than DeviceInfo::prompt_rows.
uint32_t prefill_chunk(const Model& model);

/// Several may write by turns with the same parts: between two steps of one, any others may be made.
class ReplyWriter {
 public:
  /// The objects that a reply is written with.
  struct Parts {
    Model& model;
    const TextModel& text;
    ResidentTexts& texts;                 // of the model
    SpeculationState* state = nullptr;    // null: mode adaptive is not possible
    bool draws_on_device = false;         // tokens are drawn there, not on the host; the same ones
    const SuffixTrie* earlier = nullptr;  // earlier replies to draft from; null: none
    RecyclingTable* recycling = nullptr;  // what the model said lately, to draft from and to add to; null: nothing is
    DraftModel* draft_model = nullptr;    // null: a drafter drafts, or none
    uint64_t owner = 0;                   // of the texts that it shares prompts with
  };

  /// Throws what Engine::reply() throws for its arguments. All references must outlive the writer.
  ReplyWriter(const Parts& parts, std::span<const uint32_t> prompt, const ReplySettings& settings,
              const ReplyCallbacks& callbacks);

  /// Runs one pass: over a part of the prompt, or a round. False once the reply is over; take() then has it.
  bool step();
  Reply take() { return std::move(reply_); }
  /// Of prompt and reply so far.
  uint32_t tokens() const { return static_cast<uint32_t>(history_.size()); }
  /// All steps, while nobody else writes: what the controller knows of this reply alone then stays with it.
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

  // A step, and what it runs: whether the reply goes on after it.
  bool run_step();
  void begin();
  void resume();
  bool read();
  bool first_token(uint32_t row);
  void cut_to(uint32_t kept);
  bool lacks_text();
  bool read_again();
  std::optional<uint32_t> read_rows(uint32_t end, bool choose);
  void tell_prompt(std::span<const uint32_t> tokens);
  void end();

  bool round();
  RoundStart start() const;
  bool accept_path(RoundRecord& record);
  uint32_t choose(uint32_t row);
  uint32_t choose_at(uint32_t node);
  void weigh(uint32_t row, uint32_t token);
  void recycle();
  void commit(RoundRecord& record);
  void describe_nodes(RoundRecord& record) const;
  bool cancelled();
  PlainBeside plain_beside();
  PlainBeside plain_behind();

  bool append(uint32_t token);
  bool loops_at(uint32_t token);
  void report(std::string_view shown, const TokenLogprobs* logprobs = nullptr) const;

  Parts parts_;
  enum class Stage { begin, read, write, over };
  Stage stage_ = Stage::begin;
  Sequence* sequence_ = nullptr;  // of the parts' texts, from the first step on
  HeldText held_, held_draft_;    // it, and the draft model's
  Controller::ReplyPart learns_;  // of this reply, while others write
  std::chrono::steady_clock::time_point step_start_;
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
  uint32_t told_prompt_ = 0;         // its first tokens whose log probabilities were told
  TokenLogprobs logprobs_;           // of its last token, where they are asked for
  bool goes_on_ = false;             // with the whole text that was current before
  Reply reply_;
};

}  // namespace canopy

#pragma once
// A small model that drafts for a larger one, token by token and along several paths: its weights and caches on the
// device, and what these have of the texts.

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/format/model_file.h"
#include "engine/model/model.h"
#include "engine/session/resident_texts.h"
#include "engine/speculation/beam_draft.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

struct DraftModelOptions {
  CacheType cache_type = CacheType::f16;
  LoadCallbacks callbacks;
  ReclaimableMemory* memory = nullptr;  // of a model that the pair replaces; null: none
};

/// It reads the same texts as the target, whose tokens both vocabularies have (check_pair), and says what it
/// finds likeliest behind the most probable paths (draft_beams). Each draft has the tokens that came since the one
/// before read first: what of these the draft before has run is moved behind the text instead. The texts of earlier
/// replies stay in its cache as they do in the target's. One with recurrent layers drafts along one path: a pass goes
/// on from the state behind a text, and of the states behind the nodes of an earlier pass none is kept. Belongs to the
/// target's thread.
class DraftModel final : public NodeRunner {
 public:
  /// Tokens of the longest draft, as far as the controller lets it grow.
  static constexpr uint32_t kDeepest = 12;

  /// Its context is the target's, or its own limit where that is shorter. Throws bad_input, out_of_memory, cancelled or
  /// device_lost.
  static std::unique_ptr<DraftModel> load(const ModelFile& file, const Model& target, const DraftModelOptions& options);

  /// Tokens that can be drafted behind a text of so many, the root included.
  uint32_t deepest(size_t text) const;
  /// Candidates that there are of each depth.
  uint32_t drafted_tokens() const { return kLikeliest; }
  /// Paths that one pass can go on with.
  uint32_t most_beams() const { return model_->states().places() > 0 ? 1 : kMostBeams; }
  const ModelConfig& config() const { return model_->config(); }
  uint64_t device_bytes() const { return model_->memory().total() - model_->memory().reserve; }
  uint64_t recordings() const { return model_->recordings(); }

  /// Goes on with what it has of a prompt of this owner, which is to be read by read_prompt(). What is returned makes
  /// it the text that the calls below are about.
  HeldText begin(std::span<const uint32_t> prompt, uint64_t owner);
  /// Reads the prompt's next tokens, in one pass. False when stop was requested.
  bool read_prompt(std::span<const uint32_t> prompt, const std::stop_token& stop);
  /// Tokens of a prompt that read_prompt() has to read; 0 of one that is too long to draft behind it.
  uint32_t prompt_left(std::span<const uint32_t> prompt) const;
  /// Tokens of a text, the root included, that the next draft reads first.
  uint32_t unread(std::span<const uint32_t> text) const;
  /// Behind a text whose last token is the root; wish.depths is 1 ... deepest(). Null when stop was requested. Stays as
  /// it is until the next call.
  const BlockDraft* draft(std::span<const uint32_t> text, const DraftWish& wish, const std::stop_token& stop);
  /// Of the last draft, by the device's clock; 0 where it has none.
  double device_ms() const { return device_ms_; }

  /// For measurements: a draft of one token behind `context` positions, `unread` tokens among them, or one behind each
  /// of these where they are no more than the paths of a pass. Nothing is in the caches afterwards.
  void draft_anywhere(uint32_t unread, uint32_t context, const std::stop_token& stop);

 private:
  DraftModel(std::unique_ptr<Model> model, uint32_t vocabulary);
  uint32_t known(uint32_t token) const { return token < config().vocab ? token : 0; }
  void take(std::span<const uint32_t> text);
  bool keeps_tree() const;
  AcceptedPath path_run(std::span<const uint32_t> text) const;
  bool read(HeadOutput head, const std::stop_token& stop);
  bool read_pass(HeadOutput head, const std::stop_token& stop);
  bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) override;
  bool run_branches(const DraftTree& tree, uint32_t first, const std::stop_token& stop);

  std::unique_ptr<Model> model_;
  ResidentTexts texts_;
  uint32_t vocabulary_;         // of the target
  std::vector<uint32_t> text_;  // that is read, in tokens that it knows
  ForwardOutput output_;        // of the last pass
  BlockDraft draft_;
  DraftTree tree_;                     // of the nodes that the last draft has run, while their K/V is in its places
  const Sequence* tree_of_ = nullptr;  // the text whose last token is the root of tree_; null: none
  uint32_t tree_length_ = 0;           // of that text with its root
  uint32_t tree_pages_ = 0;            // pages that it had then
  double device_ms_ = 0;
};

}  // namespace canopy

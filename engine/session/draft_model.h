#pragma once
// A small model that drafts for a larger one, token by token: its weights and caches on the device, and what these have
// of the texts.

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "engine/format/model_file.h"
#include "engine/model/model.h"
#include "engine/session/resident_texts.h"
#include "engine/speculation/draft_source.h"

namespace canopy {

struct DraftModelOptions {
  CacheType cache_type = CacheType::f16;
  LoadCallbacks callbacks;
  ReclaimableMemory* memory = nullptr;  // of a model that the pair replaces; null: none
};

/// It reads the same texts as the target, whose tokens both vocabularies have (check_draft_model), and writes the most
/// probable token behind each: drafts are chains with the likeliest other tokens at each depth. Each has the tokens
/// that came since the one before read first; the texts of earlier replies stay in its cache as they do in the
/// target's. Belongs to the target's thread.
class DraftModel {
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
  const ModelConfig& config() const { return model_->config(); }
  uint64_t device_bytes() const { return model_->memory().total() - model_->memory().reserve; }
  uint64_t recordings() const { return model_->recordings(); }

  /// Goes on with what it has of a prompt, and reads the rest of it. False when stop was requested.
  bool begin(std::span<const uint32_t> prompt, const std::stop_token& stop);
  /// Tokens of a text, the root included, that the next draft reads first.
  uint32_t unread(size_t text) const;
  /// Behind a text whose last token is the root; wish.depths is 1 ... deepest(). Null when stop was requested. Stays as
  /// it is until the next call.
  const BlockDraft* draft(std::span<const uint32_t> text, const DraftWish& wish, const std::stop_token& stop);
  /// Of the last draft, by the device's clock; 0 where it has none.
  double device_ms() const { return device_ms_; }

  /// For measurements: a draft of one token behind `context` positions, `unread` tokens among them. Nothing is in the
  /// caches afterwards.
  void draft_anywhere(uint32_t unread, uint32_t context, const std::stop_token& stop);

 private:
  DraftModel(std::unique_ptr<Model> model, uint32_t vocabulary);
  void take(std::span<const uint32_t> text);
  bool read(HeadOutput head, const std::stop_token& stop);
  void add_depth();

  std::unique_ptr<Model> model_;
  ResidentTexts texts_;
  uint32_t vocabulary_;         // of the target
  std::vector<uint32_t> text_;  // that is read, in tokens that it knows
  ForwardOutput output_;        // of the last pass
  BlockDraft draft_;
  double device_ms_ = 0;
};

}  // namespace canopy

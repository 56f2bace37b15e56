#pragma once
// The texts that stay in the caches of a model between replies, so that a prompt reads only what none of them has.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/model/feature_drafter.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/session/engine_client.h"

namespace canopy {

class ResidentTexts;

/// A text that a reply is being written to, while others may be, too: nobody else writes to it, and it is not
/// forgotten. But it may lose its end, or all of it, to one that is current: its owner reads that again. Must not
/// outlive the texts.
class HeldText {
 public:
  HeldText() = default;  // of none
  HeldText(HeldText&& other) noexcept
      : texts_(std::exchange(other.texts_, nullptr)), sequence_(std::exchange(other.sequence_, nullptr)) {}
  HeldText& operator=(HeldText&& other) noexcept {
    std::swap(texts_, other.texts_);
    std::swap(sequence_, other.sequence_);
    return *this;
  }
  ~HeldText();

  explicit operator bool() const { return texts_ != nullptr; }
  /// Makes it the current one: what is about to be run is a pass over it.
  void resume();

 private:
  friend class ResidentTexts;
  HeldText(ResidentTexts& texts, Sequence& sequence) : texts_(&texts), sequence_(&sequence) {}

  ResidentTexts* texts_ = nullptr;
  Sequence* sequence_ = nullptr;
};

/// Branches of a chat, regenerated replies and other chats: each begins as a fork of the one that it has most in common
/// with, and shares its pages. A text stays while there are pages for it. Where a pass needs more, texts lose their
/// ends page by page, the one that was used longest ago first, those that are held after all others and the current one
/// never, so that a reply which fits alone is never refused. What a reply writes does not depend on what is resident.
/// Texts of different owners know nothing of each other. Belongs to the thread of the model, which asks these texts,
/// and no others, for pages; model and drafter must outlive it.
class ResidentTexts {
 public:
  /// Texts beyond these are forgotten, the one that was used longest ago first.
  static constexpr size_t kMost = 32;

  /// Without a drafter (null) no features are kept.
  ResidentTexts(Model& model, FeatureDrafter* drafter);
  ~ResidentTexts();
  ResidentTexts(const ResidentTexts&) = delete;
  ResidentTexts& operator=(const ResidentTexts&) = delete;

  /// The text of the last begin(); an empty one before the first.
  Sequence& current() { return *texts_.front().sequence; }
  const Sequence& current() const { return *texts_.front().sequence; }
  /// Null without one.
  FeatureDrafter* drafter() const { return drafter_; }

  /// Makes a text current that is the beginning of `prompt` and as much of it as is resident of this owner, but never
  /// all: the last token's row is wanted. With `features`, those of all its tokens are kept. Where memory for a fork
  /// runs out, the text that it was to be taken from is cut instead, or, where that one is held, all is read anew.
  /// Throws device_lost; texts then still hold what they say.
  Sequence& begin(std::span<const uint32_t> prompt, bool features, uint64_t owner = 0);

  /// Holds the current text, until what is returned is gone.
  HeldText hold();

  /// Forgets each text that another one begins with, where the other has its features too: what a reply has grown over
  /// and, after a reply that was written twice, one of the two.
  void drop_repeated();

  /// Has what waits for the current text's next draft become part of its pages, as memory for that is there once; not
  /// where the text is held, which drafts soon.
  void settle();

  /// Forgets all, also what those that are held have read so far.
  void clear();

  /// What the pages of the target's cache hold.
  CacheUse use() const;

 private:
  friend class HeldText;

  struct Text {
    std::unique_ptr<Sequence> sequence;
    uint64_t owner = 0;
    bool held = false;
  };
  /// A text that begins like a prompt.
  struct Match {
    size_t text = kNobody;  // in texts_
    uint32_t usable = 0;    // tokens, features included where they are wanted
    bool goes_on = false;   // the prompt begins with all of the text, and nothing is lost where that goes on
    bool held = false;
  };
  static constexpr size_t kNobody = SIZE_MAX;

  Match best_match(std::span<const uint32_t> prompt, bool features, uint64_t owner) const;
  static bool repeats(const Text& text, const Text& other);
  void switch_to(const Match& match, uint64_t owner);
  void make_current(size_t text);
  size_t place_of(const Sequence& sequence) const;
  void add(std::unique_ptr<Sequence> text, uint64_t owner);
  template <class Action>
  bool ask_others(Action&& action);
  bool give_up_page();
  bool give_up_draft_page();
  bool give_up_state();

  Model& model_;
  FeatureDrafter* drafter_;
  std::vector<Text> texts_;  // never empty; by last use, the current one first
};

}  // namespace canopy

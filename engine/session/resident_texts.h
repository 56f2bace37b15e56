#pragma once
// The texts that stay in the caches of a model between replies, so that a prompt reads only what none of them has.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/drafter.h"
#include "engine/model/model.h"
#include "engine/model/sequence.h"
#include "engine/session/engine_client.h"

namespace canopy {

/// Branches of a chat, regenerated replies and other chats: each begins as a fork of the one that it has most in common
/// with, and shares its pages. A text stays while there are pages for it. Where a pass needs more, texts lose their
/// ends page by page, the one that was used longest ago first and the current one never, so that a reply which fits
/// alone is never refused. What a reply writes does not depend on what is resident. Belongs to the thread of the model,
/// which asks these texts, and no others, for pages; model and drafter must outlive it.
class ResidentTexts {
 public:
  /// Texts beyond these are forgotten, the one that was used longest ago first.
  static constexpr size_t kMost = 32;

  /// Without a drafter (null) no features are kept.
  ResidentTexts(Model& model, Drafter* drafter);
  ~ResidentTexts();
  ResidentTexts(const ResidentTexts&) = delete;
  ResidentTexts& operator=(const ResidentTexts&) = delete;

  /// The text of the last begin(); an empty one before the first.
  Sequence& current() { return *texts_.front(); }
  const Sequence& current() const { return *texts_.front(); }
  /// Null without one.
  Drafter* drafter() const { return drafter_; }

  /// Makes a text current that is the beginning of `prompt` and as much of it as is resident, but never all: the last
  /// token's row is wanted. With `features`, those of all its tokens are kept. Where memory for a fork runs out, the
  /// text that it was to be taken from is cut instead. Throws device_lost; texts then still hold what they say.
  Sequence& begin(std::span<const uint32_t> prompt, bool features);

  /// Forgets each text that another one begins with, where the other has its features too: what a reply has grown over
  /// and, after a reply that was written twice, one of the two.
  void drop_repeated();

  /// Forgets all.
  void clear();

  /// What the pages of the target's cache hold.
  CacheUse use() const;

 private:
  /// A text that begins like a prompt.
  struct Match {
    size_t text = 0;      // in texts_
    uint32_t usable = 0;  // tokens, features included where they are wanted
    bool whole = false;   // the prompt begins with all of the text: nothing is lost where that goes on
  };
  Match best_match(std::span<const uint32_t> prompt, bool features) const;
  void settle_current();
  void switch_to(const Match& match);
  void make_current(size_t text);
  void add(std::unique_ptr<Sequence> text);
  bool give_up_page();
  bool give_up_draft_page();
  bool give_up_state();

  Model& model_;
  Drafter* drafter_;
  std::vector<std::unique_ptr<Sequence>> texts_;  // never empty; by last use, the current one first
};

}  // namespace canopy

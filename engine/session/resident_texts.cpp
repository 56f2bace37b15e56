#include "engine/session/resident_texts.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace canopy {
namespace {

/// Whether all that is kept of `text` is kept of `other` too.
bool is_repeated_by(const Sequence& text, const Sequence& other) {
  return text.shared_with(other.tokens()) == text.length() && text.feature_length() <= other.feature_length();
}

/// Calls an action that may run out of memory; false where it does.
template <class Action>
bool fits_memory(Action&& action) {
  try {
    action();
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::out_of_memory) throw;
    log_info("Less of a text stays in the cache: " + std::string(e.what()));
    return false;
  }
}

}  // namespace

HeldText::~HeldText() {
  if (texts_ != nullptr) texts_->texts_[texts_->place_of(*sequence_)].held = false;
}

void HeldText::resume() {
  texts_->make_current(texts_->place_of(*sequence_));
}

ResidentTexts::ResidentTexts(Model& model, FeatureDrafter* drafter) : model_(model), drafter_(drafter) {
  texts_.push_back({std::make_unique<Sequence>(model_, drafter_)});
  model_.pages().set_reclaim([this] { return give_up_page(); });
  model_.states().set_reclaim([this] { return give_up_state(); });
  if (drafter_ != nullptr) drafter_->pages().set_reclaim([this] { return give_up_draft_page(); });
}

ResidentTexts::~ResidentTexts() {
  model_.pages().set_reclaim({});
  model_.states().set_reclaim({});
  if (drafter_ != nullptr) drafter_->pages().set_reclaim({});
}

ResidentTexts::Match ResidentTexts::best_match(std::span<const uint32_t> prompt, bool features, uint64_t owner) const {
  const uint32_t most = static_cast<uint32_t>(prompt.size()) - 1;
  Match best;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    const bool is_blank = i == 0 && text.sequence->length() == 0 && !text.held;
    if (text.owner != owner && !is_blank) continue;
    const uint32_t shared = text.sequence->shared_with(prompt);
    Match match{i, std::min(shared, most), shared == text.sequence->length() && !text.held, text.held};
    // Features come from the target's passes alone: where some are missed, their tokens are read again.
    if (features) match.usable = std::min(match.usable, text.sequence->reusable_length());
    match.usable = text.sequence->reachable(match.usable);
    const bool is_better = match.usable > best.usable || (match.usable == best.usable && best.held && !match.held);
    if (best.text == kNobody || is_better) best = match;
  }
  return best;
}

Sequence& ResidentTexts::begin(std::span<const uint32_t> prompt, bool features, uint64_t owner) {
  drop_repeated();
  Match match = best_match(prompt, features, owner);
  if (match.text != 0 || !match.goes_on) {
    settle();
    match = best_match(prompt, features, owner);  // anew: that may have cost others pages
    switch_to(match, owner);
  }
  texts_.front().owner = owner;
  Sequence& text = current();
  text.truncate(match.usable);
  // The copy of a page that others have too comes now: where it fails, the page is read anew.
  fits_memory([&] { text.own_last_page(); });
  if (!features) return text;
  text.go_on_with(prompt[text.length()]);
  text.truncate(text.reusable_length());
  return text;
}

void ResidentTexts::switch_to(const Match& match, uint64_t owner) {
  if (match.usable == 0) return add(std::make_unique<Sequence>(model_, drafter_), owner);
  make_current(match.text);
  if (match.goes_on) return;
  const bool has_forked = fits_memory([&] { add(current().fork(), owner); });
  if (!has_forked && match.held) add(std::make_unique<Sequence>(model_, drafter_), owner);
}

void ResidentTexts::settle() {
  if (texts_.front().held) return;
  Sequence& text = current();
  const uint32_t injected = text.feature_length() - text.backlog();
  if (!fits_memory([&] { text.inject(); })) text.forget_features(injected);
}

void ResidentTexts::make_current(size_t text) {
  const auto first = texts_.begin();
  std::rotate(first, first + static_cast<std::ptrdiff_t>(text), first + static_cast<std::ptrdiff_t>(text) + 1);
}

size_t ResidentTexts::place_of(const Sequence& sequence) const {
  const auto is_it = [&](const Text& text) { return text.sequence.get() == &sequence; };
  return static_cast<size_t>(std::ranges::find_if(texts_, is_it) - texts_.begin());
}

HeldText ResidentTexts::hold() {
  texts_.front().held = true;
  return HeldText(*this, current());
}

void ResidentTexts::add(std::unique_ptr<Sequence> text, uint64_t owner) {
  if (current().length() == 0 && !texts_.front().held) {
    texts_.front() = {std::move(text), owner};
    return;
  }
  if (texts_.size() >= kMost) {
    const auto oldest = std::find_if(texts_.rbegin(), texts_.rend() - 1, [](const Text& each) { return !each.held; });
    if (oldest != texts_.rend() - 1) texts_.erase(std::next(oldest).base());
  }
  texts_.insert(texts_.begin(), {std::move(text), owner});
}

/// Whether `text` can be forgotten where `other` stays.
bool ResidentTexts::repeats(const Text& text, const Text& other) {
  if (text.held) return false;
  return text.sequence->length() == 0 || (text.owner == other.owner && is_repeated_by(*text.sequence, *other.sequence));
}

void ResidentTexts::drop_repeated() {
  // Only the current one has changed since the others were compared.
  for (size_t i = 1; i < texts_.size(); ++i) {
    if (!repeats(texts_.front(), texts_[i])) continue;
    make_current(i);
    break;
  }
  for (size_t i = texts_.size() - 1; i > 0; --i) {
    if (!repeats(texts_[i], texts_.front())) continue;
    current().adopt_states(*texts_[i].sequence);
    texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ResidentTexts::clear() {
  const Sequence* const kept = &current();
  std::erase_if(texts_, [&](const Text& text) { return text.sequence.get() != kept && !text.held; });
  for (const Text& text : texts_) text.sequence->clear();
}

/// Calls the action on texts but the current one until it is true of one: on the one that was used longest ago first,
/// on those that are held after all others. False where it is of none.
template <class Action>
bool ResidentTexts::ask_others(Action&& action) {
  for (const bool held : {false, true}) {
    for (size_t i = texts_.size() - 1; i > 0; --i) {
      if (texts_[i].held == held && action(i)) return true;
    }
  }
  return false;
}

/// Cuts the last page off a text, and forgets it where another one has the rest.
bool ResidentTexts::give_up_page() {
  return ask_others([&](size_t place) {
    const Text& oldest = texts_[place];
    const uint32_t pages = oldest.sequence->pages();
    if (pages == 0 && oldest.held) return false;
    oldest.sequence->truncate(pages > 0 ? (pages - 1) * kPagePositions : 0);
    const auto has_it = [&](const Text& text) { return &text != &oldest && repeats(oldest, text); };
    if (std::ranges::any_of(texts_, has_it)) texts_.erase(texts_.begin() + static_cast<std::ptrdiff_t>(place));
    return true;
  });
}

/// Has a text forget a state.
bool ResidentTexts::give_up_state() {
  return ask_others([&](size_t place) { return texts_[place].sequence->give_up_state(); });
}

/// Forgets the features on the last page of a text that has any.
bool ResidentTexts::give_up_draft_page() {
  return ask_others([&](size_t place) {
    Sequence& text = *texts_[place].sequence;
    if (text.draft_pages() == 0) return false;
    text.forget_features((text.draft_pages() - 1) * kPagePositions);
    return true;
  });
}

CacheUse ResidentTexts::use() const {
  const PagePool& pool = model_.pages();
  CacheUse use;
  use.page_positions = kPagePositions;
  use.pages = pool.pages();
  use.used = pool.pages() - pool.free();
  for (uint32_t page = 0; page < pool.pages(); ++page) use.shared += pool.users(page) > 1 ? 1 : 0;
  for (const Text& text : texts_) use.texts += text.sequence->length() > 0 ? 1 : 0;
  return use;
}

}  // namespace canopy

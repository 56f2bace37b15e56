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

ResidentTexts::ResidentTexts(Model& model, Drafter* drafter) : model_(model), drafter_(drafter) {
  texts_.push_back(std::make_unique<Sequence>(model_, drafter_));
  model_.pages().set_reclaim([this] { return give_up_page(); });
  model_.states().set_reclaim([this] { return give_up_state(); });
  if (drafter_ != nullptr) drafter_->pages().set_reclaim([this] { return give_up_draft_page(); });
}

ResidentTexts::~ResidentTexts() {
  model_.pages().set_reclaim({});
  model_.states().set_reclaim({});
  if (drafter_ != nullptr) drafter_->pages().set_reclaim({});
}

ResidentTexts::Match ResidentTexts::best_match(std::span<const uint32_t> prompt, bool features) const {
  const uint32_t most = static_cast<uint32_t>(prompt.size()) - 1;
  Match best;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Sequence& text = *texts_[i];
    const uint32_t shared = text.shared_with(prompt);
    Match match{i, std::min(shared, most), shared == text.length()};
    // Features come from the target's passes alone: where some are missed, their tokens are read again.
    if (features) match.usable = std::min(match.usable, text.feature_length());
    match.usable = text.reachable(match.usable);
    if (i == 0 || match.usable > best.usable) best = match;
  }
  return best;
}

Sequence& ResidentTexts::begin(std::span<const uint32_t> prompt, bool features) {
  drop_repeated();
  Match match = best_match(prompt, features);
  if (match.text != 0 || !match.whole) {
    settle_current();
    match = best_match(prompt, features);  // anew: that may have cost others pages
    switch_to(match);
  }
  Sequence& text = current();
  text.truncate(match.usable);
  // The copy of a page that others have too comes now: where it fails, the page is read anew.
  fits_memory([&] { text.own_last_page(); });
  if (features) text.truncate(text.feature_length());
  return text;
}

void ResidentTexts::switch_to(const Match& match) {
  if (match.usable == 0) return add(std::make_unique<Sequence>(model_, drafter_));
  make_current(match.text);
  if (!match.whole) fits_memory([&] { add(current().fork()); });
}

/// What waits for the current text's next draft becomes part of its pages, as memory for that is there once.
void ResidentTexts::settle_current() {
  Sequence& text = current();
  const uint32_t injected = text.feature_length() - text.backlog();
  if (!fits_memory([&] { text.inject(); })) text.forget_features(injected);
}

void ResidentTexts::make_current(size_t text) {
  const auto first = texts_.begin();
  std::rotate(first, first + static_cast<std::ptrdiff_t>(text), first + static_cast<std::ptrdiff_t>(text) + 1);
}

void ResidentTexts::add(std::unique_ptr<Sequence> text) {
  if (current().length() == 0) {
    texts_.front() = std::move(text);
    return;
  }
  if (texts_.size() == kMost) texts_.pop_back();
  texts_.insert(texts_.begin(), std::move(text));
}

void ResidentTexts::drop_repeated() {
  // Only the current one has changed since the others were compared.
  for (size_t i = 1; i < texts_.size(); ++i) {
    if (!is_repeated_by(current(), *texts_[i])) continue;
    make_current(i);
    break;
  }
  std::erase_if(texts_, [&](const std::unique_ptr<Sequence>& text) {
    if (text == texts_.front() || !is_repeated_by(*text, current())) return false;
    current().adopt_states(*text);
    return true;
  });
}

void ResidentTexts::clear() {
  texts_.resize(1);
  current().clear();
}

/// Cuts the last page off the text that was used longest ago, and forgets it where another one has the rest.
bool ResidentTexts::give_up_page() {
  if (texts_.size() == 1) return false;
  Sequence& oldest = *texts_.back();
  oldest.truncate(oldest.pages() > 0 ? (oldest.pages() - 1) * kPagePositions : 0);
  const auto repeats = [&](const std::unique_ptr<Sequence>& text) { return is_repeated_by(oldest, *text); };
  if (std::any_of(texts_.begin(), texts_.end() - 1, repeats)) texts_.pop_back();
  return true;
}

/// Has the text that was used longest ago and has any forget a state.
bool ResidentTexts::give_up_state() {
  for (size_t i = texts_.size() - 1; i > 0; --i) {
    if (texts_[i]->give_up_state()) return true;
  }
  return false;
}

/// Forgets the features on the last page of the text that was used longest ago and has any.
bool ResidentTexts::give_up_draft_page() {
  for (size_t i = texts_.size() - 1; i > 0; --i) {
    Sequence& text = *texts_[i];
    if (text.draft_pages() == 0) continue;
    text.forget_features((text.draft_pages() - 1) * kPagePositions);
    return true;
  }
  return false;
}

CacheUse ResidentTexts::use() const {
  const PagePool& pool = model_.pages();
  CacheUse use;
  use.page_positions = kPagePositions;
  use.pages = pool.pages();
  use.used = pool.pages() - pool.free();
  for (uint32_t page = 0; page < pool.pages(); ++page) use.shared += pool.users(page) > 1 ? 1 : 0;
  for (const auto& text : texts_) use.texts += text->length() > 0 ? 1 : 0;
  return use;
}

}  // namespace canopy

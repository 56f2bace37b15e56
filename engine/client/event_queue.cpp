#include "engine/client/event_queue.h"

#include <utility>

namespace canopy {
namespace {

template <class T>
bool are_both(const Event& a, const Event& b) {
  return std::holds_alternative<T>(a) && std::holds_alternative<T>(b);
}

bool only_newest_matters(const Event& last, const Event& event) {
  if (are_both<LoadProgress>(last, event)) {
    return std::get<LoadProgress>(last).stage == std::get<LoadProgress>(event).stage;
  }
  if (are_both<PrefillProgress>(last, event)) {
    return std::get<PrefillProgress>(last).reply_id == std::get<PrefillProgress>(event).reply_id;
  }
  return are_both<CalibrationProgress>(last, event) || are_both<ReportProgress>(last, event) ||
         are_both<MemoryUse>(last, event) || are_both<ComparisonProgress>(last, event);
}

bool merge_into(Event& last, const Event& event) {
  if (const auto* text = std::get_if<TextDelta>(&event)) {
    auto* before = std::get_if<TextDelta>(&last);
    if (before == nullptr || before->reply_id != text->reply_id) return false;
    std::string joined = std::move(before->text) + text->text;
    *before = *text;
    before->text = std::move(joined);
    return true;
  }
  if (!only_newest_matters(last, event)) return false;
  last = event;
  return true;
}

}  // namespace

size_t bulk_of(const RoundRecord& record) {
  return record.nodes.capacity() * sizeof(RoundNode) + record.choice.candidates.capacity() * sizeof(WidthForecast);
}

void EventQueue::push(Event event) {
  const std::lock_guard lock(mutex_);
  if (!events_.empty() && merge_into(events_.back(), event)) return;
  if (const auto* finished = std::get_if<RoundFinished>(&event)) waiting_ += bulk_of(*finished->round);
  events_.push_back(std::move(event));
  while (waiting_ > most_waiting_) abridge_oldest();
}

void EventQueue::abridge_oldest() {
  for (; whole_ < events_.size(); ++whole_) {
    auto* finished = std::get_if<RoundFinished>(&events_[whole_]);
    if (finished == nullptr || bulk_of(*finished->round) == 0) continue;
    waiting_ -= bulk_of(*finished->round);
    RoundRecord rest = *finished->round;
    rest.nodes = std::vector<RoundNode>();  // a new vector, since clear() would keep the memory
    rest.choice.candidates = std::vector<WidthForecast>();
    finished->round = std::make_shared<const RoundRecord>(std::move(rest));
    finished->abridged = true;
    return;
  }
  waiting_ = 0;  // nothing large is left
}

std::vector<Event> EventQueue::take() {
  const std::lock_guard lock(mutex_);
  waiting_ = 0;
  whole_ = 0;
  return std::exchange(events_, {});
}

}  // namespace canopy

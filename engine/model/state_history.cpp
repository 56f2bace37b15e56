#include "engine/model/state_history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace canopy {

StateHistory::StateHistory(StatePool& pool) : pool_(&pool), current_{pool.empty(), 0} {}

StateUse StateHistory::begin(bool keeps) {
  behind_ = {};
  const uint32_t to = keeps ? place_behind() : StateUse::kNowhere;
  return {current_.state.place(), current_.position, to};
}

uint32_t StateHistory::place_behind() {
  if (!behind_) behind_ = pool_->take();
  while (!behind_) {
    if (!pool_->reclaim() && !give_up()) {
      throw out_of_memory("The text needs a place for the state of the model's recurrent layers; all " +
                          std::to_string(pool_->places()) + " that there are hold those of texts.");
    }
    behind_ = pool_->take();
  }
  return behind_.place();
}

void StateHistory::end(uint32_t tokens) {
  const uint32_t before = std::exchange(current_.position, current_.position + tokens);
  current_.state = std::exchange(behind_, {});
  if (before / kStep != current_.position / kStep) keep();
}

void StateHistory::keep() {
  if (current_.position > 0) add(current_);
}

void StateHistory::add(Kept kept) {
  const auto at = std::ranges::lower_bound(earlier_, kept.position, {}, &Kept::position);
  if (at != earlier_.end() && at->position == kept.position) return;
  earlier_.insert(at, std::move(kept));
  // Half of the places at most: other texts have some too.
  const size_t most = std::max<size_t>(1, pool_->places() / 2);
  while (earlier_.size() > most) give_up();
}

bool StateHistory::give_up() {
  if (earlier_.empty()) return false;
  // The one whose loss makes the way from the state before it to the one behind it shortest. Ties: the first.
  size_t cheapest = 0;
  uint32_t shortest = UINT32_MAX;
  for (size_t i = 0; i < earlier_.size(); ++i) {
    const uint32_t before = i == 0 ? 0 : earlier_[i - 1].position;
    const uint32_t behind = i + 1 < earlier_.size() ? earlier_[i + 1].position : current_.position;
    if (behind - before >= shortest) continue;
    shortest = behind - before;
    cheapest = i;
  }
  earlier_.erase(earlier_.begin() + static_cast<std::ptrdiff_t>(cheapest));
  return true;
}

uint32_t StateHistory::nearest(uint32_t length) const {
  if (current_.position <= length) return current_.position;
  const auto behind = std::ranges::upper_bound(earlier_, length, {}, &Kept::position);
  return behind == earlier_.begin() ? 0 : std::prev(behind)->position;
}

uint32_t StateHistory::cut(uint32_t length) {
  if (length >= current_.position) return current_.position;
  behind_ = {};
  while (!earlier_.empty() && earlier_.back().position > length) earlier_.pop_back();
  current_ = earlier_.empty() ? Kept{pool_->empty(), 0} : earlier_.back();
  return current_.position;
}

void StateHistory::pretend(uint32_t length) {
  cut(0);
  current_.position = length;
}

void StateHistory::adopt(const StateHistory& beginning) {
  for (const Kept& kept : beginning.earlier_) {
    if (kept.position < current_.position) add(kept);
  }
  if (beginning.position() > 0 && beginning.position() < current_.position) add(beginning.current_);
}

}  // namespace canopy

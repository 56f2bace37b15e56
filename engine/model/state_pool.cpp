#include "engine/model/state_pool.h"

#include <utility>

namespace canopy {

StateRef::StateRef(StatePool& pool, uint32_t place) : pool_(&pool), place_(place) {
  pool_->add_user(place_);
}

StateRef::StateRef(const StateRef& other) : pool_(other.pool_), place_(other.place_) {
  if (pool_ != nullptr) pool_->add_user(place_);
}

StateRef::StateRef(StateRef&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), place_(other.place_) {}

StateRef& StateRef::operator=(StateRef other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(place_, other.place_);
  return *this;
}

StateRef::~StateRef() {
  if (pool_ != nullptr) pool_->remove_user(place_);
}

StateRef StatePool::take() {
  for (uint32_t place = kEmpty + 1; place < places(); ++place) {
    if (users_[place] == 0) return StateRef(*this, place);
  }
  return {};
}

void StatePool::add_user(uint32_t place) {
  if (place != kEmpty && users_[place]++ == 0) ++taken_;
}

void StatePool::remove_user(uint32_t place) {
  if (place != kEmpty && --users_[place] == 0) --taken_;
}

}  // namespace canopy

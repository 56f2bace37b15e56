#include "engine/model/draft_state.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/model/drafter.h"

namespace canopy {

DraftState::DraftState(Drafter& drafter) : DraftState(drafter, PageTable(drafter.pages_)) {}

DraftState::DraftState(Drafter& drafter, const PageTable& table) : drafter_(drafter), table_(table) {}

DraftState::~DraftState() {
  release_store();
}

void DraftState::hold_store() {
  if (store_ == kNone) store_ = drafter_.acquire_store();
}

void DraftState::release_store() {
  if (store_ != kNone) drafter_.release_store(std::exchange(store_, kNone));
}

void DraftState::truncate(uint32_t positions) {
  injected_ = std::min(injected_, positions);
  waiting_ = std::min(waiting_, positions - injected_);
  table_.cut(injected_);
  if (waiting_ == 0) release_store();
}

void DraftState::pretend(uint32_t injected, uint32_t waiting) {
  const uint32_t context = drafter_.context();
  if (waiting > Drafter::most_waiting() || uint64_t{injected} + waiting > context) {
    throw bad_input(std::to_string(injected) + " injected and " + std::to_string(waiting) +
                    " waiting features were pretended; allowed: at most " + std::to_string(Drafter::most_waiting()) +
                    " waiting, in all " + std::to_string(context) + ".");
  }
  table_.reserve(0, injected);
  waiting > 0 ? hold_store() : release_store();
  injected_ = injected;
  waiting_ = waiting;
}

std::unique_ptr<DraftState> DraftState::fork() const {
  auto copy = std::unique_ptr<DraftState>(new DraftState(drafter_, table_));
  if (waiting_ > 0) {
    copy->hold_store();
    drafter_.copy_waiting(store_, copy->store_, waiting_);
  }
  copy->injected_ = injected_;
  copy->waiting_ = waiting_;
  return copy;
}

}  // namespace canopy

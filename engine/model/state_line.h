#pragma once
// The newest state of a text that is read by passes which no Sequence makes: for checks and measurements.

#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/model/state_history.h"
#include "engine/model/state_pool.h"

namespace canopy {

/// Of a model without recurrent layers (a pool without places) all uses are empty. A copy remembers a place of the
/// text.
class StateLine {
 public:
  /// Of an empty text.
  explicit StateLine(StatePool& pool) : pool_(&pool) {
    if (pool.places() > 0) state_ = pool.empty();
  }

  /// Of a pass over rows behind the text that keeps no state.
  StateUse here() const { return state_ ? StateUse{state_.place(), position_, StateUse::kNowhere} : StateUse{}; }
  /// Of a pass over the text's next rows. Throws out_of_memory where there is no place for the state behind them.
  StateUse next() {
    if (!state_) return {};
    next_ = {};
    next_ = pool_->take();
    if (!next_) {
      throw out_of_memory("A pass needs a place for the state of the model's recurrent layers; all " +
                          std::to_string(pool_->places()) + " that there are hold those of texts.");
    }
    return {state_.place(), position_, next_.place()};
  }
  /// The pass of next() is over: it had so many rows.
  void take(uint32_t rows) {
    if (!next_) return;
    state_ = std::move(next_);
    position_ += rows;
  }
  /// For measurements: as if the state were of so many tokens.
  void pretend(uint32_t position) { position_ = position; }
  const StateRef& state() const { return state_; }

 private:
  StatePool* pool_;
  StateRef state_, next_;
  uint32_t position_ = 0;
};

}  // namespace canopy

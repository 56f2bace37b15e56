#pragma once
// The states of one text: that behind all of its tokens, and earlier ones to go back to.

#include <cstdint>
#include <vector>

#include "engine/model/state_pool.h"

namespace canopy {

/// The kept states that a pass reads and writes.
struct StateUse {
  static constexpr uint32_t kNowhere = 0xFFFFFFFF;

  uint32_t from = StatePool::kEmpty;  // the state of the text that the pass stands behind
  uint32_t position = 0;              // the length of that text
  uint32_t to = kNowhere;  // where the state after the last row goes; only of rows that follow each other in a line
  bool operator==(const StateUse&) const = default;
};

/// A recurrence cannot be cut back, so states are kept on the way: at every kStep positions, and wherever a text is
/// likely to be gone back to. Which go first where there are too many says the distance to their neighbours. Copies
/// share all states.
class StateHistory {
 public:
  static constexpr uint32_t kStep = 2048;

  /// Of an empty text.
  explicit StateHistory(StatePool& pool);

  /// Tokens that the newest state is of.
  uint32_t position() const { return current_.position; }
  /// States of earlier positions.
  uint32_t checkpoints() const { return static_cast<uint32_t>(earlier_.size()); }

  /// The use of a pass behind all tokens; `keeps`: with a place for the state after it, which end() takes over. Forgets
  /// what the pass before would have kept. Throws out_of_memory where there is no place.
  StateUse begin(bool keeps);
  /// A place for the state after the pass, where begin() took none.
  uint32_t place_behind();
  /// Whether this is the place for the state after the pass.
  bool is_behind(uint32_t place) const { return behind_ && behind_.place() == place; }
  /// `tokens` are committed, and their state is in the place of begin() or place_behind().
  void end(uint32_t tokens);
  /// Keeps the present state as one to go back to.
  void keep();

  /// The last position up to `length` of which there is a state.
  uint32_t nearest(uint32_t length) const;
  /// Goes back to nearest(length), which is returned.
  uint32_t cut(uint32_t length);
  /// For measurements: as if the state of an empty text were of so many tokens.
  void pretend(uint32_t length);

  /// Takes over the earlier states of a text that this one begins with, as far as there is room.
  void adopt(const StateHistory& beginning);
  /// Forgets one of the earlier states; false where there are none.
  bool give_up();

 private:
  struct Kept {
    StateRef state;
    uint32_t position = 0;
  };
  void add(Kept kept);

  StatePool* pool_;
  Kept current_;
  StateRef behind_;            // the place for the state after the pass that was begun; none: nothing is kept
  std::vector<Kept> earlier_;  // ascending by position, none above the current one or 0
};

}  // namespace canopy

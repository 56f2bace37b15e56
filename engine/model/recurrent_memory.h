#pragma once
// Recurrent layers: the states of texts, which are kept and shared, what such layers keep and work in on a device,
// and the order in which they go through the rows of a pass.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/compute/device.h"
#include "engine/compute/ops.h"
#include "engine/compute/rows.h"
#include "engine/format/model_config.h"
#include "engine/model/load_plan.h"
#include "engine/model/weights.h"

namespace canopy {

// Which states of recurrent layers are kept, and by how many texts. Pure bookkeeping; no device.
//
// A kept state is never written again: a text that goes on has its new state put into another place. So a checkpoint is
// a state that is still held, and forks share states by holding the same.

class StatePool;

/// A user of a kept state. The pool must outlive it.
class StateRef {
 public:
  StateRef() = default;  // of none
  StateRef(const StateRef& other);
  StateRef(StateRef&& other) noexcept;
  StateRef& operator=(StateRef other) noexcept;
  ~StateRef();

  explicit operator bool() const { return pool_ != nullptr; }
  /// Its place among the kept states.
  uint32_t place() const { return place_; }

 private:
  friend class StatePool;
  StateRef(StatePool& pool, uint32_t place);

  StatePool* pool_ = nullptr;
  uint32_t place_ = 0;
};

class StatePool {
 public:
  /// Of so many places. The first is that of an empty text and always there.
  explicit StatePool(uint32_t places) : users_(places) {}
  StatePool(const StatePool&) = delete;
  StatePool& operator=(const StatePool&) = delete;

  static constexpr uint32_t kEmpty = 0;

  uint32_t places() const { return static_cast<uint32_t>(users_.size()); }
  uint32_t free() const { return places() > 0 ? places() - 1 - taken_ : 0; }
  /// The state of an empty text: zeros.
  StateRef empty() { return StateRef(*this, kEmpty); }
  /// A place that nobody has; nothing where there is none.
  StateRef take();

  /// Asked, as often as it takes, where a text needs a place and none is free: has texts that can do without one give
  /// it up, never the one that asks. False where none is left to give up. Empty: nobody is asked.
  void set_reclaim(std::function<bool()> reclaim) { reclaim_ = std::move(reclaim); }
  bool reclaim() { return reclaim_ && reclaim_(); }

 private:
  friend class StateRef;
  void add_user(uint32_t place);
  void remove_user(uint32_t place);

  std::vector<uint32_t> users_;  // by place; not of the first
  uint32_t taken_ = 0;
  std::function<bool()> reclaim_;
};

// The states of one text: that behind all of its tokens, and earlier ones to go back to.

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

// The newest state of a text that is read by passes which no Sequence makes: for checks and measurements.

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

// The order in which a recurrence goes through the rows of a pass (DeltaStep).

/// The row of a pass whose position is the one before and which it sees, by row; DeltaStep::kNone where it follows the
/// text. Throws bad_input where such a row comes later, or where a row that follows no other does not stand at
/// `position`, behind the text whose state there is.
std::vector<uint32_t> parents_of(const RowBatch& batch, uint32_t position);

/// A step for each row: children behind their parent, the one with most rows below it last, so that few states wait at
/// a time. A row's state is put aside where a child does not come next. With `use.to`, rows must be a line. Throws
/// bad_input as parents_of() does, and for a `use.to` of rows that are none.
std::vector<DeltaStep> delta_walk(const RowBatch& batch, const StateUse& use);

/// States that are put aside at a time, at most, in a pass of so many rows.
uint32_t most_spare_states(uint32_t width);

// What recurrent layers keep and work in on a device: the states of texts, and what a pass leaves of its rows, so that
// those that are accepted can be applied once more.

/// Bytes of the kept states of all layers, and of all else here.
uint64_t kept_state_bytes(const ModelConfig& config, const ModelLimits& limits);
uint64_t recurrent_working_bytes(const ModelConfig& config, const ModelLimits& limits, const Device& device);

/// Memory of one recurrent layer. W is at most limits.rows(). Of short convolutions, whose state is its tail, rows have
/// 3 H elements and tails H channels.
struct RecurrentLayer {
  std::unique_ptr<Buffer> inputs;  // [W, row_elements]: what the layer's products gave; of the last pass
  std::unique_ptr<Buffer> states;  // [limits.states, value_heads, key_dim, value_dim]; null of short convolutions
  std::unique_ptr<Buffer> tails;   // [limits.states, taps - 1, channels]
};

class RecurrentMemory {
 public:
  RecurrentMemory(Device& device, const ModelConfig& config, const ModelLimits& limits);

  /// Of delta nets.
  const DeltaShape& shape() const { return shape_; }
  /// Of short convolutions; 0 where recurrent layers are delta nets.
  uint32_t conv_taps() const { return conv_taps_; }
  /// Of a row, what a layer's products give.
  uint32_t row_elements() const { return row_elements_; }
  uint32_t rows() const { return rows_; }
  /// Of a layer of the model, which must be recurrent.
  const RecurrentLayer& layer(uint32_t layer) const { return layers_[index_.at(layer)]; }

  // Of the layer at hand; of short convolutions the last alone.
  Buffer& prepared() const { return *prepared_; }     // [W, row_elements]
  Buffer& spare() const { return *spare_; }           // [most_spare_states(W), value_heads, key_dim, value_dim]
  Buffer& gate() const { return *gate_; }             // [W, values]
  Buffer& read() const { return *read_; }             // [W, values]
  Activations& results() const { return *results_; }  // [W, values], or [W, H]: what the layer's last product reads

  /// Applies rows of the last pass, each of which follows the one before, to the state use.from of all layers, and puts
  /// the result to use.to. Waits for it. At most kMaxRows.
  void apply(const Weights& weights, std::span<const uint32_t> rows, const StateUse& use);
  static constexpr uint32_t kMaxRows = 4096;  // of the widest pass
  /// Model::read_state().
  std::vector<float> read_state(uint32_t layer, uint32_t place) const;
  /// After Device::fall_back().
  void forget_recordings() { commands_ = {}; }

 private:
  Commands& commands_for(const Weights& weights, uint32_t steps);

  Device& device_;
  DeltaShape shape_;
  uint32_t conv_taps_;
  uint32_t row_elements_ = 0;
  uint64_t state_elements_ = 0, tail_elements_ = 0;
  uint32_t rows_;
  std::vector<uint32_t> index_;  // by layer of the model: into layers_
  std::vector<RecurrentLayer> layers_;
  std::unique_ptr<Buffer> prepared_, spare_, gate_, read_, steps_;
  std::unique_ptr<Activations> results_;
  std::array<std::unique_ptr<Commands>, 13> commands_;  // by log2 of the steps
};

/// delta_inputs and delta_net of a layer, or short_conv, over a list of steps. `reads`: their results go to
/// memory.read(), those of short_conv to memory.results().
void record_recurrence(Recorder& record, const RecurrentMemory& memory, const LayerWeights& weights, uint32_t layer,
                       uint32_t width, const Buffer& steps, bool reads);

}  // namespace canopy

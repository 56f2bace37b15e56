#pragma once
// Which states of recurrent layers are kept, and by how many texts. Pure bookkeeping; no device.
//
// A kept state is never written again: a text that goes on has its new state put into another place. So a checkpoint is
// a state that is still held, and forks share states by holding the same.

#include <cstdint>
#include <functional>
#include <vector>

namespace canopy {

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

}  // namespace canopy

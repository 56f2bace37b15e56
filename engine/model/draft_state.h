#pragma once
// The state that a drafter keeps of one text.

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compute/device.h"
#include "engine/model/page_table.h"

namespace canopy {

class Drafter;

/// Features of a text's first known() positions: of the first of them as keys and values in the drafter's layers, in
/// pages of a cache that all texts share; of the others as they came, waiting for the next draft, which injects them on
/// its way. Part of a Sequence; not thread-safe; the drafter must outlive it.
class DraftState {
 public:
  /// Of an empty text. While features wait, it holds one of the drafter's memories for such: the first is part of its
  /// memory plan, others are allocated when all are held, and stay the drafter's. Where another does not fit, what
  /// appends features throws out_of_memory, with needed and available bytes.
  explicit DraftState(Drafter& drafter);
  ~DraftState();
  DraftState(const DraftState&) = delete;
  DraftState& operator=(const DraftState&) = delete;

  uint32_t known() const { return injected_ + waiting_; }
  uint32_t backlog() const { return waiting_; }
  /// Of the drafter's cache.
  uint32_t pages() const { return static_cast<uint32_t>(table_.pages().size()); }

  /// Forgets all positions from `positions` on.
  void truncate(uint32_t positions);

  /// For measurements: so many positions count as injected and waiting from now on, whatever is kept of them. Throws
  /// bad_input beyond the context or for more than can wait.
  void pretend(uint32_t injected, uint32_t waiting);

  /// The same features in a state of their own: it shares pages, and what waits is copied. Throws out_of_memory where
  /// something waits.
  std::unique_ptr<DraftState> fork() const;

 private:
  friend class Drafter;

  DraftState(Drafter& drafter, const PageTable& table);
  void hold_store();
  /// Nothing may wait.
  void release_store();

  static constexpr uint32_t kNone = ~0u;

  Drafter& drafter_;
  uint32_t store_ = kNone;  // which of the drafter's memories for features
  PageTable table_;         // of the drafter's cache
  uint32_t injected_ = 0;
  uint32_t waiting_ = 0;
};

}  // namespace canopy

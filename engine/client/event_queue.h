#pragma once
// The queue of events from the engine to a front end. It is bounded in size, since the front end may not poll for a
// while and the engine never waits for it.

#include <cstddef>
#include <mutex>
#include <vector>

#include "engine/client/engine_client.h"

namespace canopy {

/// Thread-safe.
class EventQueue {
 public:
  /// Bytes of nodes and candidate widths that may wait: some thousand rounds of large trees.
  static constexpr size_t kMostWaiting = size_t{64} << 20;

  explicit EventQueue(size_t most_waiting = kMostWaiting) : most_waiting_(most_waiting) {}

  /// Appends an event, or merges it into the last one: progress replaces progress, text is appended to text. When more
  /// than kMostWaiting bytes wait, the oldest rounds lose their nodes and candidate widths (RoundFinished::abridged); a
  /// few hundred bytes of each round remain.
  void push(Event event);

  /// Removes and returns all waiting events, oldest first.
  std::vector<Event> take();

 private:
  void abridge_oldest();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::vector<Event> events_;
  size_t waiting_ = 0;  // bytes of what abridge_oldest() could drop
  size_t whole_ = 0;    // index in events_ before which every round is abridged
};

/// Bytes of the parts of a record that abridging removes (nodes and candidate widths).
size_t bulk_of(const RoundRecord& record);

}  // namespace canopy

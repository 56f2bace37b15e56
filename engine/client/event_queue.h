#pragma once
// Events on their way to a front end that may not poll for a while. The engine never waits for it, and what waits for
// it stays small.

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

  /// Appends an event, or merges it into the last one where only the newest of its kind matters (progress) or both say
  /// what one could (text). Beyond kMostWaiting the oldest rounds that wait lose what is large about them
  /// (RoundFinished::abridged); what is left takes a few hundred bytes a round.
  void push(Event event);

  /// All that waits, oldest first.
  std::vector<Event> take();

 private:
  void abridge_oldest();

  const size_t most_waiting_;
  std::mutex mutex_;
  std::vector<Event> events_;
  size_t waiting_ = 0;  // bytes of what abridge_oldest() could drop
  size_t whole_ = 0;    // index in events_ before which every round is abridged
};

/// Memory of the parts of a record that an abridged one lacks.
size_t bulk_of(const RoundRecord& record);

}  // namespace canopy

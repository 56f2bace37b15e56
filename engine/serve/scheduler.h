#pragma once
// Which of the replies that clients wait for is written when: several at once, a pass of each in turn; further ones
// wait, fairly.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/serve/fair_queue.h"
#include "engine/serve/reply_queue.h"
#include "engine/session/engine.h"
#include "engine/session/reply.h"
#include "engine/trace/round_statistics.h"

namespace canopy {

/// Watches the replies of a server, on the thread that writes them. A request that is cancelled, or fails, before its
/// turn comes is not told.
class ServedObserver {
 public:
  virtual ~ServedObserver() = default;
  /// A reply begins. What is returned is told while it is written (ReplyCallbacks::stop of it is not looked at:
  /// Scheduler::stop() ends a reply).
  virtual ReplyCallbacks begin(const ServedRequest& request) = 0;
  /// It ended: as `reply`, or, where that is null, by `problem`.
  virtual void end(uint64_t id, const Reply* reply, const std::optional<Error>& problem) = 0;
};

/// Sums since the server began.
struct ServedCounts {
  uint64_t done = 0, cancelled = 0, failed = 0;  // replies
  uint64_t prompt_tokens = 0, reused_tokens = 0, reply_tokens = 0;
  double prefill_ms = 0, decode_ms = 0;
  RoundStatistics rounds;
};
/// As Prometheus reads them, with the replies that wait and those that are being written.
std::string metrics_text(const ServedCounts& counts, uint32_t waiting, uint32_t running);

struct SchedulerLimits {
  uint32_t parallel = 4;       // replies that are written at once, at most
  uint32_t most_waiting = 64;  // beside these
  /// Tokens of a reply that the caches must have room for where it begins beside others, if it may get as many; and
  /// where one goes on beside those that began before it.
  uint32_t room_to_begin = 512, room_to_go_on = 128;
  uint32_t most_keys = 16;                   // of which what was learnt is kept, those used last
  uint64_t key_bytes = uint64_t{256} << 20;  // that this takes, all keys together; one key may take more
};

/// What was learnt of the replies to each key, the last used ones of them.
class KeyMemories {
 public:
  KeyMemories(const Engine& engine, uint32_t most_keys, uint64_t most_bytes)
      : engine_(engine), most_keys_(most_keys), most_bytes_(most_bytes) {}

  /// That of a key; it stays as long as it is held.
  std::shared_ptr<DraftMemory> of(size_t key);
  /// Forgets those that were used longest ago, beyond the bounds; not the one used last.
  void bound();
  size_t size() const { return memories_.size(); }

 private:
  const Engine& engine_;
  const uint32_t most_keys_;
  const uint64_t most_bytes_;
  std::list<std::shared_ptr<DraftMemory>> memories_;  // the one used last first
};

class Scheduler {
 public:
  /// `engine` and the observer, which may be null, must outlive this. wake: called from any thread where there is
  /// something new to do for step(); may be empty.
  Scheduler(const Engine& engine, const SchedulerLimits& limits, ServedObserver* observer = nullptr,
            std::function<void()> wake = {});
  ~Scheduler();

  // From any thread.

  /// Puts a reply behind those that wait. Null where as many wait as may.
  std::shared_ptr<QueuedReply> put(ServedRequest request);
  /// Ends a reply within a pass. Does nothing where it is over.
  void stop(uint64_t id);
  /// A reply that is paused gets no turns, and keeps its place.
  void pause(uint64_t id, bool paused);
  ServedCounts counts() const;
  uint32_t waiting() const;
  uint32_t running() const;

  // On the thread that the engine belongs to.

  /// Does the work of one turn: a pass of one reply, over a part of its prompt or for its next tokens. Whether there is
  /// more to do at once. Other replies of the engine may be written between two calls: they are not held up, and where
  /// they need the memory of served ones, these read their texts again later. Throws device_lost where the device is
  /// gone.
  bool step();
  /// Steps until `stop`; waits where there is nothing to do. All replies are over then.
  void run(const std::stop_token& stop);
  /// Ends all replies, and all that are put from now on.
  void end_all();

 private:
  struct Running;

  void drop_cancelled();
  void admit();
  bool has_room_for(const ServedRequest& request) const;
  std::list<Running>::iterator next_turn();
  void finish(std::list<Running>::iterator which, const Reply* reply, const std::optional<Error>& problem);
  std::shared_ptr<QueuedReply> find(uint64_t id) const;
  bool has_ended() const;
  void wake();

  const Engine& engine_;
  const SchedulerLimits limits_;
  ServedObserver* const observer_;
  const std::function<void()> wake_;
  // Of the engine's thread:
  KeyMemories memories_;
  std::list<Running> running_;  // whose turn it is first

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  FairQueue<std::shared_ptr<QueuedReply>> waiting_;    // guarded by mutex_
  std::vector<std::shared_ptr<QueuedReply>> written_;  // likewise: those of running_
  bool ended_ = false, is_new_ = false;                // likewise
  uint64_t last_id_ = 0;                               // likewise
  ServedCounts counts_;                                // likewise
};

}  // namespace canopy

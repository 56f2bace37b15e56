#pragma once
// The replies that clients wait for, between the threads of their connections and the one that writes them, one after
// the other in the order in which they came.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/session/engine.h"
#include "engine/session/reply.h"
#include "engine/trace/round_statistics.h"

namespace canopy {

/// What came of a reply since it was last asked.
struct ReplyNews {
  std::string thinking, text;                              // `thinking`: where it is told apart
  bool told_apart = false;                                 // the reply is in channels
  std::vector<std::shared_ptr<const RoundRecord>> rounds;  // where they were asked for
  bool over = false;
  // Once it is over:
  FinishReason reason = FinishReason::failed;
  std::vector<ToolCall> calls;  // in channels of their own
  uint32_t prompt_tokens = 0, reused_tokens = 0, reply_tokens = 0;
  std::optional<Error> problem;
};

/// One reply that is waited for.
class QueuedReply {
 public:
  QueuedReply(std::vector<uint32_t> prompt, ReplySettings settings, bool rounds)
      : prompt_(std::move(prompt)), settings_(std::move(settings)), wants_rounds_(rounds) {}

  /// What came since the last call, after at most that time; empty where nothing did.
  ReplyNews take(std::chrono::milliseconds most);
  /// Ends it within a pass, also where it has not begun. To be called where nobody waits any more.
  void cancel() { stop_.request_stop(); }

 private:
  friend class ReplyQueue;

  /// Bytes of rounds that may wait for a client that reads slowly.
  static constexpr size_t kMostWaitingRounds = size_t{64} << 20;

  void tell(const ReplyProgress& progress);
  void tell(const RoundRecord& round);
  void end(const Reply* reply, const std::optional<Error>& problem);

  const std::vector<uint32_t> prompt_;
  const ReplySettings settings_;
  const bool wants_rounds_;
  std::stop_source stop_;

  std::mutex mutex_;
  std::condition_variable ready_;
  ReplyNews news_;             // guarded by mutex_
  size_t waiting_rounds_ = 0;  // likewise
};

/// Sums since the server began.
struct ServedCounts {
  uint64_t done = 0, cancelled = 0, failed = 0;  // replies
  uint64_t prompt_tokens = 0, reused_tokens = 0, reply_tokens = 0;
  double prefill_ms = 0, decode_ms = 0;
  RoundStatistics rounds;
};

class ReplyQueue {
 public:
  explicit ReplyQueue(uint32_t most_waiting) : most_waiting_(most_waiting) {}

  /// Puts a reply at the end. Null where as many wait as may.
  std::shared_ptr<QueuedReply> put(std::vector<uint32_t> prompt, ReplySettings settings, bool rounds);

  /// Writes replies on this thread until `stop`. Throws device_lost where the device is gone.
  void run(const Engine& engine, const std::stop_token& stop);

  ServedCounts counts() const;
  uint32_t waiting() const;
  bool writing() const;

 private:
  const uint32_t most_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable_any filled_;
  std::deque<std::shared_ptr<QueuedReply>> waiting_;  // guarded by mutex_
  bool writing_ = false;                              // likewise
  ServedCounts counts_;                               // likewise
};

}  // namespace canopy

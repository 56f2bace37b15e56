#pragma once
// A reply that a client waits for, between the thread of its connection and the one that writes it.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/session/reply.h"
#include "engine/speculation/logprobs.h"
#include "engine/text/chat_turn.h"

namespace canopy {

struct Engine;

/// Who asks. Clients with the same key share caches and what was learnt; those with another see nothing of it.
struct ServedClient {
  size_t key = 0;        // among the keys of the server; 0 where none is needed
  std::string key_name;  // for people, never the key itself; empty where none is needed
  std::string address;   // it asks from, without the port
};

/// One reply that is asked for.
struct ServedRequest {
  uint64_t id = 0;  // given by Scheduler::put(), never the same twice
  ServedClient client;
  std::string kind;             // the path of the request: "/v1/chat/completions"
  std::vector<ChatTurn> turns;  // of a chat; empty of a completion
  std::vector<uint32_t> prompt;
  ReplySettings settings;
  std::optional<bool> thinking;  // of a chat; none: as the chat template has it
  bool wants_rounds = false;     // the client
  int priority = 0;              // a higher one gets all the turns
};

/// A token of a reply with its log probabilities.
struct TokenNews {
  TokenLogprobs logprobs;
  uint32_t text_end = 0;  // ReplyProgress::text_end
};

/// What came of a reply since it was last asked.
struct ReplyNews {
  std::string thinking, text;                  // `thinking`: where it is told apart
  bool told_apart = false;                     // the reply is in channels
  std::vector<Event> events;                   // of the reply, without its id; where rounds were asked for
  std::vector<TokenLogprobs> prompt_logprobs;  // of its tokens, where they were asked for
  std::vector<TokenNews> tokens;               // likewise
  bool over = false;
  // Once it is over:
  FinishReason reason = FinishReason::failed;
  std::string stop_string;      // that ended it; empty: none did
  std::vector<ToolCall> calls;  // in channels of their own
  uint32_t prompt_tokens = 0, reused_tokens = 0, reply_tokens = 0;
  std::optional<Error> problem;
};

/// One reply that is waited for.
class QueuedReply {
 public:
  /// wake: called where it is cancelled, paused or goes on.
  QueuedReply(ServedRequest request, std::function<void()> wake);

  const ServedRequest& request() const { return request_; }
  /// What came since the last call, after at most that time; empty where nothing did. What comes before `together` is
  /// waited for, but not behind the end: a reader that is woken for every token of a fast model takes its time.
  ReplyNews take(std::chrono::milliseconds most, std::chrono::steady_clock::time_point together = {});
  /// Ends it within a pass, also where it has not begun. To be called where nobody waits any more.
  void cancel();
  /// While it is paused it gets no turns, and keeps its place.
  void pause(bool paused);

 private:
  friend class Scheduler;

  /// Bytes of rounds that may wait for a client that reads slowly.
  static constexpr size_t kMostWaitingRounds = size_t{64} << 20;

  bool is_cancelled() const { return stop_.stop_requested(); }
  /// What writing it reports, to those who wait for it.
  ReplyCallbacks callbacks();
  void tell(const ReplyProgress& progress);
  void tell(const TokenLogprobs& prompt_token);
  void tell(Event event);
  void end(const Engine& engine, const Reply* reply, const std::optional<Error>& problem);

  const ServedRequest request_;
  const std::function<void()> wake_;
  std::optional<ReplyPublisher> publisher_;  // of events, where rounds were asked for
  std::stop_source stop_;
  std::atomic<bool> paused_{false};

  std::mutex mutex_;
  std::condition_variable ready_;
  ReplyNews news_;             // guarded by mutex_
  size_t waiting_rounds_ = 0;  // likewise
  bool is_awaited_ = false;    // likewise: whatever comes, it is to be told at once
};

}  // namespace canopy

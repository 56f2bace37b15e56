#pragma once
// A recorded run as the conversation it was: the prompts, and the replies as far as the round that is shown. Beside the
// user's own chat, which it never touches.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/conversation/conversation.h"
#include "app/rounds/trace_log.h"
#include "engine/text/chat_turn.h"

namespace canopy::app {

/// Where a recording comes from, as people say it. Empty where the file does not tell.
struct ReplayOrigin {
  std::string target, drafter, device, driver;
  std::string recorded;   // "2026-11-22 03:16 UTC"
  bool redacted = false;  // no texts were kept
};

class ReplayChat {
 public:
  ReplayChat() = default;
  /// last_id: of messages of this process, which those of the recording must not share.
  ReplayChat(const TraceLog& log, uint64_t& last_id);

  const Conversation& conversation() const { return conversation_; }
  const ReplayOrigin& origin() const { return origin_; }
  /// Writes the text up to a round of the log. Free when it is that already.
  void show(size_t round);

  /// Where the rounds of a reply begin in the log; nothing for any other message.
  std::optional<size_t> first_round(uint64_t message) const;

 private:
  struct Reply {
    size_t first_round = 0, rounds = 0;
    std::vector<Message> questions;  // what stands before it and was not said before
    Message whole;
    std::vector<uint32_t> ends;  // [rounds] bytes of the text that each round completed
  };
  void add(const TraceLog& log, size_t index, uint64_t& last_id);
  void write(const TraceLog& log, const TraceReply& recorded, const ReplySummary& summary, Reply& reply);
  Message up_to(const Reply& reply, size_t round) const;

  ReplayOrigin origin_;
  std::vector<Reply> replies_;
  std::vector<ChatTurn> said_;  // by the end of the reply that was read last
  Conversation conversation_;
  size_t shown_reply_ = SIZE_MAX;
  size_t shown_round_ = SIZE_MAX;
};

}  // namespace canopy::app

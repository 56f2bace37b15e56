#pragma once
// A recorded run shown as a conversation: its prompts, and its replies up to the shown round. It is separate from the
// user's own chat and never changes it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/conversation/conversation.h"
#include "app/rounds/trace_log.h"
#include "engine/text/chat_turn.h"

namespace canopy::app {

/// Where a recording comes from, as text for the user. Fields that the file does not have are empty.
struct ReplayOrigin {
  std::string target, drafter, device, driver;
  std::string recorded;   // "2026-11-22 03:16", by the user's clock
  bool redacted = false;  // the trace was recorded without texts
  std::string times;      // where its times come from if nothing was recorded there: "predicted", "measured elsewhere"
};

class ReplayChat {
 public:
  ReplayChat() = default;
  /// last_id: the last message id of this process; the messages of the recording get ids above it.
  ReplayChat(const TraceLog& log, uint64_t& last_id);

  const Conversation& conversation() const { return conversation_; }
  const ReplayOrigin& origin() const { return origin_; }
  /// Sets the text to what had been written by the end of this round of the log; with `told` false to what there was
  /// before it. Does nothing if that is shown already.
  void show(size_t round, bool told = true);

  /// The index in the log of the first round of a reply; nullopt for any other message.
  std::optional<size_t> first_round(uint64_t message) const;

 private:
  struct Reply {
    size_t first_round = 0, rounds = 0;
    std::vector<Message> questions;  // the messages before the reply that no earlier prompt had
    Message whole;
    uint32_t begin = 0;          // bytes of the text before the first round
    std::vector<uint32_t> ends;  // [rounds] bytes of the text after each round
  };
  void add(const TraceLog& log, size_t index, uint64_t& last_id);
  void write(const TraceLog& log, const TraceReply& recorded, const ReplySummary& summary, Reply& reply);
  Message up_to(const Reply& reply, size_t round, bool told) const;

  ReplayOrigin origin_;
  std::vector<Reply> replies_;
  std::vector<ChatTurn> said_;  // the conversation up to and with the last reply added
  Conversation conversation_;
  size_t shown_reply_ = SIZE_MAX;
  size_t shown_round_ = SIZE_MAX;
  bool told_ = true;
};

}  // namespace canopy::app

#pragma once
// The part of update() in view_model.h that is about the conversation: how events and commands change it. Pure, like
// the rest of update().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/conversation/chat_state.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

struct Effects;
struct ViewModel;
class Conversation;

// Events of the reply being written; the caller has checked their reply id.
void on_started(ViewModel& view, const ReplyStarted& event);
void on_text(ViewModel& view, const TextDelta& event);
void on_round(ViewModel& view, const RoundFinished& event);
void on_finished(ViewModel& view, const ReplyFinished& event);
/// Ends the reply being written. After a failure it keeps its text; ReplyFinished may or may not follow.
void end_reply(ViewModel& view, FinishReason reason);

/// The turns of the prompt for a reply to the first `length` messages, with a system prompt unless it is blank. Leaves
/// out a question whose answer failed before its first word, so that roles alternate as chat templates expect.
/// The first `left_out` messages are left out too.
std::vector<ChatTurn> turns_before(const Conversation& conversation, size_t length, const std::string& system_prompt,
                                   size_t left_out = 0);

/// Completes a request by how it is drafted now, and makes the view wait for its reply.
void begin_reading(ViewModel& view, Generate& command);

/// The option on thinking for the next reply: none where the model's template does not ask for it.
std::optional<bool> thinking_asked(const ViewModel& view);
/// Whether replies think, as far as it can be chosen.
bool thinking_on(const ViewModel& view);

inline constexpr int64_t kNoteMs = 6000;  // that a note stays

/// Takes the note away when it has been there for kNoteMs. True when it did. Call when time has passed.
bool age_note(ViewModel& view);

// Commands. A command that is not allowed now changes nothing.
Effects send_message(ViewModel& view, const std::string& text);
Effects stop_reply(ViewModel& view);
Effects answer_last_again(ViewModel& view);
/// Shows another conversation. The one that was shown goes into Effects::closed, to be saved.
Effects show_conversation(ViewModel& view, Conversation next);
Effects new_chat(ViewModel& view);
/// Commands that need the disk (OpenChat ... ImportChat) change nothing here: ChatDesk carries them out.
Effects update_chat(ViewModel& view, const ChatCommand& command);

}  // namespace canopy::app

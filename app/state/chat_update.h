#pragma once
// The part of view_model.h's update() that is about the conversation: what its events and commands do to the state.
// Pure, like all of it.

#include <cstddef>
#include <string>
#include <vector>

#include "app/conversation/chat_state.h"
#include "engine/client/engine_client.h"

namespace canopy::app {

struct Effects;
struct ViewModel;
class Conversation;

// Events of the reply under way; the caller has checked that they are.
void on_text(ViewModel& view, const TextDelta& event);
void on_round(ViewModel& view, const RoundFinished& event);
void on_finished(ViewModel& view, const ReplyFinished& event);
/// A failed reply keeps the text it had; ReplyFinished may or may not follow.
void end_reply(ViewModel& view, FinishReason reason);

/// The turns a reply to the first `length` messages answers, with a system prompt unless it is blank. A question whose
/// answer failed before its first word is left out, so that roles alternate as chat templates expect.
std::vector<ChatTurn> turns_before(const Conversation& conversation, size_t length, const std::string& system_prompt);

// Commands. Each does nothing where it makes no sense.
Effects send_message(ViewModel& view, const std::string& text);
Effects stop_reply(ViewModel& view);
Effects answer_last_again(ViewModel& view);
/// Puts a conversation in the place of the one that is shown, which the effects carry away to be kept.
Effects show_conversation(ViewModel& view, Conversation next);
Effects new_chat(ViewModel& view);
/// Those that need the disk (OpenChat ... ImportChat) are ChatDesk's and change nothing here.
Effects update_chat(ViewModel& view, const ChatCommand& command);

}  // namespace canopy::app

#pragma once
// "Continue": a reply that the token limit or the user ended is gone on with, in place. It becomes the reply that a
// larger limit would have given, token for token. Part of update() in view_model.h, and pure like it.

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/client/engine_client.h"

namespace canopy::app {

struct Effects;
struct Message;
struct ViewModel;

/// Whether message i of the chat is one to go on with: the last one, a reply that a limit or the user ended.
bool is_unfinished(const ViewModel& view, size_t i);

/// Why an unfinished reply cannot be gone on with now, as a sentence; empty when it can.
std::string continue_obstacle(const ViewModel& view, const Message& reply);

// ---- for chat_update.cpp --------------------------------------------------------------------------------------------

Effects continue_reply(ViewModel& view, uint64_t message);
/// The engine goes on: what does not stand of the text is taken away, and the part begins.
void on_continued(Message& message, const ReplyStarted& event);
/// The ending of the whole reply, from that of its last part and how it had ended before (Message::before).
ReplyFinished whole_ending(const Message& message, const ReplyFinished& part);

}  // namespace canopy::app

#pragma once
// Tokens of a reply as they are seen in its text: who wrote them, which round is shown, which one is pointed at. The
// same token is a node of the tree; pointing at either shows the other.

#include <imgui.h>

#include <optional>

#include "app/chat/message_body.h"
#include "app/rounds/rounds_state.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The token that wrote a byte; null where nobody knows.
const TokenSpan* token_at(const Message& message, size_t byte);

/// The node of a token in the rounds that are shown; none where they are not this reply's.
std::optional<NodeRef> node_of(const ViewModel& view, const Message& message, const TokenSpan& span);

/// The token of a node; null where it is not in this message. A round's root is the last token of the round before.
const TokenSpan* token_of(const ViewModel& view, const Message& message, const NodeRef& node);

/// Draws what lies behind the words (accepted: filled; the shown round stronger) and below them (the target's own:
/// dotted), and the ring of the token pointed at. Call before drawing the text.
void draw_token_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos);

/// The line that says what the marks mean. Its width is at most `width`; a click hides or shows the marks.
void draw_token_legend(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app

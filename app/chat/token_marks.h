#pragma once
// Marks of tokens in the text of a reply: by whom they were written, those of the shown round, and the hovered one. A
// token in the text and its node in the tree highlight each other.

#include <imgui.h>

#include <optional>

#include "app/chat/message_body.h"
#include "app/rounds/rounds_state.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The token that a byte belongs to; null if it is not known.
const TokenSpan* token_at(const Message& message, size_t byte);

/// The node of a token; nullopt if the shown rounds are not those of this reply.
std::optional<NodeRef> node_of(const ViewModel& view, const Message& message, const TokenSpan& span);

/// The token of a node; null if it is not in this message. The root of a round is the last token of the round before.
const TokenSpan* token_of(const ViewModel& view, const Message& message, const NodeRef& node);

/// Draws who wrote each token: a background behind accepted ones, stronger in the shown round (by its number in the
/// message), dots below the target's own. Call before drawing the text.
void draw_source_marks(ImDrawList* list, const Message& message, const MessageBody& body, ImVec2 pos,
                       std::optional<size_t> shown_round = {});

/// Draws the background of accepted tokens (filled, stronger in the shown round), dots below the target's own tokens,
/// and the ring of the hovered token. Call before drawing the text.
void draw_token_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos);

/// The height in pixels of what draw_token_legend() draws in this width: one line, or two where one is too narrow.
float token_legend_height(const ViewModel& view, float width);
/// Draws what explains the marks, at most `width` pixels wide; a click on it hides or shows the marks.
void draw_token_legend(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app

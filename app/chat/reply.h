#pragma once
// What a reply has beside its text: marks of who wrote its tokens, and below it its figures, its buttons, and the
// result of the check against plain decoding.

#include <imgui.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/message_body.h"
#include "app/state/conversation.h"
#include "app/state/rounds.h"
#include "app/state/view_model.h"

namespace canopy::app {

// Marks of tokens in the text of a reply: by whom they were written, those of the shown round, and the hovered one. A
// token in the text and its node in the tree highlight each other (app/state/text_link.h).

/// Draws who wrote each token: a background behind accepted ones, stronger in the shown round (by its number in the
/// message), dots below all others, which are the target's own whether their pass had a draft or not. Call before
/// drawing the text.
void draw_source_marks(ImDrawList* list, const Message& message, const MessageBody& body, ImVec2 pos,
                       std::optional<size_t> shown_round = {});

/// Draws behind the words where the guess under the mouse, or the selected one, was found: a band, and a line below
/// what followed there. Of any message; call before drawing the text.
void draw_found_place(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos);

/// Draws the background of accepted tokens (filled, stronger in the shown round), dots below the target's own tokens,
/// and the ring of the hovered token. Call before drawing the text.
void draw_token_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                      ImVec2 pos);

/// The height in pixels of what draw_token_legend() draws in this width: one line, or two where one is too narrow.
float token_legend_height(const ViewModel& view, float width);
/// Draws what explains the marks, at most `width` pixels wide; a click on it hides or shows the marks.
void draw_token_legend(const ViewModel& view, CommandSink& sink, float width);

// The lines below a reply: its figures, and the result of the check against plain decoding.

/// The figures of a finished reply: "439 tok/s  4.14 a pass  21 passes", and
/// why it ended unless that was the usual reason.
std::vector<std::string> reply_facts(const Message& message);

/// The tooltip of these figures: time, model, parameters and prompt, and which figures were measured.
std::string reply_details(const Message& message);

/// The height in pixels of what is said about a check of this reply against plain decoding, in a row of this width; 0
/// where there is nothing to say.
float check_row_height(const ViewModel& view, const Message& reply, float width);

/// Draws it at the cursor: a sign, its words in as many lines as they need, and a button.
void draw_check_row(const ViewModel& view, const Message& reply, CommandSink& sink, float width);

// What stands under a finished reply: its figures and buttons, a row that goes on with it where a limit or the user
// ended it, what a check of it found, and how fast it was beside plain decoding, where that was measured with it.

inline constexpr float kReplyRow = 28;  // height of a row of buttons

/// Height in pixels of all that stands under reply i, which has a result, in a column of this width.
float reply_end_height(const ViewModel& view, size_t i, float width);

/// Draws it at the cursor.
void draw_reply_end(const ViewModel& view, size_t i, CommandSink& sink, float width);

/// The width of the versions of message i in pixels.
float versions_width(const ViewModel& view, size_t i);
/// Draws "‹ 2 / 3 ›", the versions of message i. Returns its width in pixels.
float draw_versions(const ViewModel& view, size_t i, CommandSink& sink, ImVec2 pos);

}  // namespace canopy::app

#pragma once
// The lines below a reply: its figures, and the result of the check against plain decoding.

#include <string>
#include <vector>

#include "app/conversation/message.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The figures of a finished reply: "439 tok/s  τ 4.14  21 rounds", in Watch "439 tok/s  4.14 a pass  21 passes", and
/// why it ended unless that was the usual reason.
std::vector<std::string> reply_facts(const Message& message, WindowLayout layout);

/// The tooltip of these figures: time, model, parameters and prompt, and which figures were measured.
std::string reply_details(const Message& message, WindowLayout layout);

/// The height in pixels of what is said about a check of this reply against plain decoding, in a row of this width; 0
/// where there is nothing to say.
float check_row_height(const ViewModel& view, const Message& reply, float width);

/// Draws it at the cursor: a sign, its words in as many lines as they need, and a button.
void draw_check_row(const ViewModel& view, const Message& reply, CommandSink& sink, float width);

}  // namespace canopy::app

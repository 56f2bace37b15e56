#pragma once
// What stands below a reply: its figures, and whether autoregressive decoding writes the same text.

#include <string>
#include <vector>

#include "app/conversation/message.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The footer of a finished reply: "439 tok/s  τ 4.14  21 rounds", and why it ended when that is not the usual reason.
std::vector<std::string> reply_facts(const Message& message);

/// What its tooltip adds: when, with which model and parameters, the prompt; and which of it was measured.
std::string reply_details(const Message& message);

/// Whether a reply has a line now that says how its check against autoregressive decoding stands.
bool has_check_row(const ViewModel& view, const Message& reply);

/// Draws that line from the cursor on, 28 px high at 100%.
void draw_check_row(const ViewModel& view, const Message& reply, CommandSink& sink, float width);

}  // namespace canopy::app

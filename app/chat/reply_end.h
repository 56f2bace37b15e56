#pragma once
// What stands under a finished reply: its figures and buttons, a row that goes on with it where a limit or the user
// ended it, what a check of it found, and where plain decoding would be faster a line that says so.

#include <imgui.h>

#include <cstddef>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

inline constexpr float kReplyRow = 28;  // height of a row of buttons

/// Height in pixels of all that stands under reply i, which has a result, in a column of this width.
float reply_end_height(const ViewModel& view, size_t i, float width);

/// Draws it at the cursor.
void draw_reply_end(const ViewModel& view, size_t i, CommandSink& sink, float width);

/// Draws "‹ 2 / 3 ›", the versions of message i. Returns its width in pixels.
float draw_versions(const ViewModel& view, size_t i, CommandSink& sink, ImVec2 pos);

}  // namespace canopy::app

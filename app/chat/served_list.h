#pragma once
// What clients of the served model ask for: a list below that of the chats, and a bar in place of the composer while
// one of the requests is on show.

#include <imgui.h>

#include "app/state/view_model.h"

namespace canopy::app {

/// The height that the list wants, in pixels; 0 where nothing is served and nothing was.
float served_list_height(const ViewModel& view);

/// Draws it at the cursor. True when a request was chosen, which is on show then.
bool draw_served_list(const ViewModel& view, CommandSink& sink, ImVec2 size);

/// Who asked, how far the reply is, and what can be done with it. `height` pixels high, at the cursor.
void draw_served_bar(const ViewModel& view, const ServedReply& reply, CommandSink& sink, float width, float height);

}  // namespace canopy::app

#pragma once
// Files that go with a question: as lines in its message, and as chips in the composer.

#include <imgui.h>

#include <string>

#include "app/conversation/message.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// "main.cpp, 1,204 tokens"; without tokens that are not counted yet.
std::string attached_words(const Attachment& attachment);

/// Height of the lines of a message's files in pixels; 0 without any.
float attached_height(const Message& message);
/// Width of the widest of them in pixels, at most `room`.
float attached_width(const Message& message, float room);
void draw_attached(const Message& message, ImVec2 at, float room);

/// Height in pixels of the chips of files that go with the next question, and of what was wrong with the last one.
float chips_height(const ViewModel& view, float width);
/// Draws them, each with a button that removes it.
void draw_chips(const ViewModel& view, CommandSink& sink, ImVec2 at, float width);

}  // namespace canopy::app

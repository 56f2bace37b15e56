#pragma once
// Text that cannot be shown as it should be: characters without a font, and scripts that are written letter by letter.

#include <string>

#include "app/chat/message_body.h"

namespace canopy::app {

/// Sets `note`, if it is empty, to a sentence about what of this body cannot be shown properly.
void note_text_limits(const MessageBody& body, std::string& note);

}  // namespace canopy::app

#pragma once

#include "engine/text/chat_template.h"

namespace canopy {

/// A model's own template. Throws Error(bad_input), naming the line, where it cannot be read, or where it does not
/// bring what a user says into the prompt of a short conversation.
std::unique_ptr<ChatTemplate> make_jinja_chat(std::string_view template_text, const Tokenizer& tokenizer);

}  // namespace canopy

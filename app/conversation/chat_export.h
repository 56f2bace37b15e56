#pragma once
// A conversation as one file outside the chat folder: Markdown for readers, JSON that can be imported again. Neither
// contains a path of this machine.

#include <string>
#include <string_view>

#include "app/conversation/conversation.h"

namespace canopy::app {

/// The shown path of the conversation as Markdown, with model, parameters and figures of each reply.
std::string markdown_of(const Conversation& conversation);

/// All branches as JSON; conversation_from() makes an equal conversation of it.
std::string json_of(const Conversation& conversation);

/// Reads what json_of() wrote. Throws bad_input naming field, value and what is allowed. Message ids are taken from
/// ++last_id.
Conversation conversation_from(std::string_view json, uint64_t& last_id);

/// A file name made from the title: small letters a to z, digits and dashes, then `ending`.
std::string export_name(const Conversation& conversation, std::string_view ending);

}  // namespace canopy::app

#pragma once
// A conversation as a file to be kept elsewhere: Markdown to be read, JSON to be read again. Neither names a path of
// this machine.

#include <string>
#include <string_view>

#include "app/conversation/conversation.h"

namespace canopy::app {

/// The path that is shown, with model, parameters and figures of each reply.
std::string markdown_of(const Conversation& conversation);

/// All branches; conversation_from gives an equal conversation.
std::string json_of(const Conversation& conversation);

/// Throws bad_input naming field, value and what is allowed. Message ids are taken from ++last_id.
Conversation conversation_from(std::string_view json, uint64_t& last_id);

/// A file name made of the title: letters, digits and dashes.
std::string export_name(const Conversation& conversation, std::string_view ending);

}  // namespace canopy::app

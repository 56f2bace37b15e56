#pragma once

#include <string>
#include <vector>

#include "engine/text/turn_tokens.h"

namespace canopy {

/// One turn of a conversation. role is "system", "user" or "assistant", and in conversations of other programs "tool",
/// "function" or "developer"; content is UTF-8. The tokens that a model wrote the content with may be there too: a
/// prompt then holds these where it can (ChatTemplate::render_to_ids).
struct ChatTurn {
  std::string role;
  std::string content;
  TurnTokens tokens = {};
  std::string thinking = {};  // of a reply in channels: what its content is told apart from, for templates that ask
  std::vector<std::string> parts = {};  // of a content that came in several, for templates that take them one by one
  std::string fields = {};  // what else a template may read of the turn, as a JSON object: {"tool_calls": [...]}
};

}  // namespace canopy

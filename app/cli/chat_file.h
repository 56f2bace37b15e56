#pragma once
// Conversations as OpenAI-compatible programs write them: an array of turns, or a whole request.

#include <filesystem>
#include <string>
#include <vector>

#include "engine/text/chat_turn.h"

namespace canopy::cli {

struct ChatFile {
  std::vector<ChatTurn> turns;
  std::string tools;                 // of a request; empty: none
  std::vector<std::string> ignored;  // fields of a request that are not used
};

/// Reads [{"role": "user", "content": "..."}, ...], or a request {"messages": [...], "tools": [...], ...}. Content may
/// be a string, a list of texts, or null beside the calls of an assistant; arguments of calls an object or a string of
/// JSON. Throws bad_input for anything else, naming the turn and the field: for pictures and sound, too.
ChatFile read_chat_file(const std::filesystem::path& path);

/// The same from its text. Turns are counted from 0 in messages.
ChatFile parse_chat(const std::string& text);

}  // namespace canopy::cli

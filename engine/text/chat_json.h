#pragma once
// Conversations as OpenAI-compatible programs write them: an array of turns, or a whole request.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/text/chat_turn.h"

namespace canopy {

/// The turns of [{"role": "user", "content": "..."}, ...], whose order of keys is kept for templates that print them.
/// Content may be a string, a list of texts, or null beside the calls of an assistant; arguments of calls an object or
/// a string of JSON. Throws bad_input for anything else, naming the turn, which is counted from 0, and the field: for
/// pictures and sound, too. The depth of `json` must be bounded (parse_json()).
std::vector<ChatTurn> turns_from_json(const nlohmann::ordered_json& json);

struct ParsedChat {
  std::vector<ChatTurn> turns;
  std::string tools;                 // of a request; empty: none
  std::vector<std::string> ignored;  // fields of a request that are not used
};

/// Reads such turns, or a request {"messages": [...], "tools": [...], ...}. Throws the same.
ParsedChat parse_chat(const std::string& text);

}  // namespace canopy

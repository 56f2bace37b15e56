#pragma once
// Messages as JSON: what chat files and exports are made of. Reading checks everything, since a file may come from
// anywhere; what is written names no path of this machine.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "app/conversation/conversation.h"

namespace canopy::app {

/// Everything of a message but its place in the tree.
nlohmann::ordered_json message_json(const Message& message);
/// What only the end of a reply settles: result, figures. Empty for a question.
nlohmann::ordered_json ending_json(const Message& message);
/// Tokens from number `first` on: [end, round, node, source] each; a token begins where the one before it ends.
nlohmann::ordered_json spans_json(const Message& message, size_t first = 0);

/// Throws bad_input naming `what`, field, value and what is allowed. Token ids that are damaged are left out, for the
/// text says enough; `note` then says so.
Message message_from(const nlohmann::json& json, const std::string& what, std::string& note);
void read_ending(Message& message, const nlohmann::json& json, const std::string& what, std::string& note);
void read_spans(Message& message, const nlohmann::json& json, const std::string& what);

/// "2026-11-22T00:47:27.123Z", UTC.
std::string time_text(int64_t milliseconds);
/// Throws bad_input.
int64_t time_from(const std::string& text, const std::string& what);

}  // namespace canopy::app

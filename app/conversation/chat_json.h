#pragma once
// Messages as JSON, for chat files and exports. Everything read is checked, since a file may come from anywhere; what
// is written contains no path of this machine.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "app/conversation/conversation.h"

namespace canopy::app {

/// All of a message except its place in the tree.
nlohmann::ordered_json message_json(const Message& message);
/// The fields that are known only when a reply has ended: result and figures. Empty for a question.
nlohmann::ordered_json ending_json(const Message& message);
/// The tokens from number `first` on, each as [end, round, node, source]; a token begins where the one before it ends.
nlohmann::ordered_json spans_json(const Message& message, size_t first = 0);

nlohmann::ordered_json thought_json(const ThoughtPart& thought);

/// Reads a message. Throws bad_input naming `what`, field, value and what is allowed. Damaged token ids are only left
/// out, as the text is there without them; `note` then says so.
Message message_from(const nlohmann::json& json, const std::string& what, std::string& note);
void read_ending(Message& message, const nlohmann::json& json, const std::string& what, std::string& note);
void read_thought(Message& message, const nlohmann::json& json, const std::string& what);
void read_spans(Message& message, const nlohmann::json& json, const std::string& what);

/// Whether a byte of a text is one of a character that begins before it.
bool is_inside_character(const std::string& utf8, size_t at);

/// "2026-11-22T00:47:27.123Z", UTC.
std::string time_text(int64_t milliseconds);
/// The opposite of time_text(). Throws bad_input for text of any other form.
int64_t time_from(const std::string& text, const std::string& what);

}  // namespace canopy::app

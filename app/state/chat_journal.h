#pragma once
// The file of a chat: one JSON record on each line, only ever appended to, so that a program that is killed loses no
// line that was complete.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app/state/conversation.h"

namespace canopy::app {

// Messages as JSON, for chat files and exports. Everything read is checked, since a file may come from anywhere; what
// is written contains no path of this machine.

/// All of a message except its place in the tree.
nlohmann::ordered_json message_json(const Message& message);

/// Reads a message. Throws bad_input naming `what`, field, value and what is allowed. Damaged token ids are only left
/// out, as the text is there without them; `note` then says so.
Message message_from(const nlohmann::json& json, const std::string& what, std::string& note);

/// "2026-11-22T00:47:27.123Z", UTC.
std::string time_text(int64_t milliseconds);
/// The opposite of time_text(). Throws bad_input for text of any other form.
int64_t time_from(const std::string& text, const std::string& what);

// The lines of the file. Records say where they belong, so that a record written twice counts once.

/// How much of its conversation a file already has.
struct JournalMark {
  bool begun = false;
  size_t nodes = 0;
  uint32_t writing = Conversation::none;  // the node whose reply is still being written
  size_t text = 0, spans = 0;             // bytes and tokens of that node in the file
  size_t ids = 0;                         // of its tokens (Message::so_far)
  std::map<uint32_t, size_t> continued;   // continuations in the file, of each node that has any
  uint32_t leaf = Conversation::none;
  std::string title, system_prompt;
  uint32_t left_out = 0;
  bool pinned = false;
  bool operator==(const JournalMark&) const = default;
};

/// The lines to append to a file with this mark so that it has the whole conversation; also moves the mark. Empty when
/// nothing is new.
std::string journal_lines(const Conversation& conversation, JournalMark& mark);

/// The mark of a file that has exactly this conversation.
JournalMark mark_of(const Conversation& conversation);

/// The contents of a chat file. Message ids are taken from ++last_id.
struct JournalRead {
  Conversation conversation;
  bool torn = false;  // the last line is incomplete: the program was killed while writing it. All other lines are whole
  // Damage: what is wrong and in which line; empty: none. The conversation has all that could be read.
  std::string problem;
  std::string note;  // something beside the text was left out, such as damaged token ids; the file stays as it is
};
/// Damaged text becomes JournalRead::problem; nothing is thrown for it.
JournalRead read_journal(std::string_view text, uint64_t& last_id);

/// Written before further lines where the last line is incomplete. Readers skip the incomplete line before it without
/// reporting damage.
inline constexpr std::string_view kResume = "\n{\"resumed\":true}\n";

}  // namespace canopy::app

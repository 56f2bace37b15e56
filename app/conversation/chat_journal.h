#pragma once
// A chat's file: one JSON record a line, only ever appended to, so that a kill leaves everything up to the last whole
// line. Records say where they belong, so that one that was written twice counts once.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "app/conversation/conversation.h"

namespace canopy::app {

/// How far a file knows its conversation.
struct JournalMark {
  bool begun = false;
  size_t nodes = 0;
  uint32_t writing = Conversation::none;  // the node whose reply is not over
  size_t text = 0, spans = 0;             // of that node
  uint32_t leaf = Conversation::none;
  std::string title, system_prompt;
  bool operator==(const JournalMark&) const = default;
};

/// The lines that bring a file from `mark` to the conversation, and moves the mark; empty when nothing is new.
std::string journal_lines(const Conversation& conversation, JournalMark& mark);

/// The mark of a file that says exactly this.
JournalMark mark_of(const Conversation& conversation);

/// What a file says. Message ids are taken from ++last_id.
struct JournalRead {
  Conversation conversation;
  bool torn = false;  // the last line has no end: the program was killed while it wrote. Nothing is wrong with the rest
  std::string problem;  // damage: what, and in which line; the conversation is what could be read all the same
  std::string note;     // something beside the text was left out; the file stays as it is
};
/// Never throws for what the text says.
JournalRead read_journal(std::string_view text, uint64_t& last_id);

/// Put in front of more lines where a file is torn: what is before it is skipped without complaint.
inline constexpr std::string_view kResume = "\n{\"resumed\":true}\n";

}  // namespace canopy::app

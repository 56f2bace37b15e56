#pragma once
// What the window shows of the chats beside the conversation itself.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/conversation/chat_commands.h"

namespace canopy::app {

/// A row of the history.
struct ChatListing {
  std::string id;
  std::string title;
  std::string excerpt;     // around what was searched for; empty without a search
  int64_t changed_ms = 0;  // since 1970, UTC
  size_t messages = 0;
};

struct ChatState {
  bool sources_shown = true;  // tokens tinted by who wrote them
  bool find_shown = false;
  bool kept = false;  // chats are saved
  std::vector<ChatListing> listings;
  std::string search;                   // what `listings` were searched for
  std::string note;                     // the last thing that was done, in words: "Saved to merge.md"
  std::optional<ChatListing> deleted;   // can be taken back
  ChatFiles files = ChatFiles::closed;  // the dialog that is open
  std::string files_problem;            // why its last attempt failed, as a sentence
  int64_t now_ms = 0;                   // since 1970, UTC: set by the application before each update
};

}  // namespace canopy::app

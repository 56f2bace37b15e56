#pragma once
// What the window shows of the chats beside the conversation itself, and what the user can ask of both.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace canopy::app {

struct EditQuestion {  // asks it anew, as a branch
  uint64_t message = 0;
  std::string text;
};
struct AnswerAgain {  // another answer beside this one
  uint64_t message = 0;
};
struct ShowAlternative {  // of a question or an answer: "2 / 3"
  uint64_t message = 0;
  int by = 1;
};
struct ContinueInNewChat {  // a chat of its own from everything up to this message
  uint64_t message = 0;
};
struct SetSystemPrompt {
  std::string text;
};
struct RenameChat {  // the one that is shown
  std::string title;
};
struct ShowTokenSources {
  bool shown = true;
};
struct ShowFind {  // search in this chat
  bool shown = true;
};

// Of the chats on the disk:
struct OpenChat {
  std::string id;
};
struct DeleteChat {
  std::string id;
};
struct UndoDelete {};
struct SearchChats {  // all of them; an empty text lists all
  std::string text;
};
enum class ExportFormat { markdown, json };
struct ExportChat {
  std::string path;
  ExportFormat format = ExportFormat::markdown;
};
struct ImportChat {
  std::string path;
};
struct DismissChatNote {};
enum class ChatFiles { closed, exporting, importing };
struct ShowChatFiles {  // the dialog that exports or imports a chat
  ChatFiles shown = ChatFiles::exporting;
};

using ChatCommand = std::variant<EditQuestion, AnswerAgain, ShowAlternative, ContinueInNewChat, SetSystemPrompt,
                                 RenameChat, ShowTokenSources, ShowFind, OpenChat, DeleteChat, UndoDelete, SearchChats,
                                 ExportChat, ImportChat, DismissChatNote, ShowChatFiles>;

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

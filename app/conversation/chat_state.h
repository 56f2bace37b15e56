#pragma once
// The state of the chats that the window shows besides the conversation itself, and the commands of the user about
// chats and conversation.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/conversation/message.h"
#include "app/conversation/named_prompts.h"

namespace canopy::app {

struct EditQuestion {  // asks the edited question, as a new branch
  uint64_t message = 0;
  std::string text;
};
struct ContinueReply {  // goes on with the last answer, which a limit or the user ended
  uint64_t message = 0;
};
struct AnswerAgain {  // writes another answer beside this one
  uint64_t message = 0;
};
struct ShowAlternative {  // shows another version of a question or an answer: "2 / 3"
  uint64_t message = 0;
  int by = 1;
};
struct ContinueInNewChat {  // makes a new chat of all messages up to this one
  uint64_t message = 0;
};
struct SetSystemPrompt {
  std::string text;
};
struct RenameChat {  // renames the shown chat
  std::string title;
};
struct DropOldestTurns {};  // leaves them out of later prompts; they stay in the chat
struct SendAllTurns {};     // takes that back
struct SetThinking {        // for later replies; for models that can think and be told not to
  bool on = true;
};
struct AttachFile {  // reads a text file that goes with the next question
  std::string path;
};
struct RemoveAttachment {  // one that is not there: only what is said of the last one that failed
  size_t index = 0;
};
struct BrowseAttachment {};  // opens the system's file dialog
// System prompts by name:
struct SavePrompt {  // under this name, in place of one that has it
  std::string name, text;
};
struct RenamePrompt {
  std::string from, to;
};
struct DeletePrompt {
  std::string name;
};
struct ShowTokenSources {
  bool shown = true;
};
struct ShowFind {  // search in this chat
  bool shown = true;
};

// Commands about the chats on the disk:
struct OpenChat {
  std::string id;
};
struct DeleteChat {
  std::string id;
};
struct UndoDelete {};
struct SearchChats {  // searches all chats; an empty text lists all of them
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
struct ShowChatFiles {  // opens the dialog that exports or imports a chat
  ChatFiles shown = ChatFiles::exporting;
};

using ChatCommand =
    std::variant<EditQuestion, AnswerAgain, ShowAlternative, ContinueInNewChat, SetSystemPrompt, RenameChat,
                 ShowTokenSources, ShowFind, OpenChat, DeleteChat, UndoDelete, SearchChats, ExportChat, ImportChat,
                 DismissChatNote, ShowChatFiles, DropOldestTurns, SendAllTurns, SetThinking, AttachFile,
                 RemoveAttachment, BrowseAttachment, SavePrompt, RenamePrompt, DeletePrompt, ContinueReply>;

/// A row of the history.
struct ChatListing {
  std::string id;
  std::string title;
  std::string excerpt;     // the text around the match; empty without a search
  int64_t changed_ms = 0;  // since 1970, UTC
  size_t messages = 0;
};

struct ChatState {
  bool sources_shown = true;  // tokens are tinted by their source (TokenSource)
  bool find_shown = false;
  bool kept = false;  // chats are saved to the disk
  std::vector<ChatListing> listings;
  std::string search;                   // the search text that `listings` are the result of
  std::vector<Attachment> attachments;  // that go with the next question
  std::string attach_problem;           // why the last file was not attached, as a sentence
  std::vector<NamedPrompt> prompts;     // by name, ascending
  std::string note_seen;                // `note` as age_note() saw it last,
  int64_t note_since_ms = 0;            // and when it came, in the time of now_ms
  std::string note;                     // the last thing that was done, for the user: "Saved to merge.md"
  std::optional<ChatListing> deleted;   // the chat deleted last, which can be restored
  ChatFiles files = ChatFiles::closed;  // the dialog that is open
  std::string files_problem;            // why its last attempt failed, as a sentence
  int64_t now_ms = 0;                   // since 1970, UTC: set by the application before each update
};

}  // namespace canopy::app

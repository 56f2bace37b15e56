#pragma once
// What the user can ask of the conversation and of the chats that are kept.

#include <cstdint>
#include <string>
#include <variant>

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

}  // namespace canopy::app

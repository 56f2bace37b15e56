#pragma once
// The state of the chats besides the conversation and the user's commands about them, system prompts kept by name, and
// a conversation exported as Markdown or JSON.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/state/conversation.h"

namespace canopy::app {

/// A question to begin with, and what makes its answer easy or hard to guess.
struct ExampleQuestion {
  const char* title;
  const char* words;
  const char* about;
};
/// Short titles, as chats are narrow in small windows. No question about facts: small models are wrong about them.
inline constexpr ExampleQuestion kExampleQuestions[] = {
    {"A Python class",
     "Write a Python class Point with the methods add, subtract, multiply and divide, each of which takes another "
     "Point.",
     "code, easy to guess"},
    {"Ten animals", "List ten animals, each with one short sentence about where it lives.", "a list, in between"},
    {"A short story", "Write the first five sentences of a story about a lighthouse keeper and a fox.",
     "free text, hard to guess"},
};

// System prompts that the user keeps under names, in prompts.json of the configuration folder.

inline constexpr size_t kMostPrompts = 100;
inline constexpr size_t kLongestPromptName = 60;           // bytes
inline constexpr size_t kLongestPrompt = 16 * 1024;        // bytes of its text
inline constexpr size_t kMaxPromptFile = 4 * 1024 * 1024;  // bytes; more than all prompts can take

struct NamedPrompt {
  std::string name, text;
  bool operator==(const NamedPrompt&) const = default;
};

/// Keeps a text under a name, in place of one that has it; blanks around the name do not count. Throws bad_input where
/// the name or the text is empty or too long, or there are kMostPrompts of other names.
void save_prompt(std::vector<NamedPrompt>& prompts, std::string_view name, std::string_view text);

/// Gives a prompt another name. Throws bad_input where there is none of that name, the new one is empty, too long or
/// that of another prompt.
void rename_prompt(std::vector<NamedPrompt>& prompts, std::string_view from, std::string_view to);

/// Takes a prompt away; one that is not there is no error.
void delete_prompt(std::vector<NamedPrompt>& prompts, std::string_view name);

/// Name of the prompt with this text; empty where none has it.
std::string name_of_prompt(const std::vector<NamedPrompt>& prompts, std::string_view text);

/// Reads the file; one that is not there has none. Throws bad_input naming the file, the field and what is allowed.
std::vector<NamedPrompt> read_prompts(const std::string& path);

/// Replaces the file. On failure the old one stays. Throws bad_input naming path and reason.
void write_prompts(const std::string& path, const std::vector<NamedPrompt>& prompts);

// The state of the chats that the window shows besides the conversation itself, and the commands of the user about
// chats and conversation.

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
struct RenameChat {
  std::string title;
  std::string id = {};  // empty: the shown chat
};
struct PinChat {  // keeps it on top of the list, or no longer
  bool pinned = true;
  std::string id = {};  // empty: the shown chat
};
struct DropOldestTurns {};  // leaves them out of later prompts; they stay in the chat
struct SendAllTurns {};     // takes that back
struct SetThinking {        // for later replies; for models that can think and be told not to
  bool on = true;
};
struct StopLoops {  // ends later replies that repeat themselves
  bool on = true;
};
struct ScrollWide {  // moves code, tables and formulas that are too wide for the chat to the left (-1) or right (1)
  int steps = 0;
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

using ChatCommand = std::variant<EditQuestion, AnswerAgain, ShowAlternative, ContinueInNewChat, SetSystemPrompt,
                                 RenameChat, ShowTokenSources, ShowFind, OpenChat, DeleteChat, UndoDelete, SearchChats,
                                 ExportChat, ImportChat, DismissChatNote, ShowChatFiles, DropOldestTurns, SendAllTurns,
                                 SetThinking, AttachFile, RemoveAttachment, BrowseAttachment, SavePrompt, RenamePrompt,
                                 DeletePrompt, ContinueReply, PinChat, StopLoops, ScrollWide>;

/// A row of the list of chats.
struct ChatListing {
  std::string id;
  std::string title;
  std::string excerpt;     // the text around the match; empty without a search
  int64_t changed_ms = 0;  // since 1970, UTC
  size_t messages = 0;
  bool pinned = false;
  bool operator==(const ChatListing&) const = default;
};

struct ChatState {
  bool sources_shown = true;  // tokens are tinted by their source (TokenSource)
  bool find_shown = false;
  int wide_steps = 0;  // that what is too wide moves sideways in the next frame
  bool kept = false;   // chats are saved to the disk
  uint64_t begun = 0;  // new chats that were asked for: each gives the keyboard to what is typed
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

// The path of the file that a chat is exported to.

/// ".md" or ".json"
const char* ending_of(ExportFormat format);

/// The path that a user's input means: "~/" at its start is the home folder.
std::filesystem::path typed_path(const std::string& text);

/// folder/name with the ending of the format. An ending .md or .json that the name already has is replaced.
std::filesystem::path export_path(const std::string& folder, const std::string& name, ExportFormat format);

/// The user's folder of documents as the system names it (its name depends on the language), else the home folder.
std::filesystem::path documents_folder();

// A conversation as one file outside the chat folder: Markdown for readers, JSON that can be imported again. Neither
// contains a path of this machine.

/// The shown path of the conversation as Markdown, with model, parameters and figures of each reply.
std::string markdown_of(const Conversation& conversation);

/// All branches as JSON; conversation_from() makes an equal conversation of it.
std::string json_of(const Conversation& conversation);

/// Reads what json_of() wrote. Throws bad_input naming field, value and what is allowed. Message ids are taken from
/// ++last_id.
Conversation conversation_from(std::string_view json, uint64_t& last_id);

/// A file name made from the title: small letters a to z, digits and dashes, then `ending`.
std::string export_name(const Conversation& conversation, std::string_view ending);

}  // namespace canopy::app

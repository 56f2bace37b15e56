#pragma once
// The folder of saved chats, and the desk that saves the shown conversation there and opens, deletes and restores
// others.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/chat.h"
#include "app/state/chat_journal.h"
#include "app/state/view_model.h"
#include "engine/text/unicode.h"

namespace canopy::app {

// The folder of saved chats: one file for each chat (chat_journal.h), deleted chats in trash/, and files that could not
// be read completely in damaged/. Several windows may use the folder at once; only one of them at a time writes to a
// file.

/// The file of a chat, open for appending and locked against other windows until destroyed.
class ChatFile {
 public:
  ~ChatFile();
  ChatFile(const ChatFile&) = delete;
  ChatFile& operator=(const ChatFile&) = delete;

  /// Makes a new file for a chat. Throws bad_input with path and reason.
  static std::unique_ptr<ChatFile> create(const std::filesystem::path& path);
  /// Opens an existing file; null when another window has it locked. Throws bad_input with path and reason.
  static std::unique_ptr<ChatFile> open(const std::filesystem::path& path);

  /// Appends whole lines. After it has thrown, all of them may be appended again: the part already written does no
  /// harm.
  void append(std::string_view lines);

 private:
  ChatFile(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
  bool torn_ = false;  // the last line may be incomplete
};

class ChatStore {
 public:
  /// Makes the folders and removes chats that were deleted more than a month ago. Throws bad_input.
  explicit ChatStore(std::filesystem::path folder);

  /// The chats in which `search` occurs, those that are pinned first, then the newest first; upper and lower case are
  /// the same (FoldedText). Only files that have changed are read again.
  std::vector<ChatListing> list(const std::string& search);

  /// Whether what list() gives may have changed since, by this window or another one. Only looks at the folder's time.
  bool changed() const;
  /// Tells other windows that what they list has changed.
  void announce() const;

  /// The name that was given to a chat, and whether it is pinned, as list() read them last.
  struct Label {
    std::string title;
    bool pinned = false;
  };
  /// None where list() found no such chat.
  std::optional<Label> label_of(const std::string& id) const;
  /// The chat with the newest message; empty where there is none.
  std::string newest() const;

  struct Loaded {
    Conversation conversation;
    std::string damage;  // what was damaged, as a sentence for the user; empty when the file was whole
    // What was left out of a file that is not damaged otherwise, as a sentence; such a file stays in the folder.
    std::string note = {};
    std::filesystem::path rounds = {};  // the folder of its rounds, which need not exist
  };
  /// Reads a chat. A damaged file is moved to damaged/; what could be read of it is returned as a chat that is not
  /// saved yet. Throws bad_input.
  Loaded load(const std::string& id, uint64_t& last_id);
  /// The same, but none where the file is damaged, is not there or cannot be read; it stays as it is.
  std::optional<Loaded> load_whole(const std::string& id, uint64_t& last_id) const;

  /// Changes a chat that this window does not show, by appending to its file. Throws bad_input, also when another
  /// window writes to the chat.
  void edit(const std::string& id, const std::function<void(Conversation&)>& change) const;

  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".jsonl"); }
  /// The folder for the rounds of a chat. It goes to the trash with its chat, and comes back with it.
  std::filesystem::path rounds_of(const std::string& id) const { return folder_ / (id + ".rounds"); }
  /// An id whose file does not exist yet.
  std::string new_id(int64_t now_ms) const;

  /// Moves a chat to the trash. Throws bad_input, also when another window writes to the chat.
  void remove(const std::string& id);
  void restore(const std::string& id);

 private:
  struct Known {
    std::string id;
    std::filesystem::file_time_type time;
    uintmax_t size = 0;
    ChatListing listing;
    std::string title;  // as it was given; empty: none was
    std::string text;   // of all messages
    FoldedText folded;
  };
  Known read(const std::filesystem::path& path) const;
  Loaded whole(const std::string& id, JournalRead read) const;

  std::filesystem::path folder_;
  std::vector<Known> known_;
  std::filesystem::file_time_type folder_time_;  // when known_ was read
  bool settled_ = false;  // a change after that has a later time, however coarse the clock of the files is
};

// Saves the shown conversation to the disk, and carries out the commands about the other chats there. A failure becomes
// a card; the conversation in memory is kept in any case.

/// The folder of this user's chats. Empty when there can be none; `problem` then has the reason.
std::string user_chat_folder(std::string& problem);

class ChatDesk {
 public:
  /// folder: where chats are saved; empty: they are not saved, and no warning is shown.
  explicit ChatDesk(std::string folder) : folder_(std::move(folder)) {}

  /// Opens the folder. Call once. A folder that cannot be used becomes a warning.
  void begin(ViewModel& view);
  /// Shows the chat with this id, on the branch that was left; with an empty id the one with the newest message. Where
  /// it is not there or is damaged, nothing changes. Call after begin().
  void reopen(ViewModel& view, const std::string& id);
  /// Takes up what other windows did to the chats: the list, and name and pin of the chat on show. True when something
  /// changed. Cheap when nothing did.
  bool look(ViewModel& view);
  /// Writes what is new in the shown conversation. Call after every change, so that a killed program loses nothing.
  void keep(ViewModel& view);
  /// Carries out the disk part of a command, and saves a conversation that `effects` closed. Adds the effects of
  /// opening another chat to `effects`.
  void run(ViewModel& view, const UiCommand& command, Effects& effects);
  /// Attaches text files to the next question. What cannot be attached is said in the chat's attach_problem.
  void attach(ViewModel& view, const std::vector<std::string>& paths);

 private:
  void close(ViewModel& view, Conversation& closed, const LiveLog& rounds);
  void keep_rounds(ViewModel& view, const Conversation& chat, const LiveLog& log);
  void keep_rounds_so_far(const ViewModel& view, const std::filesystem::path& folder, uint32_t number,
                          const LiveLog& log, const Message& message);
  void restore_rounds(ViewModel& view, const std::filesystem::path& folder);
  void write(ViewModel& view, Conversation& chat);
  void open_file(ViewModel& view, Conversation& chat, bool little);
  void say_gone(ViewModel& view);
  void adopt(Conversation& chat, const ChatStore::Label& label);
  void refresh(ViewModel& view);
  void show(ViewModel& view, Conversation next, Effects& effects);
  void command(ViewModel& view, const ChatCommand& command, Effects& effects);
  void remove(ViewModel& view, const std::string& id, Effects& effects);
  void change(ViewModel& view, const std::string& id, const std::function<void(Conversation&)>& how);

  std::string folder_;
  std::optional<ChatStore> store_;
  std::unique_ptr<ChatFile> file_;  // of the shown chat
  JournalMark mark_;
  std::set<uint64_t> rounds_kept_;  // replies of the shown chat whose rounds are on the disk or could not be written
  // The reply being written: which it is, and when its rounds are written next.
  uint64_t growing_ = 0;
  int64_t grown_due_ms_ = 0;
  bool failing_ = false;   // the last attempt to write failed, and the user was warned
  bool unlisted_ = false;  // something was written that the listings do not show yet
  bool gone_ = false;      // another window deleted the shown chat, and the user was told
};

}  // namespace canopy::app

#pragma once
// The folder of saved chats: one file for each chat (chat_journal.h), deleted chats in trash/, and files that could not
// be read completely in damaged/. Several windows may use the folder at once; only one of them at a time writes to a
// file.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/conversation/chat_journal.h"
#include "app/conversation/chat_state.h"
#include "engine/text/case_folding.h"

namespace canopy::app {

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

  /// The chats in which `search` occurs, the newest first; upper and lower case are the same (FoldedText). Only files
  /// that have changed are read again.
  std::vector<ChatListing> list(const std::string& search);

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
    std::string text;  // of all messages
    FoldedText folded;
  };
  Known read(const std::filesystem::path& path) const;

  std::filesystem::path folder_;
  std::vector<Known> known_;
};

}  // namespace canopy::app

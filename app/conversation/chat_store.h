#pragma once
// The folder of kept chats: a file a chat (chat_journal.h), those that were deleted in trash/, and files that could not
// be read whole in damaged/. Several windows share the folder; a file belongs to the one that writes to it.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/conversation/chat_journal.h"
#include "app/conversation/chat_state.h"

namespace canopy::app {

/// A chat's file, open for appending and locked against other windows while it lives.
class ChatFile {
 public:
  ~ChatFile();
  ChatFile(const ChatFile&) = delete;
  ChatFile& operator=(const ChatFile&) = delete;

  /// A new file for a chat. Throws bad_input with path and reason.
  static std::unique_ptr<ChatFile> create(const std::filesystem::path& path);
  /// A file that is there; null when another window has it. Throws bad_input.
  static std::unique_ptr<ChatFile> open(const std::filesystem::path& path);

  /// Appends whole lines. When it throws, what was written of them does no harm, and all of them may be appended again.
  void append(std::string_view lines);

 private:
  ChatFile(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
  bool torn_ = false;  // the last line may have no end
};

class ChatStore {
 public:
  /// Makes the folders and forgets what was deleted a month ago. Throws bad_input.
  explicit ChatStore(std::filesystem::path folder);

  /// The chats in which `search` occurs, ASCII letters alike in either case, the newest first. A file is read again
  /// only where it changed.
  std::vector<ChatListing> list(const std::string& search);

  struct Loaded {
    Conversation conversation;
    std::string damage;     // the sentence for the user; empty when the file was whole
    std::string note = {};  // likewise, of what was left out of a file that stays where it is
  };
  /// A damaged file is set aside, and what could be read of it is a chat that is not kept yet. Throws bad_input.
  Loaded load(const std::string& id, uint64_t& last_id);

  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".jsonl"); }
  /// A name that no file has.
  std::string new_id(int64_t now_ms) const;

  /// Throws bad_input, also when another window writes to it.
  void remove(const std::string& id);
  void restore(const std::string& id);

 private:
  struct Known {
    std::string id;
    std::filesystem::file_time_type time;
    uintmax_t size = 0;
    ChatListing listing;
    std::string text, folded;  // of all messages; folded: in lower case
  };
  Known read(const std::filesystem::path& path) const;

  std::filesystem::path folder_;
  std::vector<Known> known_;
};

}  // namespace canopy::app

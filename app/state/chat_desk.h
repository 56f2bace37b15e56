#pragma once
// Saves the shown conversation to the disk, and carries out the commands about the other chats there. A failure becomes
// a card; the conversation in memory is kept in any case.

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/conversation/chat_state.h"
#include "app/conversation/chat_store.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The folder of this user's chats. Empty when there can be none; `problem` then has the reason.
std::string user_chat_folder(std::string& problem);

class ChatDesk {
 public:
  /// folder: where chats are saved; empty: they are not saved, and no warning is shown.
  explicit ChatDesk(std::string folder) : folder_(std::move(folder)) {}

  /// Opens the folder. Call once. A folder that cannot be used becomes a warning.
  void begin(ViewModel& view);
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
  void restore_rounds(ViewModel& view, const std::filesystem::path& folder);
  void write(ViewModel& view, Conversation& chat);
  void open_file(ViewModel& view, Conversation& chat);
  void refresh(ViewModel& view);
  void show(ViewModel& view, Conversation next, Effects& effects);
  void command(ViewModel& view, const ChatCommand& command, Effects& effects);
  void remove(ViewModel& view, const std::string& id, Effects& effects);

  std::string folder_;
  std::optional<ChatStore> store_;
  std::unique_ptr<ChatFile> file_;  // of the shown chat
  JournalMark mark_;
  std::set<uint64_t> rounds_kept_;  // replies of the shown chat whose rounds are on the disk or could not be written
  bool failing_ = false;            // the last attempt to write failed, and the user was warned
  bool unlisted_ = false;           // something was written that the listings do not show yet
};

}  // namespace canopy::app

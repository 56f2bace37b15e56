#pragma once
// The disk's side of the chats: keeps the conversation that is shown, and does what commands ask of the others. Every
// failure becomes a card; the conversation in memory is never given up for one.

#include <memory>
#include <optional>
#include <string>

#include "app/conversation/chat_state.h"
#include "app/conversation/chat_store.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The folder of this user's chats. Empty, with the reason, where there can be none.
std::string user_chat_folder(std::string& problem);

class ChatDesk {
 public:
  /// folder empty: nothing is kept, and nothing is said about it.
  explicit ChatDesk(std::string folder) : folder_(std::move(folder)) {}

  /// Opens the folder. Call once; a folder that cannot be used becomes a warning.
  void begin(ViewModel& view);
  /// Writes what is new of the conversation: at once, so that a kill loses nothing that was on the screen.
  void keep(ViewModel& view);
  /// Does what a command asks of the disk, and keeps what `effects` closed. Effects of opening another chat are added.
  void run(ViewModel& view, const UiCommand& command, Effects& effects);

 private:
  void close(ViewModel& view, Conversation& closed);
  void write(ViewModel& view, Conversation& chat);
  void open_file(ViewModel& view, Conversation& chat);
  void refresh(ViewModel& view);
  void show(ViewModel& view, Conversation next, Effects& effects);
  void command(ViewModel& view, const ChatCommand& command, Effects& effects);
  void remove(ViewModel& view, const std::string& id, Effects& effects);

  std::string folder_;
  std::optional<ChatStore> store_;
  std::unique_ptr<ChatFile> file_;  // of the chat that is shown
  JournalMark mark_;
  bool failing_ = false;   // the last attempt failed, and was told
  bool unlisted_ = false;  // the listings lack something that was written
};

}  // namespace canopy::app

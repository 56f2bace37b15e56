#pragma once
// The list of chats, which Lab has as a panel and Watch at its left: those that are pinned, then the newest first, with
// a search over all their messages. Below them stands what clients of the served model ask for.

#include <cstdint>
#include <string>

#include "app/state/view_model.h"
#include "app/ui/panel.h"

namespace canopy::app {

class ChatList {
 public:
  enum class Place {
    panel,   // of Lab
    column,  // of Watch, beside the chat
    drawer,  // of Watch in a narrow window, over the chat: a popup
  };

  /// Draws it into the window at the cursor, over all the room that is left.
  void draw(const ViewModel& view, CommandSink& sink, Place place);

 private:
  void draw_head(const ViewModel& view, CommandSink& sink, float width);
  void draw_search(const ViewModel& view, CommandSink& sink, float width);
  void draw_rows(const ViewModel& view, CommandSink& sink, ImVec2 size);
  void draw_row(const ViewModel& view, const ChatListing& chat, CommandSink& sink, float width);
  void draw_name(const ChatListing& chat, CommandSink& sink, float width);
  void draw_menu(const ChatListing& chat, CommandSink& sink);
  void take_keys(const ChatListing& chat, CommandSink& sink);
  void rename(const ChatListing& chat);
  void go_to_chat(CommandSink& sink);

  Place place_ = Place::panel;
  std::string search_;     // what is being typed
  uint32_t searches_ = 0;  // ShellState::chat_list_searches that were answered
  std::string naming_;     // id of the chat whose name is being edited; empty: none
  std::string name_;       // what it is to be
  int focus_name_ = 0;     // frames for which its box asks for the keyboard
  bool named_ = false;     // the box had it
};

/// The list as a panel of Lab.
class HistoryPanel final : public Panel {
 public:
  const char* name() const override { return "History"; }
  void draw(const ViewModel& view, CommandSink& sink) override { list_.draw(view, sink, ChatList::Place::panel); }

 private:
  ChatList list_;
};

}  // namespace canopy::app

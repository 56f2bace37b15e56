#pragma once

#include <string>

#include "app/chat/composer.h"
#include "app/chat/find_bar.h"
#include "app/chat/transcript.h"
#include "app/panels/panel.h"

namespace canopy::app {

/// The panel of the conversation: messages in a column of readable width, and the composer below.
class ChatPanel final : public Panel {
 public:
  const char* name() const override { return "Chat"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
  /// Where the text of the last reply on show ends on the screen, if it is in view.
  std::optional<ImVec2> text_end(const ViewModel& view);

 private:
  void draw_header(const ViewModel& view, CommandSink& sink, float width);
  void draw_title(const ViewModel& view, CommandSink& sink, ImVec2 at, float room);
  void draw_below(const ViewModel& view, CommandSink& sink, float width);
  float below_height(const ViewModel& view, float width);
  Transcript& shown(const ViewModel& view) { return view.replaying() ? replayed_ : transcript_; }
  void draw_empty(const ViewModel& view, CommandSink& sink, ImVec2 size);
  void draw_to_end(Transcript& transcript, ImVec2 centre);
  void draw_note(const ViewModel& view, CommandSink& sink, float width);
  void copy_selection(const ViewModel& view, CommandSink& sink);
  void keep_keyboard_in_composer();

  Composer composer_;
  Transcript transcript_{"Messages"};
  // Messages of a recording; separate, so that the own chat keeps its scroll position.
  Transcript replayed_{"Replayed messages"};
  FindBar find_;
  std::string dismissed_limits_;  // the last limits() whose message the user has closed
  std::string name_;              // of the chat, while it is being edited
  bool naming_ = false, focus_name_ = false;
};

}  // namespace canopy::app

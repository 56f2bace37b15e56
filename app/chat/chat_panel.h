#pragma once
// The panel of the conversation: header, messages and composer, the bar that searches it, and the bar of a recording.

#include <cstdint>
#include <string>
#include <vector>

#include "app/chat/composer.h"
#include "app/chat/transcript.h"
#include "app/state/conversation.h"
#include "app/state/view_model.h"
#include "app/ui/panel.h"

namespace canopy::app {

/// The bar that searches the shown conversation: Enter and the arrows go from hit to hit, Esc closes it.
class FindBar {
 public:
  /// Draws it at the cursor. True when another hit became the current() one and should be scrolled to.
  bool draw(const ViewModel& view, CommandSink& sink, float width);

  const std::vector<ChatHit>& hits() const { return hits_; }
  /// The current hit; null if there is none.
  const ChatHit* current() const { return at_ < hits_.size() ? &hits_[at_] : nullptr; }
  /// Whether it has the keyboard focus.
  bool active() const { return active_; }
  /// Call in frames in which the bar is not drawn. True in the first of them.
  bool close();

 private:
  bool search(const ViewModel& view);

  std::string wanted_;
  std::vector<ChatHit> hits_;
  size_t at_ = 0;
  bool open_ = false, active_ = false;
  // The text and conversation that hits_ belong to:
  std::string searched_;
  uint64_t leaf_ = 0;
  size_t bytes_ = 0, messages_ = 0;
};

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
  /// What stands between messages and composer, and how high it is.
  struct Below {
    bool limits = false, note = false, costs = false, legend = false;
    float height = 0;
  };
  Below below_in(const ViewModel& view, float width, float room);
  void draw_below(const ViewModel& view, CommandSink& sink, float width, const Below& below);
  Transcript& shown(const ViewModel& view) { return view.own_chat() ? transcript_ : replayed_; }
  void draw_empty(const ViewModel& view, CommandSink& sink, ImVec2 size);
  void draw_to_end(Transcript& transcript, ImVec2 centre);
  void draw_note(const ViewModel& view, CommandSink& sink, float width);
  void draw_costs(const ViewModel& view, CommandSink& sink, float width);
  void copy_selection(const ViewModel& view, CommandSink& sink);
  void keep_keyboard_in_composer(const ViewModel& view);

  Composer composer_;
  Transcript transcript_{"Messages"};
  // Messages of a recording or of a client; separate, so that the own chat keeps its scroll position.
  Transcript replayed_{"Replayed messages"};
  FindBar find_;
  std::string dismissed_limits_;  // the last limits() whose message the user has closed
  std::string name_;              // of the chat, while it is being edited
  bool naming_ = false, focus_name_ = false;
  uint64_t chats_begun_ = 0;  // ChatState::begun of the last frame
};

}  // namespace canopy::app

#pragma once
// The scrolling list of messages, in which text can be selected; it notes text that cannot be shown as it should be.

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "app/chat/message_body.h"
#include "app/state/conversation.h"
#include "app/state/rounds.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// What tests find at the end of the text that is being written (note_drawn()).
inline constexpr const char* kCaret = "|";

/// The selected part of one message: dragging selects characters, a double click a word, a triple click a paragraph.
/// Positions are bytes of the message's text, its Markdown included; they stay valid while a message is being written,
/// as messages only grow at the end.
class TextSelection {
 public:
  /// What the mouse did in the message in this frame.
  struct Mouse {
    bool over = false;
    bool clicked = false;  // pressed and released at the same place, once
  };

  /// Makes the rectangle a ... b an item for the mouse, for the body drawn at pos. id is that of the message.
  Mouse item(uint64_t id, const MessageBody& body, ImVec2 a, ImVec2 b, ImVec2 pos, std::string_view text);
  /// Draws the background of the selected part. Call before drawing the text.
  void draw(uint64_t id, const MessageBody& body, ImVec2 pos, ImDrawList* list) const;

  bool empty() const { return begin() == end(); }
  void clear() { id_ = anchor_ = caret_ = 0; }
  uint64_t id() const { return id_; }
  /// The selected part of `text`, which must be that of message id().
  std::string of(std::string_view text) const;

 private:
  size_t begin() const { return anchor_ < caret_ ? anchor_ : caret_; }
  size_t end() const { return anchor_ < caret_ ? caret_ : anchor_; }
  void press(uint64_t id, size_t byte, std::string_view text, int clicks);

  uint64_t id_ = 0;
  size_t anchor_ = 0, caret_ = 0;  // bytes
  bool dragging_ = false;
};

/// The scrolling list of messages. Only those in view are laid out and drawn. The heights of the others are known from
/// before or estimated until they come near; when an estimate was wrong, what is in view does not move.
class Transcript {
 public:
  /// name: of its child window, which keeps the scroll position under that name.
  explicit Transcript(const char* name) : name_(name) {}

  /// Draws into a child window of `size`, with a margin at either side of the column.
  void draw(const ViewModel& view, CommandSink& sink, ImVec2 size, float margin);

  bool follows_end() const { return follow_; }
  void follow_end() { follow_ = true; }
  /// Scrolls to a hit in the next frame.
  void show(const ChatHit& hit) { wanted_ = hit, wanted_unseen_ = false; }
  /// Sets the hits to mark; both must stay alive until the next call.
  void mark(const std::vector<ChatHit>* hits, const ChatHit* current) { hits_ = hits, current_hit_ = current; }

  TextSelection& selection() { return selection_; }
  /// Whether a question is being edited, which then has the keyboard.
  bool editing() const { return editing_ != 0; }
  /// Where the text of the last reply ended on the screen in the last frame; none where no reply was drawn.
  std::optional<ImVec2> text_end() const { return text_end_; }
  /// A sentence about letters in view that no font has, and what to install; empty if there are none.
  const std::string& limits() const { return limits_; }

 private:
  float height_of(const ViewModel& view, size_t i, float width);
  float guess(const Message& message, float width) const;
  MessageBody& body_of(const Message& message, float width);
  MessageBody& thought_of(const Message& message, float width);
  float thinking_height(const Message& message, float width);
  void draw_thinking(const ViewModel& view, const Message& message, CommandSink& sink, float width);
  float show_hit(const ViewModel& view, size_t i, float width);
  void prepare(const ViewModel& view, float width, float room);
  void draw_messages(const ViewModel& view, CommandSink& sink, float left, float width);
  void draw_user(const ViewModel& view, size_t i, CommandSink& sink, float width);
  void draw_reply(const ViewModel& view, size_t i, CommandSink& sink, float width);
  void draw_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body, ImVec2 pos);
  void draw_code_buttons(const MessageBody& body, ImVec2 pos, CommandSink& sink);
  void draw_editor(const ViewModel& view, const Message& message, CommandSink& sink, float width);
  void point_at(const ViewModel& view, const Message& message, const MessageBody& body, ImVec2 pos,
                TextSelection::Mouse mouse, CommandSink& sink);
  void note_missing(const MessageBody& body);
  void scroll(const ViewModel& view);
  void show_pinned_place(const ViewModel& view);

  const char* name_;
  TextSelection selection_;
  std::unordered_map<uint64_t, MessageBody> bodies_;    // of messages near the view
  std::unordered_map<uint64_t, MessageBody> thoughts_;  // likewise, where they are unfolded
  std::unordered_set<uint64_t> unfolded_;               // replies whose thinking is shown
  std::unordered_map<uint64_t, float> heights_;         // of all messages laid out so far at this width
  std::unordered_set<uint64_t> seen_;                   // drawn in this frame
  std::vector<float> tops_;
  float width_ = 0, scale_ = 0, total_ = 0;
  int fonts_found_ = 0;  // Look::fonts_found when they were laid out
  ImGuiID child_ = 0;
  uint64_t anchor_ = 0;  // id of the first message in view, to keep it in place
  float anchor_top_ = 0, anchor_height_ = 0;
  float below_ = 0;                // height of the cards below the messages in the last frame
  size_t shown_ = 0;               // number of messages in the last frame
  uint64_t first_ = 0, last_ = 0;  // ids of the first and the last of them
  bool follow_ = true;             // stay at the end while text arrives
  float scroll_ = 0;               // of the last frame
  std::optional<ChatHit> wanted_;
  bool wanted_unseen_ = false;  // scrolls only where it is out of view
  const std::vector<ChatHit>* hits_ = nullptr;
  const ChatHit* current_hit_ = nullptr;
  uint64_t editing_ = 0;
  std::string edited_;
  bool focus_editor_ = false;
  bool pointing_ = false;                // RoundsState::hovered was set by this panel
  bool pointed_ = false;                 // a token is hovered in this frame
  std::optional<NodeRef> scrolled_for_;  // the selected node whose place in the text was looked at already
  std::string limits_;
  std::vector<uint32_t> missing_;  // characters of what was drawn in this frame that no font has
  std::optional<ImVec2> text_end_;
};

}  // namespace canopy::app

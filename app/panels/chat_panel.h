#pragma once

#include <unordered_map>

#include "app/look/text_block.h"
#include "app/panels/composer.h"
#include "app/panels/panel.h"
#include "app/panels/text_selection.h"

namespace canopy::app {

/// The conversation in a column of readable width, and the composer below it.
class ChatPanel final : public Panel {
 public:
  const char* name() const override { return "Chat"; }
  bool wanted(const ViewModel& view) const override;
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_header(const ViewModel& view, CommandSink& sink, float width);
  void draw_messages(const ViewModel& view, CommandSink& sink, float width);
  void draw_user(const Message& message, float width);
  void draw_assistant(const ViewModel& view, const Message& message, CommandSink& sink, float width);
  void draw_verdict(const ViewModel& view, const ReplyFinished& reply, CommandSink& sink, float width);
  void draw_empty(const ViewModel& view, CommandSink& sink, float width, float height);

  void follow_end(const ViewModel& view);
  void draw_to_end(ImVec2 centre);
  void copy_selection(const ViewModel& view, CommandSink& sink);
  void keep_keyboard_in_composer();

  Composer composer_;
  TextSelection selection_;
  std::unordered_map<uint64_t, TextBlock> blocks_;  // by message id
  size_t shown_ = 0;                                // messages in the last frame
  bool follow_ = true;                              // stay at the end while text arrives
  float scroll_ = 0;                                // of the last frame
};

}  // namespace canopy::app

#pragma once

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The part of the chat's settings for its system prompt: its text, and the prompts that are kept under names.
class PromptMenu {
 public:
  /// Draws at the cursor, `width` pixels wide.
  void draw(const ViewModel& view, CommandSink& sink, float width);

 private:
  void draw_choice(const ViewModel& view, CommandSink& sink, float width);
  void draw_keeping(const ViewModel& view, CommandSink& sink, float width);

  std::string name_;   // that is typed
  std::string known_;  // name of the prompt that the chat had in the last frame
};

}  // namespace canopy::app

#pragma once

#include <cstdint>
#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Exports the chat that is shown, or imports one: over the panels while view.chat.files says so. What fails is said in
/// it, and it stays open with what was typed.
class ChatFilesDialog {
 public:
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void suggest(const ViewModel& view);
  void draw_export(const ViewModel& view, CommandSink& sink, float width);
  void draw_import(const ViewModel& view, CommandSink& sink, float width);
  void look_for_file();

  ChatFiles open_ = ChatFiles::closed;
  bool focus_ = false;  // the text box that is typed into first takes the keyboard
  ExportFormat format_ = ExportFormat::markdown;
  std::string folder_, name_, import_;
  std::string suggested_;   // what name_ was before its user changed it
  uint64_t named_for_ = 0;  // the first message of the chat that name_ was made of
  std::string looked_at_;   // the path that the next is known of:
  bool exists_ = false;     // there is such a file
};

}  // namespace canopy::app

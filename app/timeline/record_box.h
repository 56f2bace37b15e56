#pragma once
// Recording: the line in the timeline that begins, shows and ends a recording, and the box that asks for the file.

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The box that asks for the file of a recording and whether to keep texts; shown above the timeline. Enter begins, Esc
/// closes it.
class RecordBox {
 public:
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_path();
  void draw_notes(const ViewModel& view);
  void draw_buttons(CommandSink& sink);
  void close(CommandSink& sink);

  std::string path_, looked_at_;
  bool exists_ = false;  // there is a file at looked_at_
  std::string in_use_;   // why it may not be written; empty: it may
  bool redact_ = false;
  bool dense_ = false;
  bool open_ = false, entered_ = false;
};

/// Draws the line of the timeline at the cursor, in this width.
void draw_recording_row(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app

#pragma once
// Recording: the line of the timeline that begins one, says how it stands and ends it, and the box that asks where it
// goes.

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Where a recording is to go, and whether it keeps texts. Over the panels, above the timeline; Enter records, Esc
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
  bool exists_ = false;  // what is at looked_at_
  bool redact_ = false;
  bool open_ = false, entered_ = false;
};

/// Draws the line of the timeline from the cursor on, in this width.
void draw_recording_row(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app

#pragma once
// The controls of the replay, and the box and the line that begin and end a recording.

#include <string>

#include "app/state/view_model.h"
#include "app/ui/panel.h"

namespace canopy::app {

// The controls of the replay: back, pause, forward, follow, slow motion and speed.

/// Draws two rows of controls at the cursor, in this width. buttons_only: the first of them alone.
void draw_transport(const RoundsState& rounds, CommandSink& sink, float width, bool buttons_only = false);

/// Handles the keys of the replay while the current window has the focus: Space, the arrows, Home and End.
void handle_transport_keys(const RoundsState& rounds, CommandSink& sink);

/// The width of the controls at 100%.
inline constexpr float kTransportWidth = 340;

// Recording: the line in the timeline that begins, shows and ends a recording, and the box that asks for the file.

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

#pragma once
// What the shell arranges, and the plain parts that several panels are made of. A panel shows a part of the view model
// and answers with commands; it never changes the state and never touches the engine. It is one class and one line in
// app/shell/shell.cpp. Its window has no padding and does not scroll: what may be taller than its place scrolls in a
// child window of its own.

#include <string>
#include <string_view>

#include "app/look/fonts.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

class Panel {
 public:
  virtual ~Panel() = default;

  /// Window title and id; the words on the tab of a docked panel.
  virtual const char* name() const = 0;

  /// Draws inside the window the shell has begun.
  virtual void draw(const ViewModel& view, CommandSink& sink) = 0;
};

/// The room of a panel, which scrolls when it must. Holds for its life.
class PanelBody {
 public:
  explicit PanelBody(const char* id, float padding_x = 16, float padding_y = 14);
  ~PanelBody();
  PanelBody(const PanelBody&) = delete;
  PanelBody& operator=(const PanelBody&) = delete;
};

/// A sentence in the middle of the room, for a panel that has nothing to show yet.
void empty_panel(std::string_view sentence);

/// A card with a bar at its left: a title and wrapped words below it. Returns its height.
float bar_card(const char* id, float width, Colour bar, std::string_view title, const std::string& words,
               const std::string& more = {});

/// Two words on a line, the second at the right, in figures; over the room there is, or a width.
void pair_line(float width, std::string_view left, std::string_view right, const std::string& tooltip_text = {});
void pair_line(std::string_view left, std::string_view right, const std::string& tooltip_text = {});

}  // namespace canopy::app

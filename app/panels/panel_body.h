#pragma once
// The inside of a panel: its room, and the plain parts that several panels are made of.

#include <string>
#include <string_view>

#include "app/look/fonts.h"

namespace canopy::app {

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

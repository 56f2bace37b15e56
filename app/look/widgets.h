#pragma once
// The few controls the panels are made of, in the look of the design. Each is one item for the keyboard, for the mouse
// and for tests; its id is its label unless told otherwise.

#include <imgui.h>

#include <string>
#include <string_view>

#include "app/base/figures.h"
#include "app/look/fonts.h"
#include "app/look/icons.h"

namespace canopy::app {

enum class ButtonKind {
  primary,  // filled with the accent: the likely action
  line,     // outlined
  bare,     // only its words or icon
};

struct ButtonSpec {
  const char* label = "";  // the id, and the words unless show_label is off
  Icon icon = Icon::none;
  ButtonKind kind = ButtonKind::bare;
  bool enabled = true;
  bool on = false;  // a switch that is on
  bool show_label = true;
  const char* words = nullptr;    // shown instead of the label: words that change keep one id
  const char* tooltip = nullptr;  // may name the shortcut
  float height = 28;              // at 100%
  Type type = Type::base;
};

/// Draws a button at the cursor. True when it was pressed.
bool button(const ButtonSpec& spec);
/// Its size in pixels, for right-aligned rows.
ImVec2 button_size(const ButtonSpec& spec);

/// A drop-down's closed face: caption in grey, value, chevron. True when pressed.
bool picker(const char* id, std::string_view caption, std::string_view value, float width, bool has_value = true);
/// The width a picker needs to show everything.
float picker_width(std::string_view caption, std::string_view value);

/// A row of a drop-down: title, and a second line in grey. True when pressed.
bool choice(const char* id, std::string_view title, std::string_view detail, bool selected, bool enabled, float width);

/// A line of a menu: a check mark where it is on, words, and its keys at the right. True when pressed.
bool menu_row(const char* id, std::string_view words, std::string_view keys, bool checked, bool enabled, float width);

/// A bar of the given size at pos; a negative fraction draws the track alone.
void draw_bar(ImDrawList* list, ImVec2 pos, ImVec2 size, float fraction, Colour fill, Colour track);

void tooltip(const char* text);

/// Puts the next window at the top of the viewport's middle, as high as what it holds. width is at 100%; its pixels,
/// less where the viewport is narrow.
float place_dialog(float width);

/// Text at the cursor as an item.
void label(Type type, Colour colour, std::string_view text);

/// Moves the cursor so that the next item of this height sits in the middle of the row from y with row_height.
void centre_in_row(float y, float row_height, float item_height);

/// A line to type or paste a model's path into, with a button beside it; the way in where no file dialog exists.
/// path keeps what was typed. True when Enter or the button asks to open it.
bool model_path_box(std::string& path, float width);

}  // namespace canopy::app

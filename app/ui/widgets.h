#pragma once
// The controls that panels are made of, in the look of the design, and the meanings of terms that open on hover.

#include <imgui.h>

#include <string>
#include <string_view>

#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/shapes.h"

namespace canopy::app {

// Each control is one item for the keyboard, the mouse and tests; its id is its label unless said otherwise.

enum class ButtonKind {
  primary,  // filled with the accent colour: the most likely action
  line,     // outlined
  bare,     // only text or icon
};

struct ButtonSpec {
  const char* label = "";  // the id, and the text unless show_label is off
  Icon icon = Icon::none;
  ButtonKind kind = ButtonKind::bare;
  bool enabled = true;
  bool on = false;  // for a switch: it is on
  bool show_label = true;
  const char* words = nullptr;    // shown instead of the label: text that changes while the id stays the same
  const char* tooltip = nullptr;  // may contain the shortcut
  float height = 28;              // at 100%
  Type type = Type::base;
};

/// Draws a button at the cursor. True when it was pressed.
bool button(const ButtonSpec& spec);
/// A button of an icon alone; `about` is its tooltip. True when it was pressed.
bool icon_button(const char* label, Icon icon, const char* about, bool enabled = true);
/// Size of a button in pixels, for rows aligned at the right.
ImVec2 button_size(const ButtonSpec& spec);

/// The closed drop-down: caption in grey, value, chevron. True when pressed.
bool picker(const char* id, std::string_view caption, std::string_view value, float width, bool has_value = true);
/// The width in pixels at which a picker shows everything.
float picker_width(std::string_view caption, std::string_view value);

/// A row of a drop-down: title, and a second line in grey. True when pressed.
bool choice(const char* id, std::string_view title, std::string_view detail, bool selected, bool enabled, float width);

/// A line of a menu: a check mark if it is on, text, and the shortcut at the right. True when pressed.
bool menu_row(const char* id, std::string_view words, std::string_view keys, bool checked, bool enabled, float width);

/// Draws a progress bar of the given size at pos; with a negative fraction only its background.
void draw_bar(ImDrawList* list, ImVec2 pos, ImVec2 size, float fraction, Colour fill, Colour track);

void tooltip(const char* text);

/// A tooltip at the mouse, whatever is under it: of a place in a drawing, which is no item.
void show_tooltip(const std::string& text);

/// Places the next window at the top of the viewport, centred, as high as its contents. width is at 100%; returns its
/// width in pixels, which is less where the viewport is narrow.
float place_dialog(float width);

/// Draws text at the cursor as an item.
void label(Type type, Colour colour, std::string_view text);

/// The same for small text that is wrapped, with lines of `pitch` at 100%. Takes no height where there is none.
void paragraph(std::string_view words, Colour colour, float width, float pitch = 19);

/// A text box for the path of a model, with a button; used where there is no file dialog. `path` keeps the text between
/// frames. True when Enter or the button asks to open it.
bool model_path_box(std::string& path, float width);

// The meaning of a term, shown on hover after the delay of tooltips (app/state/words.h).

/// The tooltip of the item drawn last: the meaning of this label, where it is a term, and `more` below it: how the
/// number came about. Without both there is none.
void term_tooltip(std::string_view label, const std::string& more = {});

/// Makes an item of a label that was drawn from a to b: a dotted line under it says that it can be asked, and its
/// meaning opens on hover. Nothing where the label is no term. The item's id is "term " and the term's name; the cursor
/// is left where it was.
void term_area(std::string_view label, ImVec2 a, ImVec2 b, const std::string& more = {});

/// The dotted line alone, under a label from x0 to x1.
void draw_term_line(ImDrawList* list, float x0, float x1, float y);

}  // namespace canopy::app

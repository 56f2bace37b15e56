#pragma once
// The look of the window: the theme's colours and Dear ImGui's style, the scale, the typefaces and text styles,
// and text measured, fitted, drawn, or wrapped as a paragraph.

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/theme.h"

struct ImGuiStyle;

namespace canopy::app {

// The two typefaces, the text styles made of them, and functions that measure and draw text. Sizes are em pixels, as
// designers give them. Dear ImGui takes ascent minus descent instead, so each size is multiplied by that ratio of its
// font file.

enum class Type {
  base,                // Inter 13, controls
  base_medium,         // Inter Medium 13, labels that are on
  base_semibold,       // Inter SemiBold 13
  chat,                // Inter 14 on 22
  chat_semibold,       // Inter SemiBold 14
  lead,                // Inter 16, the line under a headline
  secondary,           // Inter 12
  secondary_semibold,  // Inter SemiBold 12
  caption,             // Inter 11
  caption_semibold,    // Inter SemiBold 11
  title,               // Inter SemiBold 15
  card_title,          // Inter SemiBold 20
  headline,            // Inter SemiBold 34
  mono,                // JetBrains Mono 12
  mono_semibold,       // JetBrains Mono SemiBold 12
  mono_caption,        // JetBrains Mono 11
  figure,              // JetBrains Mono 15, for numbers in boxes
  ratio,               // JetBrains Mono SemiBold 22
  key_figure,          // JetBrains Mono Medium 38
};

struct FontSet {
  ImFont* inter = nullptr;
  ImFont* inter_medium = nullptr;
  ImFont* inter_semibold = nullptr;
  ImFont* mono = nullptr;
  ImFont* mono_medium = nullptr;
  ImFont* mono_semibold = nullptr;
};

/// Adds the embedded fonts to the atlas of the current context and, with system_fallback, the system's fonts for other
/// scripts (script_text.h). Tests leave those out, as their pictures must not depend on the fonts of a machine.
FontSet load_fonts(bool system_fallback);

/// A text that was drawn and where, in pixels; tests check that texts fit into their places.
struct DrawnText {
  std::string text;
  ImVec2 min, max;            // of the text
  ImVec2 clip_min, clip_max;  // the clip rectangle it was drawn in
};

/// Everything that drawing code needs to know of the look. Reached through io.UserData of the context.
struct Look {
  const Theme* theme = nullptr;
  FontSet fonts;
  float scale = 1.0f;                       // pixels per unit of the 100% design
  double drawing_until = 0;                 // in ImGui::GetTime(): frames are drawn until then, as something moves
  std::string typed_ahead;                  // for the box of messages, while it is not on show
  int letters_taken = -2;                   // ImGui::GetFrameCount() when a box last took what is typed anywhere
  std::string focus_wanted;                 // the part of the window that is to take the keyboard
  int focus_asked = -2;                     // ImGui::GetFrameCount() when that was asked for
  std::string press_wanted;                 // the control that is to be pressed as if by a click
  int press_asked = -2;                     // ImGui::GetFrameCount() when that was asked for
  int wide_steps = 0;                       // that wide code moves sideways in this frame
  int wide_pointed = -2;                    // ImGui::GetFrameCount() when the mouse was last on wide code
  int fonts_found = 0;                      // rises when fonts of the system were found for what has been measured
  std::vector<DrawnText>* drawn = nullptr;  // where note_drawn() adds texts; null except in tests
};

Look& look();
inline const Theme& colours() {
  return *look().theme;
}
/// A length of the 100% design in pixels, rounded to whole pixels so that edges are sharp.
float px(float length);

/// Call when an animation begins: frames are drawn for that many seconds even without input. Not for animations without
/// an end.
void keep_drawing(double seconds);

/// Whether letters that are typed go to the box of messages, wherever the focus is: no keys of other panels then.
bool letters_are_typed();

/// Where the box of messages is not on show: keeps the letters that are typed while nothing has the keyboard in
/// typed_ahead, for the box to take when it comes up. Whether there are new ones: then it should come up.
bool take_typed_ahead();

// Parts of the window that share a window of Dear ImGui with others take the keyboard themselves when it is their turn.

inline constexpr std::string_view kComposerArea = "Composer", kTreeArea = "Tree", kNumbersArea = "Numbers";

void want_focus(std::string_view area);
/// Whether this part is to take the keyboard now; true once.
bool take_focus(std::string_view area);
/// Gives the keyboard to the item that was drawn last, if it is this part's turn.
void focus_last_item(std::string_view area);

/// Has the control of this name pressed, if it is drawn in this frame or the next.
void want_press(std::string_view control);
/// Whether this control is to be pressed now; true once. What draws a control asks beside the click.
bool take_press(std::string_view control);

ImFont* font_of(Type type);
/// Size before scaling, for ImGui::PushFont.
float font_size(Type type);

void push_type(Type type);  // pair with ImGui::PopFont()
ImVec2 text_size(Type type, std::string_view text);
float text_height(Type type);
/// The same for letters of another size: em pixels at 100%.
float text_height(Type type, float em);
void draw_text(ImDrawList* list, ImVec2 pos, Type type, Colour colour, std::string_view text);
/// Tells tests about a line of text that was drawn. draw_text() calls it by itself.
void note_drawn(const ImDrawList* list, ImVec2 pos, Type type, std::string_view text);
/// Draws text with its middle at height y.
void draw_text_middle(ImDrawList* list, float x, float y, Type type, Colour colour, std::string_view text);

/// Joins the first pieces, with two spaces between them: as many as fit whole into `width` pixels.
std::string fitting(Type type, std::span<const std::string> pieces, float width);
/// The first wording that fits into `width` pixels; else the last one, cut with an ellipsis. Give the longest first.
std::string first_fitting(Type type, std::initializer_list<std::string> wordings, float width);

/// The text if it is no wider than `width` pixels; else its longest beginning that fits together with an ellipsis.
std::string elided(Type type, std::string_view text, float width);

// The style of Dear ImGui in the colours of a theme.

/// Sets all sizes (at scale) and colours of the style. Starts from the sizes at 100% each time, so that scaling up and
/// down again gives the same style.
void apply_style(ImGuiStyle& style, const Theme& theme, float scale);

// A wrapped paragraph with its own line pitch. Appended text costs only the layout of the last line, so that a long
// reply that is being written does not cost more in every frame.

class TextBlock {
 public:
  /// Wraps text at `width` pixels. Cheap when text was only appended since the last call, free when nothing changed.
  void layout(std::string_view text, Type type, float width);

  /// Height in pixels for a line pitch in pixels.
  float height(float pitch) const { return pitch * static_cast<float>(lines_.size()); }
  size_t line_count() const { return lines_.size(); }
  float widest() const { return widest_; }

  /// The byte of the text nearest to a point, on a character boundary. pos is where the block was drawn.
  size_t byte_at(ImVec2 point, ImVec2 pos, std::string_view text, Type type, float pitch) const;

  /// Draws the lines that are inside the clip rectangle. Returns the end of the text, at the top of its last line.
  ImVec2 draw(ImDrawList* list, ImVec2 pos, std::string_view text, Type type, Colour colour, float pitch) const;

 private:
  struct Line {
    uint32_t begin, end;  // bytes of the text
  };
  void wrap_from(std::string_view text, size_t start, Type type);

  std::vector<Line> lines_;
  size_t laid_out_ = 0;  // bytes
  float width_ = -1, size_ = 0, widest_ = 0;
};

}  // namespace canopy::app

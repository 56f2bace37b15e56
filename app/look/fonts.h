#pragma once
// The two typefaces and the roles text plays. Sizes are written in em pixels, as a designer would; Dear ImGui measures
// ascent minus descent, so each size is multiplied by that ratio of its font file.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "app/look/theme.h"

namespace canopy::app {

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
  figure,              // JetBrains Mono 15, a figure in a box of its own
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

/// Adds the embedded fonts to the current context's atlas, and system fonts for other scripts where they are found.
/// system_fallback is off in tests, whose pictures must not depend on what a machine has installed.
FontSet load_fonts(bool system_fallback);

/// Words that were drawn, for tests that measure them against their place: pixels.
struct DrawnText {
  std::string text;
  ImVec2 min, max;            // of the words
  ImVec2 clip_min, clip_max;  // what of the window they were drawn into
};

/// What all drawing code needs to know about the look; reached through the context's io.UserData.
struct Look {
  const Theme* theme = nullptr;
  FontSet fonts;
  float scale = 1.0f;                       // pixels per unit of the 100% design
  double drawing_until = 0;                 // ImGui's time: something moves until then and wants frames
  std::vector<DrawnText>* drawn = nullptr;  // where note_drawn() notes it; null outside of tests
};

Look& look();
inline const Theme& colours() {
  return *look().theme;
}
/// A length of the 100% design in pixels, rounded so that edges stay sharp.
float px(float length);

/// A motion has begun: frames are wanted for that long, whatever else happens. Never for what does not end.
void keep_drawing(double seconds);

ImFont* font_of(Type type);
/// Unscaled, for ImGui::PushFont.
float font_size(Type type);

void push_type(Type type);  // pair with ImGui::PopFont()
ImVec2 text_size(Type type, std::string_view text);
float text_height(Type type);
void draw_text(ImDrawList* list, ImVec2 pos, Type type, Colour colour, std::string_view text);
/// Tells tests of text on one line; draw_text() does so itself.
void note_drawn(const ImDrawList* list, ImVec2 pos, Type type, std::string_view text);
/// Text with its middle at y.
void draw_text_middle(ImDrawList* list, float x, float y, Type type, Colour colour, std::string_view text);

/// Pieces of a line, two spaces between them: the first ones, as many as fit whole into width.
std::string fitting(Type type, std::span<const std::string> pieces, float width);
/// The first of several wordings, the longest first, that fits into width; else the last one, cut.
std::string first_fitting(Type type, std::initializer_list<std::string> wordings, float width);

/// The longest start of text that, with an ellipsis, is no wider than width; text itself when it fits.
std::string elided(Type type, std::string_view text, float width);

}  // namespace canopy::app

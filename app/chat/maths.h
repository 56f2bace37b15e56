#pragma once
// Formulas in TeX's notation, typeset: MicroTeX says where their letters and bars stand, Dear ImGui draws them.

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/theme.h"

namespace canopy::app {

/// A typeset formula. Lengths are in em of the text around it; x goes right from its left edge, y down from its
/// baseline.
struct Maths {
  struct Letter {
    uint16_t glyph;  // number in the font for maths
    float size, x, y;
  };
  struct Word {  // of a script that the font for maths lacks: in the typeface of chats
    std::string text;
    float size, x, y;
  };
  struct Bar {  // of a fraction, a root; filled
    float x, y, width, height;
  };
  struct Stroke {
    float x1, y1, x2, y2, width;
  };

  float width = 0, ascent = 0, descent = 0;
  std::vector<Letter> letters;
  std::vector<Word> words;
  std::vector<Bar> bars;
  std::vector<Stroke> strokes;
};

/// Typesets a formula, without its delimiters, in a line of text or, with `display`, in a line of its own. Null if it
/// cannot: then its source is to be shown. The same formula again costs a look-up. For one thread only, that which
/// draws.
std::shared_ptr<const Maths> typeset(std::string_view tex, bool display);

/// Draws a formula whose baseline begins at `pos`, `em` pixels large.
void draw_maths(ImDrawList* list, ImVec2 pos, const Maths& maths, float em, Colour colour);

}  // namespace canopy::app

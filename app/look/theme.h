#pragma once
// The one table of colours. Nothing else in the application holds a colour literal, own drawing included.

#include <cstdint>

#include "app/base/choices.h"

struct ImGuiStyle;

namespace canopy::app {

/// Packed as Dear ImGui wants it: red in the low byte, alpha in the high one.
using Colour = uint32_t;

struct Theme {
  ThemeKind kind;
  // surfaces
  Colour back, canvas, panel, card, raised;
  // text
  Colour text, text2, text3;
  // controls
  Colour accent, accent_text, on_accent, accent_bg, ctl, line, grid;
  // what happened to a token; *_text for words, *_bg behind words
  Colour accepted, rejected, unreached, bonus;
  Colour unreached_edge;  // of what was not reached: fainter than its badge
  Colour accepted_text, rejected_text, bonus_text;
  Colour accepted_bg, rejected_bg, bonus_bg;
  Colour accepted_strong_bg;  // behind words of the shown round
  Colour on_state;
  // stages of a round; in the memory bar drafter, target, other applications
  Colour draft, verify, rest;
};

const Theme& theme(ThemeKind kind);

/// a towards b by t in [0, 1], per channel; alpha is a's.
Colour mix(Colour a, Colour b, float t);
Colour with_alpha(Colour colour, float alpha);

/// What lies behind selected text.
Colour selection_behind(const Theme& theme);

/// How much a surface moves towards the text colour under the pointer and while pressed.
inline constexpr float kHoverMix = 0.08f;
inline constexpr float kPressMix = 0.14f;

/// Sets every size (at scale) and colour of the style. Sizes start from the 100% table each time, so that scaling up
/// and down again gives the same style.
void apply_style(ImGuiStyle& style, const Theme& theme, float scale);

}  // namespace canopy::app

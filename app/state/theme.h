#pragma once
// The colours of the application. No other file has a colour literal.

#include <cstdint>

#include "app/state/settings.h"

namespace canopy::app {

/// Packed in the form of Dear ImGui: red in the low byte, alpha in the high one.
using Colour = uint32_t;

struct Theme {
  ThemeKind kind;
  // surfaces
  Colour back, canvas, panel, card, raised;
  Colour scrim;  // over what a tour does not speak of
  // text
  Colour text, text2, text3;
  // controls
  Colour accent, accent_text, on_accent, accent_bg, ctl, line, grid;
  // states of a token; *_text for text, *_bg for the background of text
  Colour accepted, rejected, unreached, bonus;
  // limbs of the tree: undecided, not reached, rejected and thin, rejected and thick (filled within an outline)
  Colour limb, limb_unreached, limb_rejected, limb_rejected_bg;
  Colour accepted_text, rejected_text, bonus_text;
  Colour accepted_bg, rejected_bg, bonus_bg;
  Colour accepted_strong_bg;  // background of the words of the shown round
  Colour on_state;
  // stages of a round; in the memory bar drafter, target and other programs
  Colour draft, verify, rest;
};

const Theme& theme(ThemeKind kind);

/// a moved towards b by t in [0, 1], for each channel; the alpha is that of a.
Colour mix(Colour a, Colour b, float t);
Colour with_alpha(Colour colour, float alpha);
/// The colour with its alpha times strength, so that what is faint already becomes fainter.
Colour faded(Colour colour, float strength);

/// Background of selected text.
Colour selection_behind(const Theme& theme);
/// Background of the words of the chat where a guess was found.
Colour found_behind(const Theme& theme);

/// How far a surface moves towards the text colour while hovered and while pressed, in [0, 1].
inline constexpr float kHoverMix = 0.08f;
inline constexpr float kPressMix = 0.14f;

}  // namespace canopy::app

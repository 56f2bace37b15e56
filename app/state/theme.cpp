#include "app/state/theme.h"

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr Colour rgb(uint32_t hex) {
  return 0xFF000000u | (hex & 0xFFu) << 16 | (hex & 0xFF00u) | (hex >> 16 & 0xFFu);
}

constexpr Theme kDark = {
    .kind = ThemeKind::dark,
    .back = rgb(0x0B0F0E),
    .canvas = rgb(0x101413),
    .panel = rgb(0x141918),
    .card = rgb(0x1D2423),
    .raised = rgb(0x27302E),
    .scrim = rgb(0x050807),
    .text = rgb(0xE8EEEB),
    .text2 = rgb(0xB0BDB8),
    .text3 = rgb(0x8B9994),
    .accent = rgb(0x1FB083),
    .accent_text = rgb(0x2CC295),
    .on_accent = rgb(0x06130E),
    .accent_bg = rgb(0x16352B),
    .ctl = rgb(0x6C7B75),
    .line = rgb(0x2C3634),
    .grid = rgb(0x232B29),
    .accepted = rgb(0x56B4E9),
    .rejected = rgb(0xD55E00),
    .unreached = rgb(0x7E8B87),
    .bonus = rgb(0xF5C04A),
    .limb = rgb(0x4C5B55),
    .limb_unreached = rgb(0x35423E),
    .limb_rejected = rgb(0x8F4413),
    .limb_rejected_bg = rgb(0x2A1A0F),
    .accepted_text = rgb(0x6CC0F0),
    .rejected_text = rgb(0xF08A55),
    .bonus_text = rgb(0xF5C04A),
    .accepted_bg = rgb(0x16303F),
    .rejected_bg = rgb(0x33200F),
    .bonus_bg = rgb(0x3B3015),
    .accepted_strong_bg = rgb(0x1F4A63),
    .on_state = rgb(0x0B0F0E),
    .draft = rgb(0xEFB3D2),
    .verify = rgb(0x1FB083),
    .rest = rgb(0x66756F),
};

constexpr Theme kLight = {
    .kind = ThemeKind::light,
    .back = rgb(0xDDE4E0),
    .canvas = rgb(0xFFFFFF),
    .panel = rgb(0xF8FAF9),
    .card = rgb(0xFFFFFF),
    .raised = rgb(0xEDF1EF),
    .scrim = rgb(0x050807),
    .text = rgb(0x14201B),
    .text2 = rgb(0x43504B),
    .text3 = rgb(0x59665F),
    .accent = rgb(0x00704F),
    .accent_text = rgb(0x00704F),
    .on_accent = rgb(0xFFFFFF),
    .accent_bg = rgb(0xD3EBE1),
    .ctl = rgb(0x7B8883),
    .line = rgb(0xCBD4D0),
    .grid = rgb(0xE6EBE8),
    .accepted = rgb(0x0072B2),
    .rejected = rgb(0xA83400),
    .unreached = rgb(0x76827D),
    .bonus = rgb(0xB38000),
    .limb = rgb(0xB3C0BA),
    .limb_unreached = rgb(0xC6D0CB),
    .limb_rejected = rgb(0xD9936A),
    .limb_rejected_bg = rgb(0xFBEFE7),
    .accepted_text = rgb(0x00619A),
    .rejected_text = rgb(0xA83400),
    .bonus_text = rgb(0x805600),
    .accepted_bg = rgb(0xDCECF7),
    .rejected_bg = rgb(0xF9E4DA),
    .bonus_bg = rgb(0xFAEDCB),
    .accepted_strong_bg = rgb(0xB5D7EE),
    .on_state = rgb(0xFFFFFF),
    .draft = rgb(0x8A3A72),
    .verify = rgb(0x007A59),
    .rest = rgb(0x87938E),
};

constexpr Theme kProjector = {
    .kind = ThemeKind::projector,
    .back = rgb(0xC4CCC8),
    .canvas = rgb(0xFFFFFF),
    .panel = rgb(0xFFFFFF),
    .card = rgb(0xFFFFFF),
    .raised = rgb(0xE6EBE8),
    .scrim = rgb(0x050807),
    .text = rgb(0x000000),
    .text2 = rgb(0x1F2A26),
    .text3 = rgb(0x37433E),
    .accent = rgb(0x005C41),
    .accent_text = rgb(0x005C41),
    .on_accent = rgb(0xFFFFFF),
    .accent_bg = rgb(0xB9E2D2),
    .ctl = rgb(0x4A5651),
    .line = rgb(0x8E9A95),
    .grid = rgb(0xCBD4D0),
    .accepted = rgb(0x0072B2),
    .rejected = rgb(0xA83400),
    .unreached = rgb(0x76827D),
    .bonus = rgb(0xB38000),
    .limb = rgb(0x8A9993),
    .limb_unreached = rgb(0xA9B5AF),
    .limb_rejected = rgb(0xC8642C),
    .limb_rejected_bg = rgb(0xF9DFD2),
    .accepted_text = rgb(0x004E86),
    .rejected_text = rgb(0x9C2A00),
    .bonus_text = rgb(0x6B4700),
    .accepted_bg = rgb(0xC4E0F5),
    .rejected_bg = rgb(0xF7D5C5),
    .bonus_bg = rgb(0xF7E2AC),
    .accepted_strong_bg = rgb(0x8FC3EA),
    .on_state = rgb(0xFFFFFF),
    .draft = rgb(0x8A3A72),
    .verify = rgb(0x007A59),
    .rest = rgb(0x87938E),
};

}  // namespace

const Theme& theme(ThemeKind kind) {
  return kind == ThemeKind::dark ? kDark : kind == ThemeKind::light ? kLight : kProjector;
}

Colour mix(Colour a, Colour b, float t) {
  Colour out = a & 0xFF000000u;
  for (int shift : {0, 8, 16}) {
    const float from = static_cast<float>(a >> shift & 0xFFu), to = static_cast<float>(b >> shift & 0xFFu);
    out |= static_cast<Colour>(std::lround(from + (to - from) * t)) << shift;
  }
  return out;
}

Colour with_alpha(Colour colour, float alpha) {
  return (colour & 0x00FFFFFFu) | static_cast<Colour>(std::lround(alpha * 255.0f)) << 24;
}

Colour faded(Colour colour, float strength) {
  return strength >= 1 ? colour : with_alpha(colour, static_cast<float>(colour >> 24) / 255 * std::max(0.0f, strength));
}

Colour selection_behind(const Theme& t) {
  constexpr float kStronger = 0.25f;  // as the tint alone is hard to see on a raised surface
  return mix(t.accent_bg, t.accent, kStronger);
}

Colour found_behind(const Theme& t) {
  constexpr float kTint = 0.28f;
  return mix(t.panel, t.draft, kTint);
}

}  // namespace canopy::app

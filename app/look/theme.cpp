#include "app/look/theme.h"

#include <imgui.h>

#include <cmath>
#include <initializer_list>

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

void set_sizes(ImGuiStyle& s) {
  s.WindowPadding = {14, 12};
  s.FramePadding = {10, 6};
  s.ItemSpacing = {8, 8};
  s.ItemInnerSpacing = {6, 4};
  s.CellPadding = {8, 2};
  s.IndentSpacing = 16;
  s.ScrollbarSize = 10;
  s.ScrollbarRounding = 5;
  s.GrabMinSize = 12;
  s.GrabRounding = 3;
  s.WindowRounding = 0;
  s.WindowBorderSize = 0;
  s.ChildRounding = 6;
  s.ChildBorderSize = 1;
  s.PopupRounding = 6;
  s.PopupBorderSize = 1;
  s.FrameRounding = 5;
  s.FrameBorderSize = 0;
  s.TabRounding = 0;
  s.TabBorderSize = 0;
  s.TabBarBorderSize = 0;
  s.TabBarOverlineSize = 2;
  s.DockingSeparatorSize = 4;
  s.SeparatorTextBorderSize = 1;
  s.HoverStationaryDelay = 0.10f;
  s.HoverDelayShort = 0.12f;
  s.HoverDelayNormal = 0.35f;
  s.DisabledAlpha = 0.60f;
  s.CurveTessellationMaxError = 1.0f;
  s.SeparatorSize = 1;
  s.MenuItemRounding = 4;
  s.SelectableRounding = 0;
}

void set_colours(ImVec4* c, const Theme& t) {
  auto set = [&](int slot, Colour colour) { c[slot] = ImGui::ColorConvertU32ToFloat4(colour); };
  auto hover = [&](Colour colour) { return mix(colour, t.text, kHoverMix); };
  auto press = [&](Colour colour) { return mix(colour, t.text, kPressMix); };
  for (int slot : {ImGuiCol_WindowBg, ImGuiCol_TabSelected, ImGuiCol_TabDimmedSelected}) set(slot, t.panel);
  for (int slot : {ImGuiCol_DockingEmptyBg, ImGuiCol_Tab, ImGuiCol_TabDimmed, ImGuiCol_TitleBg, ImGuiCol_TitleBgActive,
                   ImGuiCol_TitleBgCollapsed, ImGuiCol_Separator})
    set(slot, t.back);
  for (int slot : {ImGuiCol_ChildBg, ImGuiCol_FrameBg}) set(slot, t.card);
  for (int slot : {ImGuiCol_PopupBg, ImGuiCol_Button}) set(slot, t.raised);
  set(ImGuiCol_Header, t.accent_bg);
  set(ImGuiCol_TextSelectedBg, selection_behind(t));
  for (int slot :
       {ImGuiCol_CheckMark, ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive, ImGuiCol_TabSelectedOverline,
        ImGuiCol_TabDimmedSelectedOverline, ImGuiCol_SeparatorActive, ImGuiCol_NavCursor, ImGuiCol_InputTextCursor})
    set(slot, t.accent);
  set(ImGuiCol_DockingPreview, with_alpha(t.accent, 0.4f));
  set(ImGuiCol_Text, t.text);
  set(ImGuiCol_TextDisabled, t.text3);
  set(ImGuiCol_Border, t.line);
  set(ImGuiCol_BorderShadow, with_alpha(t.back, 0));
  set(ImGuiCol_FrameBgHovered, hover(t.card));
  set(ImGuiCol_FrameBgActive, t.card);
  set(ImGuiCol_ButtonHovered, hover(t.raised));
  set(ImGuiCol_ButtonActive, press(t.raised));
  set(ImGuiCol_HeaderHovered, hover(t.raised));
  set(ImGuiCol_HeaderActive, press(t.raised));
  set(ImGuiCol_TabHovered, hover(t.back));
  set(ImGuiCol_SeparatorHovered, t.ctl);
  for (int slot : {ImGuiCol_ResizeGrip, ImGuiCol_ResizeGripHovered, ImGuiCol_ResizeGripActive}) set(slot, t.ctl);
  set(ImGuiCol_DragDropTarget, t.accent);
  set(ImGuiCol_NavWindowingHighlight, t.accent);
  for (int slot : {ImGuiCol_NavWindowingDimBg, ImGuiCol_ModalWindowDimBg}) set(slot, with_alpha(t.back, 0.5f));
  set(ImGuiCol_ScrollbarBg, with_alpha(t.panel, 0));
  set(ImGuiCol_ScrollbarGrab, t.line);
  set(ImGuiCol_ScrollbarGrabHovered, t.ctl);
  set(ImGuiCol_ScrollbarGrabActive, t.ctl);
  set(ImGuiCol_MenuBarBg, t.panel);
}

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

Colour selection_behind(const Theme& t) {
  constexpr float kStronger = 0.25f;  // as the tint alone is hard to see on a raised surface
  return mix(t.accent_bg, t.accent, kStronger);
}

void apply_style(ImGuiStyle& style, const Theme& t, float scale) {
  const float dpi = style.FontScaleDpi;
  style = ImGuiStyle();
  set_sizes(style);
  set_colours(style.Colors, t);
  style.ScaleAllSizes(scale);
  style.FontScaleDpi = dpi;
}

}  // namespace canopy::app

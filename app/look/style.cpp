#include "app/look/style.h"

#include <imgui.h>

#include <initializer_list>

namespace canopy::app {
namespace {

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

void apply_style(ImGuiStyle& style, const Theme& t, float scale) {
  const float dpi = style.FontScaleDpi;
  style = ImGuiStyle();
  set_sizes(style);
  set_colours(style.Colors, t);
  style.ScaleAllSizes(scale);
  style.FontScaleDpi = dpi;
}

}  // namespace canopy::app

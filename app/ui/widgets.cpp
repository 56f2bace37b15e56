#include "app/ui/widgets.h"

#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

namespace canopy::app {
namespace {

constexpr float kIconSize = 16;
constexpr float kButtonPadding = 10;
constexpr float kIconGap = 6;
constexpr float kPickerPadding = 10;
constexpr float kPickerGap = 8;

bool has_words(const ButtonSpec& spec) {
  return spec.show_label && spec.label[0] != '\0';
}

const char* words_of(const ButtonSpec& spec) {
  return spec.words ? spec.words : spec.label;
}

struct ButtonFace {
  Colour fill = 0, border = 0, content = 0;
};

ButtonFace face_of(const ButtonSpec& spec, bool hovered, bool held) {
  const Theme& t = colours();
  const float towards_text = held ? kPressMix : hovered ? kHoverMix : 0.0f;
  if (spec.on) return {mix(t.accent_bg, t.text, towards_text), 0, t.accent_text};
  switch (spec.kind) {
    case ButtonKind::primary: return {mix(t.accent, t.text, towards_text), 0, t.on_accent};
    case ButtonKind::line: return {hovered || held ? mix(t.card, t.text, towards_text) : 0, t.ctl, t.text};
    case ButtonKind::bare: break;
  }
  return {hovered || held ? mix(t.card, t.text, towards_text) : 0, 0, hovered || held ? t.text : t.text2};
}

void draw_face(ImDrawList* list, ImVec2 a, ImVec2 b, const ButtonFace& face) {
  const float rounding = px(5);
  if (face.fill) list->AddRectFilled(a, b, ImGui::GetColorU32(face.fill), rounding);
  if (face.border) list->AddRect(a, b, ImGui::GetColorU32(face.border), rounding, std::max(1.0f, px(1)));
}

}  // namespace

ImVec2 button_size(const ButtonSpec& spec) {
  const float height = px(spec.height);
  if (!has_words(spec)) return {height, height};
  float width = text_size(spec.type, words_of(spec)).x + px(kButtonPadding) * 2;
  if (spec.icon != Icon::none) width += px(kIconSize) + px(kIconGap);
  return {std::ceil(width), height};
}

bool button(const ButtonSpec& spec) {
  const ImVec2 size = button_size(spec), a = ImGui::GetCursorScreenPos(), b = {a.x + size.x, a.y + size.y};
  ImGui::BeginDisabled(!spec.enabled);
  const bool asked = spec.enabled && take_press(spec.label);
  const bool pressed = ImGui::InvisibleButton(spec.label, size, ImGuiButtonFlags_EnableNav) || asked;
  const bool hovered = ImGui::IsItemHovered() && spec.enabled;
  const ButtonFace face = face_of(spec, hovered, ImGui::IsItemActive());
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_face(list, a, b, face);
  const float middle = a.y + size.y * 0.5f;
  if (!has_words(spec)) {
    draw_icon(list, spec.icon, {a.x + size.x * 0.5f, middle}, px(kIconSize), face.content);
  } else {
    float x = a.x + px(kButtonPadding);
    if (spec.icon != Icon::none) {
      draw_icon(list, spec.icon, {x + px(kIconSize) * 0.5f, middle}, px(kIconSize), face.content);
      x += px(kIconSize) + px(kIconGap);
    }
    draw_text_middle(list, x, middle, spec.type, face.content, words_of(spec));
  }
  ImGui::EndDisabled();
  if (spec.tooltip) tooltip(spec.tooltip);
  return pressed;
}

bool icon_button(const char* label, Icon icon, const char* about, bool enabled) {
  ButtonSpec spec{label, icon};
  spec.show_label = false;
  spec.tooltip = about;
  spec.enabled = enabled;
  return button(spec);
}

float picker_width(std::string_view caption, std::string_view value) {
  float width = px(kPickerPadding) * 2 + px(kPickerGap) + px(kIconSize) + text_size(Type::base, value).x;
  if (!caption.empty()) width += text_size(Type::secondary, caption).x + px(kPickerGap);
  return std::ceil(width) + 1;
}

bool picker(const char* id, std::string_view caption, std::string_view value, float width, bool has_value) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), size = {width, px(32)}, b = {a.x + size.x, a.y + size.y};
  const bool pressed = ImGui::InvisibleButton(id, size, ImGuiButtonFlags_EnableNav) || take_press(id);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float towards_text = ImGui::IsItemActive() ? kPressMix : ImGui::IsItemHovered() ? kHoverMix : 0.0f;
  draw_face(list, a, b, {mix(t.card, t.text, towards_text), t.line, 0});
  const float middle = a.y + size.y * 0.5f;
  float x = a.x + px(kPickerPadding);
  if (!caption.empty()) {
    draw_text_middle(list, x, middle, Type::secondary, t.text3, caption);
    x += text_size(Type::secondary, caption).x + px(kPickerGap);
  }
  const float room = b.x - px(kPickerPadding) - px(kIconSize) - px(kPickerGap) - x;
  draw_text_middle(list, x, middle, Type::base, has_value ? t.text : t.text3, elided(Type::base, value, room));
  draw_icon(list, Icon::chevron, {b.x - px(kPickerPadding) - px(kIconSize) * 0.5f, middle}, px(kIconSize), t.text3);
  return pressed;
}

bool choice(const char* id, std::string_view title, std::string_view detail, bool selected, bool enabled, float width) {
  const Theme& t = colours();
  const float height = px(detail.empty() ? 32 : 44), mark = px(24);
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height};
  ImGui::BeginDisabled(!enabled);
  const bool pressed = ImGui::InvisibleButton(id, {width, height}, ImGuiButtonFlags_EnableNav);
  ImDrawList* list = ImGui::GetWindowDrawList();
  Colour fill = selected ? t.accent_bg : 0;
  if (enabled && ImGui::IsItemHovered()) fill = mix(selected ? t.accent_bg : t.raised, t.text, kHoverMix);
  if (fill) list->AddRectFilled(a, b, ImGui::GetColorU32(fill), px(4));
  if (selected) draw_icon(list, Icon::check, {a.x + px(16), a.y + height * 0.5f}, px(14), t.accent_text);
  const float x = a.x + px(8) + mark, room = b.x - px(8) - x;
  draw_text_middle(list, x, detail.empty() ? a.y + height * 0.5f : a.y + px(14), Type::base, t.text,
                   elided(Type::base, title, room));
  if (!detail.empty())
    draw_text_middle(list, x, a.y + px(31), Type::caption, t.text2, elided(Type::caption, detail, room));
  ImGui::EndDisabled();
  return pressed;
}

bool menu_row(const char* id, std::string_view words, std::string_view keys, bool checked, bool enabled, float width) {
  const Theme& t = colours();
  const float height = px(28);
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height};
  ImGui::BeginDisabled(!enabled);
  const bool pressed = ImGui::InvisibleButton(id, {width, height}, ImGuiButtonFlags_EnableNav);
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (enabled && ImGui::IsItemHovered())
    list->AddRectFilled(a, b, ImGui::GetColorU32(mix(t.raised, t.text, kHoverMix)), px(4));
  const float middle = a.y + height * 0.5f, keys_width = text_size(Type::mono, keys).x;
  if (checked) draw_icon(list, Icon::check, {a.x + px(16), middle}, px(14), t.accent_text);
  draw_text_middle(list, a.x + px(32), middle, Type::base, t.text,
                   elided(Type::base, words, width - px(32 + 8 + 12) - keys_width));
  draw_text_middle(list, b.x - px(8) - keys_width, middle, Type::mono, t.text3, keys);
  ImGui::EndDisabled();
  return pressed;
}

void draw_bar(ImDrawList* list, ImVec2 pos, ImVec2 size, float fraction, Colour fill, Colour track) {
  const ImVec2 end = {pos.x + size.x, pos.y + size.y};
  list->AddRectFilled(pos, end, track, px(2));
  if (fraction <= 0.0f) return;
  const float width = std::max(px(2), size.x * std::min(fraction, 1.0f));
  list->AddRectFilled(pos, {pos.x + width, end.y}, fill, px(2));
}

namespace {

/// Places the next tooltip off the controls of the popup that the last item is in: below it, above it, or over the
/// words that it begins with; where none of these has room, where Dear ImGui puts it.
void place_off_popup(ImVec2 size) {
  const ImGuiWindow* form = ImGui::GetCurrentWindow()->RootWindow;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float gap = px(4), below = form->Pos.y + form->Size.y + gap, above = form->Pos.y - gap - size.y;
  const float x =
      std::clamp(form->Pos.x, viewport->Pos.x, std::max(viewport->Pos.x, viewport->Pos.x + viewport->Size.x - size.x));
  if (below + size.y <= viewport->Pos.y + viewport->Size.y)
    ImGui::SetNextWindowPos({x, below});
  else if (above >= viewport->Pos.y)
    ImGui::SetNextWindowPos({x, above});
  else if (form->Pos.y + size.y <= ImGui::GetItemRectMin().y)
    ImGui::SetNextWindowPos({x, form->Pos.y});
}

/// Whether a tooltip of the last item would lie over the controls behind it for as long as one works with it: that of a
/// box that is typed in or a slider, and of whatever the keyboard is on, in a form or a menu.
bool would_cover_the_next() {
  const ImGuiContext& g = *ImGui::GetCurrentContext();
  if ((ImGui::GetCurrentWindow()->RootWindow->Flags & ImGuiWindowFlags_Popup) == 0) return false;
  return (g.LastItemData.ItemFlags & ImGuiItemFlags_Inputable) != 0 || (g.NavCursorVisible && ImGui::IsItemFocused());
}

constexpr float kTooltipWidth = 420, kTermWidth = 340;

/// Where lines of a tooltip end: a narrow window has room for less than the usual width.
float tooltip_wrap(float width) {
  const float room = ImGui::GetMainViewport()->Size.x - ImGui::GetStyle().WindowPadding.x * 2 - px(8);
  return std::max(px(80), std::min(px(width), room));
}

}  // namespace

void tooltip(const char* text) {
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled)) return;
  push_type(Type::secondary);
  const ImVec2 words = ImGui::CalcTextSize(text, nullptr, false, tooltip_wrap(kTooltipWidth)),
               padding = ImGui::GetStyle().WindowPadding;
  ImGui::PopFont();
  if (would_cover_the_next()) place_off_popup({words.x + padding.x * 2, words.y + padding.y * 2});
  show_tooltip(text);
}

void show_tooltip(const std::string& text) {
  ImGui::BeginTooltip();
  push_type(Type::secondary);
  ImGui::PushTextWrapPos(tooltip_wrap(kTooltipWidth));
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  ImGui::EndTooltip();
}

float place_dialog(float width) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float pixels = std::min(px(width), viewport->Size.x - px(24));
  ImGui::SetNextWindowPos({viewport->Pos.x + (viewport->Size.x - pixels) * 0.5f,
                           viewport->Pos.y + std::min(px(96), viewport->Size.y * 0.1f)});
  ImGui::SetNextWindowSize({pixels, 0});
  return pixels;
}

void label(Type type, Colour colour, std::string_view text) {
  push_type(type);
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  note_drawn(ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos(), type, text);
  ImGui::TextUnformatted(text.data(), text.data() + text.size());
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void paragraph(std::string_view words, Colour colour, float width, float pitch) {
  if (words.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextBlock block;
  block.layout(words, Type::secondary, width);
  block.draw(ImGui::GetWindowDrawList(), at, words, Type::secondary, colour, px(pitch));
  ImGui::Dummy({width, block.height(px(pitch))});
}

bool model_path_box(std::string& path, float width) {
  ButtonSpec open{"Open", Icon::none, ButtonKind::line};
  open.enabled = !path.empty();
  const float room = width - button_size(open).x - px(8);
  push_type(Type::base);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(room);
  bool asked = ImGui::InputTextWithHint("##path", "or paste a path", &path,
                                        ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SameLine(0, px(8));
  asked |= button(open);
  return asked && !path.empty();
}

void term_tooltip(std::string_view label_words, const std::string& more) {
  const Term* term = find_term(label_words);
  if (!term) {
    if (!more.empty()) tooltip(more.c_str());
    return;
  }
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled)) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(tooltip_wrap(kTermWidth));
  label(Type::secondary_semibold, colours().text, term->name);
  label(Type::secondary, colours().text, term->meaning);
  if (!more.empty()) {
    ImGui::Dummy({0, px(2)});
    label(Type::secondary, colours().text2, more);
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void draw_term_line(ImDrawList* list, float x0, float x1, float y) {
  const ImVec2 line[] = {{x0, y}, {x1, y}};
  add_dashed(list, line, {std::max(1.0f, px(1)), px(3)}, colours().text3, std::max(1.0f, px(1)));
}

void term_area(std::string_view label_words, ImVec2 a, ImVec2 b, const std::string& more) {
  const Term* term = find_term(label_words);
  if (!term || b.x <= a.x || b.y <= a.y) return;
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  draw_term_line(ImGui::GetWindowDrawList(), a.x, b.x, b.y);
  ImGui::SetCursorScreenPos(a);
  const std::string id = "term " + std::string(term->name);
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton(id.c_str(), {b.x - a.x, b.y - a.y});
  term_tooltip(label_words, more);
  ImGui::SetCursorScreenPos(cursor);
}

}  // namespace canopy::app

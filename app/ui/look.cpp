#include "app/ui/look.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/platform/embedded_fonts.h"
#include "app/platform/text_order.h"
#include "app/ui/script_text.h"
#include "engine/base/text.h"

namespace canopy::app {
namespace {

constexpr float kInterRatio = 1.210f;          // (ascent - descent) / em of the font file
constexpr float kJetBrainsMonoRatio = 1.320f;  // likewise

struct TypeSpec {
  ImFont* FontSet::*font;
  float em;
  bool mono;
};

TypeSpec spec(Type type) {
  switch (type) {
    case Type::base: return {&FontSet::inter, 13, false};
    case Type::base_medium: return {&FontSet::inter_medium, 13, false};
    case Type::base_semibold: return {&FontSet::inter_semibold, 13, false};
    case Type::chat: return {&FontSet::inter, 14, false};
    case Type::chat_semibold: return {&FontSet::inter_semibold, 14, false};
    case Type::lead: return {&FontSet::inter, 16, false};
    case Type::secondary: return {&FontSet::inter, 12, false};
    case Type::secondary_semibold: return {&FontSet::inter_semibold, 12, false};
    case Type::caption: return {&FontSet::inter, 11, false};
    case Type::caption_semibold: return {&FontSet::inter_semibold, 11, false};
    case Type::title: return {&FontSet::inter_semibold, 15, false};
    case Type::card_title: return {&FontSet::inter_semibold, 20, false};
    case Type::headline: return {&FontSet::inter_semibold, 34, false};
    case Type::mono: return {&FontSet::mono, 12, true};
    case Type::mono_semibold: return {&FontSet::mono_semibold, 12, true};
    case Type::mono_caption: return {&FontSet::mono, 11, true};
    case Type::figure: return {&FontSet::mono, 15, true};
    case Type::ratio: return {&FontSet::mono_semibold, 22, true};
    case Type::key_figure: return {&FontSet::mono_medium, 38, true};
  }
  return {&FontSet::inter, 13, false};
}

ImFont* add_font(Face face, const char* file_name, const char* name, bool system_fallback) {
  const std::span<const unsigned char> file = embedded_font(file_name);
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;                        // the bytes belong to the program
  static constexpr ImWchar kPrivate[] = {0xE000, 0xF8FF, 0};  // other forms of its letters are there (is_private())
  config.GlyphExcludeRanges = kPrivate;
  std::snprintf(config.Name, sizeof config.Name, "%s", name);
  ImFont* font = ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<unsigned char*>(file.data()),
                                                            static_cast<int>(file.size()), 0.0f, &config);
  add_other_scripts(face, is_mono(face) ? kJetBrainsMonoRatio : kInterRatio, system_fallback);
  return font;
}

SizedFont sized(Type type) {
  return {font_of(type), text_height(type)};
}

}  // namespace

FontSet load_fonts(bool system_fallback) {
  const auto add = [&](Face face, const char* file, const char* name) {
    return add_font(face, file, name, system_fallback);
  };
  FontSet set;
  set.inter = add(Face::sans, "Inter-Regular.otf", "Inter");
  set.inter_medium = add(Face::sans_medium, "Inter-Medium.otf", "Inter Medium");
  set.inter_semibold = add(Face::sans_semibold, "Inter-SemiBold.otf", "Inter SemiBold");
  set.mono = add(Face::mono, "JetBrainsMono-Regular.ttf", "JetBrains Mono");
  set.mono_medium = add(Face::mono_medium, "JetBrainsMono-Medium.ttf", "JetBrains Mono Medium");
  set.mono_semibold = add(Face::mono_semibold, "JetBrainsMono-SemiBold.ttf", "JetBrains Mono SemiBold");
  return set;
}

Look& look() {
  return *static_cast<Look*>(ImGui::GetIO().UserData);
}

float px(float length) {
  return std::round(length * look().scale);
}

bool letters_are_typed() {
  return ImGui::GetFrameCount() - look().letters_taken <= 1;
}

bool take_typed_ahead() {
  ImGuiIO& io = ImGui::GetIO();
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (popup || ImGui::IsAnyItemActive()) return false;
  look().letters_taken = ImGui::GetFrameCount();
  if (io.KeyCtrl && !io.KeyAlt) return false;
  std::string typed;
  for (const ImWchar c : io.InputQueueCharacters)
    if (c >= ' ' && c != 0x7F) append_utf8(typed, static_cast<uint32_t>(c));
  // A blank alone belongs to the panel that has the focus.
  if (typed.empty() || (typed.front() == ' ' && look().typed_ahead.empty())) return false;
  look().typed_ahead += typed;
  io.InputQueueCharacters.resize(0);
  return true;
}

void want_focus(std::string_view area) {
  look().focus_wanted = area;
  look().focus_asked = ImGui::GetFrameCount();
}

bool take_focus(std::string_view area) {
  if (look().focus_wanted != area || ImGui::GetFrameCount() - look().focus_asked > 1) return false;
  look().focus_wanted.clear();
  return true;
}

void focus_last_item(std::string_view area) {
  if (!take_focus(area)) return;
  ImGui::FocusItem();
  ImGui::SetNavCursorVisible(true);
}

void want_press(std::string_view control) {
  look().press_wanted = control;
  look().press_asked = ImGui::GetFrameCount();
}

bool take_press(std::string_view control) {
  if (look().press_wanted != control || ImGui::GetFrameCount() - look().press_asked > 1) return false;
  look().press_wanted.clear();
  return true;
}

void keep_drawing(double seconds) {
  look().drawing_until = std::max(look().drawing_until, ImGui::GetTime() + seconds);
}

ImFont* font_of(Type type) {
  return look().fonts.*spec(type).font;
}

float font_size(Type type) {
  const TypeSpec s = spec(type);
  return s.em * (s.mono ? kJetBrainsMonoRatio : kInterRatio);
}

void push_type(Type type) {
  ImGui::PushFont(font_of(type), font_size(type));
}

float text_height(Type type) {
  return font_size(type) * look().scale;
}

float text_height(Type type, float em) {
  return text_height(type) * em / spec(type).em;
}

ImVec2 text_size(Type type, std::string_view text) {
  if (!is_plain(text) && text.find('\n') == std::string_view::npos)
    return {line_width(sized(type), text), text_height(type)};
  return font_of(type)->CalcTextSizeA(text_height(type), FLT_MAX, 0, text.data(), text.data() + text.size());
}

void draw_text(ImDrawList* list, ImVec2 pos, Type type, Colour colour, std::string_view text) {
  // At whole pixels, as fractional positions blur small text. Inside a disabled group, with the group's alpha.
  draw_line(list, {std::floor(pos.x), std::floor(pos.y)}, sized(type), ImGui::GetColorU32(colour), text);
  note_drawn(list, pos, type, text);
}

void note_drawn(const ImDrawList* list, ImVec2 pos, Type type, std::string_view text) {
  if (look().drawn == nullptr) return;
  const ImVec2 size = text_size(type, text);
  look().drawn->push_back(
      {std::string(text), pos, {pos.x + size.x, pos.y + size.y}, list->GetClipRectMin(), list->GetClipRectMax()});
}

void draw_text_middle(ImDrawList* list, float x, float y, Type type, Colour colour, std::string_view text) {
  draw_text(list, {x, y - text_height(type) * 0.5f}, type, colour, text);
}

std::string fitting(Type type, std::span<const std::string> pieces, float width) {
  std::string line;
  for (const std::string& piece : pieces) {
    const std::string longer = line.empty() ? piece : line + "  " + piece;
    if (text_size(type, longer).x > width) break;
    line = longer;
  }
  return line;
}

std::string first_fitting(Type type, std::initializer_list<std::string> wordings, float width) {
  for (const std::string& each : wordings)
    if (text_size(type, each).x <= width) return each;
  return elided(type, *(wordings.end() - 1), width);
}

std::string elided(Type type, std::string_view text, float width) {
  if (text_size(type, text).x <= width) return std::string(text);
  static constexpr std::string_view kEllipsis = "\u2026";
  const float room = width - text_size(type, kEllipsis).x;
  const char* end = text.data();
  if (room > 0) font_of(type)->CalcTextSizeA(text_height(type), room, 0, text.data(), text.data() + text.size(), &end);
  std::string_view kept = text.substr(0, static_cast<size_t>(end - text.data()));
  while (!kept.empty() && kept.back() == ' ') kept.remove_suffix(1);
  return std::string(kept) + std::string(kEllipsis);
}

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

namespace {

/// Moves a line break back to the last space, if the line has one. Dear ImGui also breaks after a quotation mark or a
/// full stop inside a word, which would cut '"word' and '3.14' apart.
const char* mend_break(const char* begin, const char* stop, const char* end) {
  if (stop <= begin + 1 || stop >= end || *stop == ' ' || stop[-1] == ' ') return stop;
  if (std::string_view(".,;!?\"").find(stop[-1]) == std::string_view::npos) return stop;
  const char* blank = stop - 1;
  while (blank > begin && *blank != ' ') --blank;
  while (blank > begin && blank[-1] == ' ') --blank;
  return blank > begin ? blank : stop;
}

}  // namespace

void TextBlock::layout(std::string_view text, Type type, float width) {
  const float size = text_height(type);
  const bool same_shape = width == width_ && size == size_;
  if (same_shape && text.size() == laid_out_) return;
  size_t start = 0;
  if (same_shape && text.size() > laid_out_ && !lines_.empty()) {
    // Lines are filled from left to right, so appended text can change only the last line.
    start = lines_.back().begin;
    lines_.pop_back();
  } else {
    lines_.clear();
    widest_ = 0;
  }
  width_ = width;
  size_ = size;
  laid_out_ = text.size();
  wrap_from(text, start, type);
}

void TextBlock::wrap_from(std::string_view text, size_t start, Type type) {
  const char* const base = text.data();
  const char* const end = base + text.size();
  const char* at = base + start;
  ImFont* font = font_of(type);
  const char* newline = nullptr;  // the end of the paragraph, which is looked for once: a paragraph may be very long
  while (at < end) {
    if (!newline || newline < at) newline = std::find(at, end, '\n');
    const char* stop = mend_break(at, font->CalcWordWrapPosition(size_, at, newline, width_), newline);
    if (stop == at && at < newline) {  // not even one character fits: take one all the same
      do ++stop;
      while (stop < newline && (static_cast<unsigned char>(*stop) & 0xC0) == 0x80);
    }
    lines_.push_back({static_cast<uint32_t>(at - base), static_cast<uint32_t>(stop - base)});
    widest_ = std::max(widest_, text_size(type, {at, static_cast<size_t>(stop - at)}).x);
    if (stop == newline) {
      at = newline + 1;
      if (newline < end && at == end)
        lines_.push_back({static_cast<uint32_t>(at - base), static_cast<uint32_t>(at - base)});
    } else {
      at = stop;
      while (at < newline && *at == ' ') ++at;  // spaces at a soft break are not drawn
    }
  }
  if (lines_.empty()) lines_.push_back({0, 0});
}

size_t TextBlock::byte_at(ImVec2 point, ImVec2 pos, std::string_view text, Type type, float pitch) const {
  if (lines_.empty() || point.y < pos.y) return 0;
  const size_t row = static_cast<size_t>((point.y - pos.y) / pitch);
  if (row >= lines_.size()) return lines_.back().end;
  const Line& line = lines_[row];
  float x = pos.x;
  for (size_t at = line.begin; at < line.end;) {
    size_t next = at + 1;
    while (next < line.end && (static_cast<unsigned char>(text[next]) & 0xC0) == 0x80) ++next;
    const float width = text_size(type, text.substr(at, next - at)).x;
    if (point.x < x + width * 0.5f) return at;
    x += width;
    at = next;
  }
  return line.end;
}

ImVec2 TextBlock::draw(ImDrawList* list, ImVec2 pos, std::string_view text, Type type, Colour colour,
                       float pitch) const {
  const ImVec2 clip_min = list->GetClipRectMin(), clip_max = list->GetClipRectMax();
  const float inset = (pitch - size_) * 0.5f;
  ImVec2 end = pos;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const float y = pos.y + pitch * static_cast<float>(i);
    const std::string_view line = text.substr(lines_[i].begin, lines_[i].end - lines_[i].begin);
    if (i + 1 == lines_.size()) end = {pos.x + text_size(type, line).x, y};
    if (y + pitch < clip_min.y || y > clip_max.y || line.empty()) continue;
    draw_text(list, {pos.x, y + inset}, type, colour, line);
  }
  return end;
}

}  // namespace canopy::app

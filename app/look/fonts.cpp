#include "app/look/fonts.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "app/picture/embedded_fonts.h"
#include "app/picture/font_face.h"

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

ImFont* add_font(std::span<const unsigned char> file, const char* name) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;  // the bytes belong to the program
  std::snprintf(config.Name, sizeof config.Name, "%s", name);
  return ImGui::GetIO().Fonts->AddFontFromMemoryTTF(const_cast<unsigned char*>(file.data()),
                                                    static_cast<int>(file.size()), 0.0f, &config);
}

/// Adds a system font to the current one. Glyphs are made when first shown, so a CJK font costs nothing until then.
void merge_system_font(const char* path, unsigned face) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  ImFontConfig config;
  config.MergeMode = true;
  config.FontNo = face;
  ImGui::GetIO().Fonts->AddFontFromFileTTF(path, 0.0f, &config);
}

void merge_other_scripts() {
  for (const SystemFont& font : other_scripts()) merge_system_font(font.path, font.face);
}

}  // namespace

FontSet load_fonts(bool system_fallback) {
  FontSet set;
  set.inter = add_font(embedded_font("Inter-Regular.otf"), "Inter");
  if (system_fallback) merge_other_scripts();
  set.inter_medium = add_font(embedded_font("Inter-Medium.otf"), "Inter Medium");
  set.inter_semibold = add_font(embedded_font("Inter-SemiBold.otf"), "Inter SemiBold");
  set.mono = add_font(embedded_font("JetBrainsMono-Regular.ttf"), "JetBrains Mono");
  set.mono_medium = add_font(embedded_font("JetBrainsMono-Medium.ttf"), "JetBrains Mono Medium");
  set.mono_semibold = add_font(embedded_font("JetBrainsMono-SemiBold.ttf"), "JetBrains Mono SemiBold");
  return set;
}

Look& look() {
  return *static_cast<Look*>(ImGui::GetIO().UserData);
}

float px(float length) {
  return std::round(length * look().scale);
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
  return font_of(type)->CalcTextSizeA(text_height(type), FLT_MAX, 0, text.data(), text.data() + text.size());
}

void draw_text(ImDrawList* list, ImVec2 pos, Type type, Colour colour, std::string_view text) {
  // At whole pixels, as fractional positions blur small text. Inside a disabled group, with the group's alpha.
  list->AddText(font_of(type), text_height(type), {std::floor(pos.x), std::floor(pos.y)}, ImGui::GetColorU32(colour),
                text.data(), text.data() + text.size());
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

}  // namespace canopy::app

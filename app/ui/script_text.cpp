#include "app/ui/script_text.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <unordered_map>

#include "app/platform/text_order.h"

namespace canopy::app {
namespace {

constexpr char32_t kReturn = 0x21B5;  // drawn by draw_word(), as wide as any letter of a typeface of equal widths

/// Dear ImGui knows glyphs by characters. Those that stand for several letters, or for a letter in one of its forms,
/// get values that no text holds: first those of surrogates, which keep its tables small, then unassigned ones.
class GlyphCodes {
 public:
  struct Named {
    const SystemFace* font;
    uint32_t glyph;
  };

  /// 0 when there are no more values.
  ImWchar code_of(const SystemFace* font, uint32_t glyph) {
    const auto [at, is_new] = codes_.try_emplace({font, glyph}, ImWchar{0});
    if (is_new && named_.size() < kFew + kMore) {
      const auto index = static_cast<ImWchar>(named_.size());
      at->second = index < kFew ? kFirst + index : kFirstMore + (index - kFew);
      named_.push_back({font, glyph});
    }
    return at->second;
  }
  const Named* find(ImWchar code) const {
    size_t index = named_.size();
    if (code >= kFirst && code < kFirst + kFew) index = code - kFirst;
    if (code >= kFirstMore && code < kFirstMore + kMore) index = size_t{kFew} + (code - kFirstMore);
    return index < named_.size() ? &named_[index] : nullptr;
  }

 private:
  static constexpr ImWchar kFirst = 0xD800, kFew = 0x800, kFirstMore = 0xE1000, kMore = 0xE000;
  struct Hash {
    size_t operator()(const std::pair<const SystemFace*, uint32_t>& key) const {
      return std::hash<const void*>()(key.first) * 31 + key.second;
    }
  };
  std::vector<Named> named_;
  std::unordered_map<std::pair<const SystemFace*, uint32_t>, ImWchar, Hash> codes_;
};

GlyphCodes& glyph_codes() {
  static GlyphCodes codes;
  return codes;
}

bool fonts_awaited = false;  // by a frame; the window has one thread

// What add_other_scripts() notes with the source of a font.
constexpr unsigned kWithSystemFonts = 0x100;
Face typeface_of(const ImFontConfig& source) {
  return static_cast<Face>(source.FontLoaderFlags & 0xFF);
}
const ImFontConfig& other_source(const ImFont* font) {
  return *font->Sources.back();
}
float em_of(SizedFont font) {
  return font.size * other_source(font.font).ExtraSizeScale;
}

bool has_system_fonts(const ImFontConfig& source) {
  if (!(source.FontLoaderFlags & kWithSystemFonts)) return false;
  if (system_fonts_known()) return true;
  fonts_awaited = true;
  return false;
}

/// White letters or coloured pixels, and where they stand.
struct Ink {
  GlyphPixels pixels;
  float advance = 0;  // pixels of the screen
};

Ink box_ink(char32_t c, float em) {
  const CodeBox box = code_box(c);
  const auto cell = static_cast<uint32_t>(std::max(1.0f, std::round(em * kCodeBoxCell)));
  Ink ink;
  GlyphPixels& p = ink.pixels;
  p.width = box.width * cell;
  p.height = box.height * cell;
  p.top = static_cast<float>((box.height - kCodeBoxBelow) * cell);
  p.pixels.assign(size_t{p.width} * p.height * 4, 0);
  for (const auto& [x0, y0, x1, y1] : box.filled)
    for (uint32_t y = y0 * cell; y < y1 * cell; ++y)
      std::fill_n(p.pixels.begin() + static_cast<long>((size_t{y} * p.width + x0 * cell) * 4), (x1 - x0) * cell * 4,
                  uint8_t{255});
  ink.advance = static_cast<float>((box.width + 1) * cell);
  return ink;
}

Ink ink_of(const ImFontConfig& source, ImWchar code, float em, bool only_advance) {
  Ink ink;
  const auto draw = [&](const SystemFace& font, uint32_t glyph) {
    ink.advance = font.advance(glyph) * em;
    if (!only_advance) ink.pixels = font.pixels(glyph, em);
  };
  if (const GlyphCodes::Named* named = glyph_codes().find(code)) {
    draw(*named->font, named->glyph);
    return ink;
  }
  const auto c = static_cast<char32_t>(code);
  if (is_invisible(c)) return ink;
  const SystemFace* font = has_system_fonts(source) ? system_face(c) : nullptr;
  if (font) {
    draw(*font, font->glyph_of(c));
  } else if (is_space(c)) {
    ink.advance = em * (c == 0x3000 ? 1 : 0.5f);
  } else if (fonts_awaited && (source.FontLoaderFlags & kWithSystemFonts)) {
    ink.advance = em * 0.6f;  // until the fonts are known
  } else {
    ink = box_ink(c, em);
  }
  return ink;
}

int glyph_index(ImFontAtlas*, ImFontConfig* source, ImWchar code) {
  const bool left_to_imgui = code < 0x80 || (code == kReturn && is_mono(typeface_of(*source)));
  return left_to_imgui ? 0 : static_cast<int>(code);
}

bool load_glyph(ImFontAtlas* atlas, ImFontConfig* source, ImFontBaked* baked, void*, int index, ImFontGlyph* out,
                float* advance) {
  const float density = source->RasterizerDensity * baked->RasterizerDensity;
  const float em = baked->Size * source->ExtraSizeScale * density;
  const Ink ink = ink_of(*source, static_cast<ImWchar>(index), em, advance != nullptr);
  if (advance) {
    *advance = ink.advance / density;
    return true;
  }
  out->AdvanceX = ink.advance / density;
  const GlyphPixels& p = ink.pixels;
  if (p.pixels.empty()) return true;
  const ImFontAtlasRectId place = ImFontAtlasPackAddRect(atlas, static_cast<int>(p.width), static_cast<int>(p.height));
  if (place == ImFontAtlasRectId_Invalid) return true;
  out->X0 = p.left / density;
  out->Y0 = baked->Ascent - p.top / density;
  out->X1 = out->X0 + static_cast<float>(p.width) / density;
  out->Y1 = out->Y0 + static_cast<float>(p.height) / density;
  out->Visible = true;
  out->Colored = p.coloured;
  out->PackId = place;
  ImFontAtlasBakedSetFontGlyphBitmap(atlas, baked, source, out, ImFontAtlasPackGetRect(atlas, place), p.pixels.data(),
                                     ImTextureFormat_RGBA32, static_cast<int>(p.width * 4));
  return true;
}

const ImFontLoader* other_scripts_loader() {
  static const ImFontLoader loader = [] {
    ImFontLoader made;
    made.Name = "other scripts";
    made.FontSrcGetGlyphIndexFromCodepoint = glyph_index;
    made.FontBakedLoadGlyph = load_glyph;
    return made;
  }();
  return &loader;
}

/// Calls f(code, x, y, first byte, advance) for the glyphs of a run from left to right, x and y from its upper left
/// corner; for letters that were put together once for each glyph. Returns its width.
template <class F>
float place_run(SizedFont font, std::string_view text, uint32_t begin, uint32_t end, bool rtl, F&& f) {
  const ImFontConfig& source = other_source(font.font);
  ImFontBaked* baked = font.font->GetFontBaked(font.size);
  const float scale = font.size / baked->Size, em = em_of(font);
  std::vector<FontRun> runs = font_runs(typeface_of(source), text, begin, end, has_system_fonts(source));
  if (rtl) std::reverse(runs.begin(), runs.end());
  float x = 0;
  for (const FontRun& run : runs) {
    if (run.shaped) {
      const auto shaped = run.font->shape(text.substr(run.begin, run.end - run.begin), rtl);
      for (const ShapedGlyph& glyph : *shaped) {
        f(glyph_codes().code_of(run.font, glyph.glyph), x + glyph.x * em, -glyph.y * em, run.begin + glyph.byte,
          glyph.advance * em, true);
        x += glyph.advance * em;
      }
      continue;
    }
    std::vector<uint32_t> letters;
    for (uint32_t at = run.begin; at < run.end; at += character_at(text, at).length) letters.push_back(at);
    if (rtl) std::reverse(letters.begin(), letters.end());
    for (const uint32_t at : letters) {
      const char32_t stored = character_at(text, at).c, c = rtl ? mirrored(stored) : stored;
      const bool hidden = c >= 0x80 && is_invisible(c);
      const float advance = hidden ? 0 : baked->GetCharAdvance(static_cast<ImWchar>(c)) * scale;
      if (!hidden) f(static_cast<ImWchar>(c), x, 0.0f, at, advance, false);
      x += advance;
    }
  }
  return x;
}

}  // namespace

void add_other_scripts(Face face, float em_ratio, bool system_fonts) {
  ImFontConfig config;
  config.MergeMode = true;
  config.FontLoader = other_scripts_loader();
  config.FontLoaderFlags = static_cast<unsigned>(face) | (system_fonts ? kWithSystemFonts : 0);
  config.ExtraSizeScale = 1 / em_ratio;
  std::snprintf(config.Name, sizeof config.Name, "other scripts");
  ImGui::GetIO().Fonts->AddFont(&config);
}

bool has_glyph(const ImFont* font, char32_t c) {
  const ImFontConfig& source = other_source(font);
  if (has_own_glyph(typeface_of(source), c) || is_invisible(c) || is_space(c)) return true;
  if (!(source.FontLoaderFlags & kWithSystemFonts)) return false;
  return !has_system_fonts(source) || system_face(c) != nullptr;
}

bool system_fonts_awaited() {
  return fonts_awaited;
}

bool system_fonts_arrived() {
  if (!fonts_awaited || !system_fonts_known()) return false;
  fonts_awaited = false;
  ImFontAtlasBuildDiscardBakes(ImGui::GetIO().Fonts, 0);
  return true;
}

float line_width(SizedFont font, std::string_view text) {
  if (is_plain(text) || text.find('\n') != std::string_view::npos)
    return font.font->CalcTextSizeA(font.size, FLT_MAX, 0, text.data(), text.data() + text.size()).x;
  float width = 0;
  for (const OrderedRun& run : ordered_runs(text, order_of(text), 0, static_cast<uint32_t>(text.size())))
    width += place_run(font, text, run.begin, run.end, run.rtl, [](auto...) {});
  return width;
}

void draw_line(ImDrawList* list, ImVec2 at, SizedFont font, ImU32 colour, std::string_view text) {
  if (is_plain(text) || text.find('\n') != std::string_view::npos) {
    list->AddText(font.font, font.size, at, colour, text.data(), text.data() + text.size());
    return;
  }
  for (const OrderedRun& run : ordered_runs(text, order_of(text), 0, static_cast<uint32_t>(text.size()))) {
    draw_run(list, at, font, colour, text, run.begin, run.end, run.rtl);
    at.x += place_run(font, text, run.begin, run.end, run.rtl, [](auto...) {});
  }
}

void draw_run(ImDrawList* list, ImVec2 at, SizedFont font, ImU32 colour, std::string_view text, uint32_t begin,
              uint32_t end, bool rtl) {
  const std::string_view run = text.substr(begin, end - begin);
  if (!rtl && is_plain(run)) {
    list->AddText(font.font, font.size, at, colour, run.data(), run.data() + run.size());
    return;
  }
  const auto flags = list->Flags;
  list->Flags |= ImDrawFlags_TextNoPixelSnap;  // letters that are joined must not be moved apart
  place_run(font, text, begin, end, rtl, [&](ImWchar code, float x, float y, uint32_t, float, bool) {
    if (code != 0) font.font->RenderChar(list, font.size, {at.x + x, std::round(at.y + y)}, colour, code);
  });
  list->Flags = flags;
}

void measure_shaped(SizedFont font, std::string_view text, uint32_t begin, uint32_t end, bool rtl,
                    std::vector<float>& advances) {
  if (is_plain(text.substr(begin, end - begin))) return;
  const ImFontConfig& source = other_source(font.font);
  for (const FontRun& run : font_runs(typeface_of(source), text, begin, end, has_system_fonts(source)))
    if (run.shaped) {
      std::fill(advances.begin() + run.begin, advances.begin() + run.end, 0.0f);
      for (const ShapedGlyph& glyph : *run.font->shape(text.substr(run.begin, run.end - run.begin), rtl))
        advances[run.begin + glyph.byte] += glyph.advance * em_of(font);
    }
}

}  // namespace canopy::app

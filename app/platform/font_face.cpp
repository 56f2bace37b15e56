#include "app/platform/font_face.h"

#include <utf8proc.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "app/platform/embedded_fonts.h"
#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/text/unicode.h"

#define STB_TRUETYPE_IMPLEMENTATION
#define STBTT_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include <stb/stb_truetype.h>
#pragma GCC diagnostic pop

namespace canopy::app {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

/// An opened font. Only read after it was opened, so that threads may share it.
struct OpenFont {
  stbtt_fontinfo info{};
  float per_unit = 0;  // em of one unit of the font

  bool open(const unsigned char* data, unsigned face) {
    const int offset = stbtt_GetFontOffsetForIndex(data, static_cast<int>(face));
    if (offset < 0 || !stbtt_InitFont(&info, data, offset)) return false;
    per_unit = stbtt_ScaleForMappingEmToPixels(&info, 1);
    return true;
  }
  int glyph(char32_t character) const { return stbtt_FindGlyphIndex(&info, static_cast<int>(character)); }
};

const OpenFont& font_of_face(Face face) {
  static const std::array<OpenFont, 6> fonts = [] {
    constexpr const char* files[] = {"Inter-Regular.otf",        "Inter-Medium.otf",
                                     "Inter-SemiBold.otf",       "JetBrainsMono-Regular.ttf",
                                     "JetBrainsMono-Medium.ttf", "JetBrainsMono-SemiBold.ttf"};
    std::array<OpenFont, 6> opened;
    for (size_t i = 0; i < opened.size(); ++i)
      if (!opened[i].open(embedded_font(files[i]).data(), 0))
        throw Error(ErrorKind::unavailable, std::string("The font ") + files[i] + " in this program cannot be read.");
    return opened;
  }();
  return fonts[static_cast<size_t>(face)];
}

/// The system's fonts that are there, opened once.
class SystemFonts {
 public:
  static const SystemFonts& get() {
    static const SystemFonts fonts;
    return fonts;
  }
  const OpenFont* with(char32_t character) const {
    for (const auto& font : fonts_)
      if (font->glyph(character) > 0) return font.get();
    return nullptr;
  }

 private:
  SystemFonts() {
    for (const SystemFont& each : other_scripts()) {
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(each.path, ignored)) continue;
      try {
        MappedFile file = MappedFile::open(each.path);
        auto font = std::make_unique<OpenFont>();
        if (!font->open(reinterpret_cast<const unsigned char*>(file.bytes().data()), each.face)) continue;
        files_.push_back(std::move(file));
        fonts_.push_back(std::move(font));
      } catch (const Error&) {  // that cannot be read: as if it were not there
      }
    }
  }
  std::vector<MappedFile> files_;
  std::vector<std::unique_ptr<OpenFont>> fonts_;
};

/// The room of a character that the program's fonts lack, in em.
float foreign_advance(Face face, char32_t character) {
  const int cells = utf8proc_charwidth(static_cast<utf8proc_int32_t>(character));
  if (cells <= 0) return 0;
  return is_mono(face) ? 0.6f * static_cast<float>(cells) : cells == 1 ? 0.6f : 1;
}

float advance_of(Face face, char32_t character) {
  const OpenFont& font = font_of_face(face);
  const int glyph = font.glyph(character);
  if (glyph == 0) return foreign_advance(face, character);
  int advance = 0, bearing = 0;
  stbtt_GetGlyphHMetrics(&font.info, glyph, &advance, &bearing);
  return static_cast<float>(advance) * font.per_unit;
}

using Contours = std::vector<std::vector<std::pair<float, float>>>;

/// Collects contours, cutting curves into lines.
class Outliner {
 public:
  Outliner(float scale, float pixels, Contours& out) : scale_(scale), pixels_(pixels), out_(out) {}

  void take(const stbtt_vertex& v) {
    const std::pair<float, float> to = at(v.x, v.y);
    switch (v.type) {
      case STBTT_vmove: out_.push_back({to}); break;
      case STBTT_vline: out_.back().push_back(to); break;
      case STBTT_vcurve: quadratic(at(v.cx, v.cy), to); break;
      case STBTT_vcubic: cubic(at(v.cx, v.cy), at(v.cx1, v.cy1), to); break;
      default: break;
    }
  }

 private:
  using Spot = std::pair<float, float>;
  Spot at(short x, short y) const { return {static_cast<float>(x) * scale_, -static_cast<float>(y) * scale_}; }
  int pieces(Spot from, Spot to) const {
    const float length = (std::abs(to.first - from.first) + std::abs(to.second - from.second)) * pixels_;
    return length < 2 ? 2 : length < 8 ? 4 : 8;
  }
  void quadratic(Spot c, Spot to) {
    const Spot from = out_.back().back();
    const int n = pieces(from, to);
    for (int i = 1; i <= n; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(n), s = 1 - t;
      out_.back().push_back({s * s * from.first + 2 * s * t * c.first + t * t * to.first,
                             s * s * from.second + 2 * s * t * c.second + t * t * to.second});
    }
  }
  void cubic(Spot c, Spot d, Spot to) {
    const Spot from = out_.back().back();
    const int n = pieces(from, to);
    for (int i = 1; i <= n; ++i) {
      const float t = static_cast<float>(i) / static_cast<float>(n), s = 1 - t;
      const float a = s * s * s, b = 3 * s * s * t, e = 3 * s * t * t, f = t * t * t;
      out_.back().push_back({a * from.first + b * c.first + e * d.first + f * to.first,
                             a * from.second + b * c.second + e * d.second + f * to.second});
    }
  }

  float scale_, pixels_;
  Contours& out_;
};

void outline(const OpenFont& font, int glyph, float pixels, Contours& out) {
  stbtt_vertex* vertices = nullptr;
  const int count = stbtt_GetGlyphShape(&font.info, glyph, &vertices);
  Outliner outliner(font.per_unit, pixels, out);
  for (int i = 0; i < count; ++i)
    if (vertices[i].type == STBTT_vmove || !out.empty()) outliner.take(vertices[i]);
  stbtt_FreeShape(&font.info, vertices);
}

/// A frame in place of a character that no font here has.
void outline_unknown(float advance, Contours& out) {
  const float a = 0.08f * advance, b = 0.92f * advance, top = -0.72f, line = 0.05f;
  out.push_back({{a, 0}, {b, 0}, {b, top}, {a, top}});
  out.push_back({{a + line, -line}, {a + line, top + line}, {b - line, top + line}, {b - line, -line}});
}

}  // namespace

std::span<const SystemFont> other_scripts() {
  static constexpr SystemFont fonts[] = {{"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", 0},
                                         {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf", 0},
                                         {"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", 0},
                                         {"/usr/share/fonts/truetype/noto/NotoSansSymbols2-Regular.ttf", 0}};
  return fonts;
}

std::vector<char32_t> characters_of(std::string_view text) {
  std::vector<char32_t> characters;
  while (!text.empty()) {
    const Utf8Unit unit = next_utf8(text);
    utf8proc_int32_t value = 0;
    const bool valid =
        unit.kind == Utf8Kind::valid && utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                         static_cast<utf8proc_ssize_t>(unit.length), &value) > 0;
    characters.push_back(valid ? static_cast<char32_t>(value) : kReplacement);
    text.remove_prefix(unit.length);
  }
  return characters;
}

float text_width(Face face, float em, std::string_view text) {
  float width = 0;
  for (const char32_t character : characters_of(text)) width += advance_of(face, character);
  return width * em;
}

std::string text_within(Face face, float em, std::string_view text, float width) {
  if (text_width(face, em, text) <= width) return to_valid_utf8(text);
  static constexpr std::string_view kEllipsis = "\u2026";
  float left = width / em - advance_of(face, U'\u2026');
  std::string kept;
  while (!text.empty()) {
    const Utf8Unit unit = next_utf8(text);
    const std::string_view character = text.substr(0, unit.length);
    left -= text_width(face, 1, character);
    if (left < 0) break;
    kept += to_valid_utf8(character);
    text.remove_prefix(unit.length);
  }
  while (kept.ends_with(' ')) kept.pop_back();
  return kept + std::string(kEllipsis);
}

Glyph glyph_of(Face face, char32_t character, float pixels) {
  Glyph glyph;
  glyph.advance = advance_of(face, character);
  const OpenFont& font = font_of_face(face);
  if (const int index = font.glyph(character); index > 0) {
    outline(font, index, pixels, glyph.contours);
  } else if (const OpenFont* other = glyph.advance > 0 ? SystemFonts::get().with(character) : nullptr) {
    outline(*other, other->glyph(character), pixels, glyph.contours);
    int advance = 0, bearing = 0;
    stbtt_GetGlyphHMetrics(&other->info, other->glyph(character), &advance, &bearing);
    const float own = static_cast<float>(advance) * other->per_unit;
    // In the middle of its room, and no wider than that.
    const float shrink = own > glyph.advance ? glyph.advance / own : 1, shift = (glyph.advance - own * shrink) * 0.5f;
    for (auto& contour : glyph.contours)
      for (auto& [x, y] : contour) x = x * shrink + shift, y *= shrink;
  } else if (glyph.advance > 0) {
    outline_unknown(glyph.advance, glyph.contours);
  }
  return glyph;
}

}  // namespace canopy::app

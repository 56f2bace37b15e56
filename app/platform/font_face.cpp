#include "app/platform/font_face.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "app/platform/embedded_fonts.h"
#include "app/platform/text_order.h"
#include "engine/base/error.h"
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
  int glyph(char32_t character) const {
    return is_private(character) ? 0 : stbtt_FindGlyphIndex(&info, static_cast<int>(character));
  }
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

/// The room of each character of a text, in em, by character. Emoji that are put together take that of one.
std::vector<float> advances_of(Face face, const std::vector<char32_t>& characters) {
  std::vector<float> advances;
  for (size_t i = 0; i < characters.size(); ++i) {
    const char32_t c = characters[i], before = i > 0 ? characters[i - 1] : 0;
    const bool joined = before == 0x200D && c >= 0x2000, tone = c >= 0x1F3FB && c <= 0x1F3FF;
    const bool coloured = i + 1 < characters.size() && characters[i + 1] == 0xFE0F;
    const float own = joined || tone ? 0 : advance_of(face, c);
    advances.push_back(coloured && own > 0 ? std::max(own, is_mono(face) ? 1.2f : 1.0f) : own);
  }
  return advances;
}

using Contours = std::vector<std::vector<std::pair<float, float>>>;

/// Collects contours, cutting curves into lines.
class Outliner {
 public:
  Outliner(float pixels, Contours& out) : pixels_(pixels), out_(out) {}

  void take(const OutlineStep& step) {
    if (step.kind != OutlineStep::Kind::move && out_.empty()) return;
    const Spot to = {step.x, -step.y}, c = {step.cx, -step.cy}, d = {step.dx, -step.dy};
    switch (step.kind) {
      case OutlineStep::Kind::move: out_.push_back({to}); break;
      case OutlineStep::Kind::line: out_.back().push_back(to); break;
      case OutlineStep::Kind::quadratic: quadratic(c, to); break;
      case OutlineStep::Kind::cubic: cubic(c, d, to); break;
    }
  }

 private:
  using Spot = std::pair<float, float>;
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

  float pixels_;
  Contours& out_;
};

void outline(const OpenFont& font, int glyph, float pixels, Contours& out) {
  stbtt_vertex* vertices = nullptr;
  const int count = stbtt_GetGlyphShape(&font.info, glyph, &vertices);
  Outliner outliner(pixels, out);
  const auto em = [&](short units) { return static_cast<float>(units) * font.per_unit; };
  for (int i = 0; i < count; ++i) {
    const stbtt_vertex& v = vertices[i];
    using Kind = OutlineStep::Kind;
    const Kind kind = v.type == STBTT_vmove    ? Kind::move
                      : v.type == STBTT_vline  ? Kind::line
                      : v.type == STBTT_vcurve ? Kind::quadratic
                                               : Kind::cubic;
    outliner.take({kind, em(v.x), em(v.y), em(v.cx), em(v.cy), em(v.cx1), em(v.cy1)});
  }
  stbtt_FreeShape(&font.info, vertices);
}

Glyph system_glyph(const SystemFace& font, uint32_t index, float pixels) {
  Glyph glyph;
  Outliner outliner(pixels, glyph.contours);
  for (const OutlineStep& step : font.outline(index)) outliner.take(step);
  if (glyph.contours.empty() && font.place().coloured)
    glyph.coloured = std::make_shared<GlyphPixels>(font.pixels(index, pixels));
  return glyph;
}

/// The contours of a box with the code of a character, in `room` em.
void outline_code(char32_t character, float room, Contours& out) {
  const CodeBox box = code_box(character);
  const float whole = static_cast<float>(box.width + 1), cell = std::min(kCodeBoxCell, room / whole);
  const float left = (room - static_cast<float>(box.width) * cell) * 0.5f;
  for (const auto& [x0, y0, x1, y1] : box.filled) {
    const auto x = [&](uint32_t cells) { return left + static_cast<float>(cells) * cell; };
    const auto y = [&](uint32_t cells) {
      return (static_cast<float>(cells) - static_cast<float>(box.height - kCodeBoxBelow)) * cell;
    };
    out.push_back({{x(x0), y(y0)}, {x(x1), y(y0)}, {x(x1), y(y1)}, {x(x0), y(y1)}});
  }
}

/// Whether the text asks for the coloured picture of the character that ends there.
bool asks_for_emoji(std::string_view text, uint32_t after, uint32_t end) {
  return after < end && character_at(text, after).c == 0xFE0F;
}

}  // namespace

bool has_own_glyph(Face face, char32_t character) {
  return font_of_face(face).glyph(character) > 0;
}

std::vector<FontRun> font_runs(Face face, std::string_view text, uint32_t begin, uint32_t end, bool system) {
  std::vector<FontRun> runs;
  for (uint32_t at = begin; at < end;) {
    const Character each = character_at(text, at);
    const uint32_t next = std::min(at + each.length, end);
    FontRun run{at, next, nullptr, false};
    const FontRun* before = runs.empty() ? nullptr : &runs.back();
    const bool belongs = before && before->shaped && stays_with_letter(each.c);
    if (belongs && (is_invisible(each.c) || before->font->has(each.c))) {
      run.font = before->font;  // HarfBuzz knows what to do with a joiner that the font lacks
      run.shaped = true;
    } else if (const SystemFace* emoji = system && asks_for_emoji(text, next, end) ? emoji_face(each.c) : nullptr) {
      run.font = emoji;
      run.shaped = true;
    } else if (system && each.c >= 0x80 && !is_invisible(each.c) && !has_own_glyph(face, each.c)) {
      run.font = system_face(each.c);
      run.shaped = run.font && needs_shaping(each.c);
    }
    if (before && before->font == run.font && before->shaped == run.shaped)
      runs.back().end = next;
    else
      runs.push_back(run);
    at = next;
  }
  return runs;
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
  for (const float advance : advances_of(face, characters_of(text))) width += advance;
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

std::vector<PlacedGlyph> glyphs_of(Face face, std::string_view foreign, float pixels) {
  const std::string text = to_valid_utf8(foreign);
  const std::vector<float> room_of = advances_of(face, characters_of(text));
  std::vector<float> room(text.size() + 1, 0);  // by byte
  for (size_t at = 0, i = 0; at < text.size(); at += character_at(text, at).length) room[at] = room_of[i++];
  std::vector<PlacedGlyph> placed;
  float x = 0;
  // In the middle of its room, and no wider than that. Words from right to left keep their spaces: all of them together
  // are put beside what comes before them, which may be a bracket that they close.
  bool together = false;
  const auto place = [&](float own, float width, auto&& put) {
    if (together) {
      put(x, 1.0f);
      x += own;
      return;
    }
    const float shrunk = own > width ? width / own : 1;
    put(x + (width - own * shrunk) * 0.5f, shrunk);
    x += width;
  };
  const auto put_letter = [&](const FontRun& run, uint32_t at, bool rtl) {
    const char32_t stored = character_at(text, at).c, c = rtl ? mirrored(stored) : stored;
    if (room[at] <= 0 && (is_invisible(c) || !has_own_glyph(face, c))) return;
    if (run.font) {
      const uint32_t index = run.font->glyph_of(c);
      return place(run.font->advance(index), room[at], [&](float left, float shrunk) {
        placed.push_back({left, 0, shrunk, system_glyph(*run.font, index, pixels)});
      });
    }
    PlacedGlyph& own = placed.emplace_back();
    own.x = x;
    if (const int index = font_of_face(face).glyph(c); index > 0)
      outline(font_of_face(face), index, pixels, own.glyph.contours);
    else if (!is_space(c))
      outline_code(c, room[at], own.glyph.contours);
    x += room[at];
  };
  const auto put_shaped = [&](const FontRun& run, bool rtl) {
    const auto shaped = run.font->shape(std::string_view(text).substr(run.begin, run.end - run.begin), rtl);
    float own = 0, width = 0;
    for (const ShapedGlyph& glyph : *shaped) own += glyph.advance;
    for (uint32_t at = run.begin; at < run.end; ++at) width += room[at];
    place(own, width, [&](float left, float shrunk) {
      for (const ShapedGlyph& glyph : *shaped) {
        placed.push_back(
            {left + glyph.x * shrunk, -glyph.y * shrunk, shrunk, system_glyph(*run.font, glyph.glyph, pixels)});
        left += glyph.advance * shrunk;
      }
    });
  };
  for (const OrderedRun& line : ordered_runs(text, order_of(text), 0, static_cast<uint32_t>(text.size()))) {
    const size_t first = placed.size();
    const float left = x;
    together = line.rtl;
    std::vector<FontRun> runs = font_runs(face, text, line.begin, line.end);
    if (line.rtl) std::reverse(runs.begin(), runs.end());
    for (const FontRun& run : runs) {
      if (run.shaped) {
        put_shaped(run, line.rtl);
        continue;
      }
      std::vector<uint32_t> letters;
      for (uint32_t at = run.begin; at < run.end; at += character_at(text, at).length) letters.push_back(at);
      if (line.rtl) std::reverse(letters.begin(), letters.end());
      for (const uint32_t at : letters) put_letter(run, at, line.rtl);
    }
    if (!line.rtl) continue;
    float width = 0;
    for (uint32_t at = line.begin; at < line.end; ++at) width += room[at];
    const float own = x - left, shrunk = own > width ? width / own : 1;
    const float shift = first > 0 ? 0 : width - own * shrunk;  // at the beginning: beside what comes after them
    for (size_t i = first; i < placed.size(); ++i) {
      placed[i].x = left + shift + (placed[i].x - left) * shrunk;
      placed[i].y *= shrunk;
      placed[i].shrunk *= shrunk;
    }
    x = left + width;
  }
  return placed;
}

CodeBox code_box(char32_t character) {
  // Three cells wide and five high, the uppermost row first.
  static constexpr uint16_t kDigits[] = {0b111101101101111, 0b010110010010111, 0b111001111100111, 0b111001111001111,
                                         0b101101111001001, 0b111100111001111, 0b111100111101111, 0b111001010010010,
                                         0b111101111101111, 0b111101111001111, 0b010101111101101, 0b110101110101110,
                                         0b011100100100011, 0b110101101101110, 0b111100111100111, 0b111100111100100};
  char code[12];
  const int length = std::snprintf(code, sizeof code, "%04X", static_cast<unsigned>(character));
  const auto columns = static_cast<uint32_t>((length + 1) / 2);
  CodeBox box;
  box.width = columns * 4 + 3;
  box.height = 15;
  box.filled = {{0, 0, box.width, 1},
                {0, box.height - 1, box.width, box.height},
                {0, 1, 1, box.height - 1},
                {box.width - 1, 1, box.width, box.height - 1}};
  for (uint32_t i = 0; i < static_cast<uint32_t>(length); ++i) {
    const auto digit = static_cast<size_t>(code[i] <= '9' ? code[i] - '0' : code[i] - 'A' + 10);
    // Five digits: three above two, so that they are read in order.
    const uint32_t left = 2 + i % columns * 4, top = 2 + i / columns * 6;
    for (uint32_t cell = 0; cell < 15; ++cell)
      if (kDigits[digit] >> (14 - cell) & 1) {
        const uint32_t x = left + cell % 3, y = top + cell / 3;
        box.filled.push_back({x, y, x + 1, y + 1});
      }
  }
  return box;
}

}  // namespace canopy::app

#pragma once
// The fonts of the system, for what the program's own typefaces lack: found by fontconfig, their letters put together
// by HarfBuzz and drawn by FreeType. Any thread may call all of this.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::app {

/// A glyph of a text that was put together. Lengths are in em, y upward.
struct ShapedGlyph {
  uint32_t glyph = 0;
  uint32_t byte = 0;  // of the text: the first one of the letters that it stands for
  float advance = 0, x = 0, y = 0;
};

/// A glyph in pixels.
struct GlyphPixels {
  uint32_t width = 0, height = 0;
  float left = 0, top = 0;      // of its upper left corner, from the pen to the right and from the baseline upward
  bool coloured = false;        // else white, to be tinted
  std::vector<uint8_t> pixels;  // RGBA, alpha apart from the colours
};

/// One step of the outline of a glyph, in em, y upward. A curve has one control or two, and its end.
struct OutlineStep {
  enum class Kind : uint8_t { move, line, quadratic, cubic };
  Kind kind = Kind::move;
  float x = 0, y = 0, cx = 0, cy = 0, dx = 0, dy = 0;
};

/// A font file and one of its faces. It is opened when something is asked of it for the first time.
class SystemFace {
 public:
  struct Place {
    std::string path;
    unsigned index = 0;     // the face in the file; above the lower 16 bits one of its named variations, from 1
    bool coloured = false;  // as emoji are
  };
  /// characters: first and last of each range that the font has, rising.
  SystemFace(Place place, std::vector<std::pair<char32_t, char32_t>> characters);
  ~SystemFace();
  SystemFace(const SystemFace&) = delete;
  SystemFace& operator=(const SystemFace&) = delete;

  const Place& place() const { return place_; }
  bool has(char32_t c) const;
  /// The glyph of a character; 0 without one.
  uint32_t glyph_of(char32_t c) const;
  float advance(uint32_t glyph) const;  // em
  /// The glyphs of some letters, from left to right. Kept, so that a text in view costs one look-up in each frame.
  std::shared_ptr<const std::vector<ShapedGlyph>> shape(std::string_view letters, bool rtl) const;
  /// The glyph where letters are `em` pixels high; nothing for a blank.
  GlyphPixels pixels(uint32_t glyph, float em) const;
  /// Empty for a glyph that is made of pixels.
  std::vector<OutlineStep> outline(uint32_t glyph) const;

 private:
  struct Open;
  Open& open() const;

  Place place_;
  std::vector<std::pair<char32_t, char32_t>> characters_;
  mutable std::unique_ptr<Open> open_;
};

/// Whether the system's fonts are known. If not, they are looked for beside, from the first call on: some milliseconds,
/// but seconds where fontconfig must read all files anew.
bool system_fonts_known();
void wait_for_system_fonts();
/// The font for a character; null if none has it. Waits until they are known.
const SystemFace* system_face(char32_t c);
/// The font with the coloured picture of a character that has a letter too; null if there is none.
const SystemFace* emoji_face(char32_t c);

/// A sentence that says which scripts these characters are of, which no font has, and what to install for them; empty
/// for none.
std::string missing_fonts_note(const std::vector<uint32_t>& characters);

}  // namespace canopy::app

#pragma once
// Some rounds as a picture that moves: the tree grows, is checked and lights up, and its words come into the text.

#include <optional>
#include <string>
#include <vector>

#include "app/export/picture.h"
#include "app/export/round_picture.h"
#include "app/export/shared_run.h"

namespace canopy::app {

// The last lines of a reply as it stands at a round, with the marks of the chat: what was guessed and confirmed has a
// tint, the big model's own tokens a dotted line.

class TextStrip {
 public:
  /// For a strip of this width, in pixels. The run must outlive it.
  TextStrip(const SharedRun& run, float width);

  /// Draws the text up to this round of the log, or with `told` false up to the one before it, in `lines` lines from
  /// `corner` on.
  void draw(Picture& picture, const Theme& theme, Point corner, size_t lines, size_t round, bool told) const;

  static constexpr float kLine = 21, kEm = 13;

 private:
  struct Piece {
    std::string text;  // without line breaks
    size_t line = 0, column = 0, columns = 0;
    int64_t round = 0;  // of the log; that before the first where it came with the prompt
    TokenSource source = TokenSource::ar;
    bool marked = false;
  };
  void add(const SharedReply& reply);
  void place(const std::string& text, int64_t round, TokenSource source, bool marked);

  std::vector<Piece> pieces_;
  std::vector<size_t> first_piece_;  // of each reply
  std::vector<size_t> first_round_;  // likewise
  size_t per_line_ = 0, line_ = 0, column_ = 0;
};

/// Rounds of the longest animation, and of one of which nothing else was said.
inline constexpr size_t kMostAnimatedRounds = 60, kAnimatedRounds = 10;

/// An SVG file that moves by style alone, without a script. Without a theme it has the dark and the light one. Throws
/// cancelled, and what RoundCard throws.
std::string animated_svg(const SharedRun& run, const RoundRange& range, std::optional<ThemeKind> theme,
                         const PictureSize& size, const ShareCallbacks& callbacks = {});

}  // namespace canopy::app

#pragma once
// The last lines of a reply as it stands at a round, with the marks of the chat: what was guessed and confirmed has a
// tint, the big model's own tokens a dotted line.

#include <string>
#include <vector>

#include "app/picture/picture.h"
#include "app/share/shared_run.h"

namespace canopy::app {

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

}  // namespace canopy::app

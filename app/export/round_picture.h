#pragma once
// A round as a picture by itself: what it was, its tree, and what its states mean.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/export/picture.h"
#include "app/state/rounds.h"
#include "app/state/settings.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_look.h"

namespace canopy::app {

// The tree of a round drawn into a picture: the shapes and words of the window's tree.

struct TreeDrawing {
  const TreeModel& tree;
  const TreeGeometry& geometry;            // arranged at a scale of 1
  const TreeReveal& reveal;                // what of it is seen
  const std::vector<std::string>& labels;  // [nodes]
  const Theme& theme;
  Point origin = {};  // upper left corner of the canvas in the picture
};

/// "so far", "next token", "2nd" ... and where each begins above a canvas of this width, as far as there is room.
std::vector<std::pair<float, std::string>> placed_depths(const TreeGeometry& geometry, float width);

/// Draws "so far", "next token", "2nd" ... above the columns of a canvas of this width.
void draw_depth_line(Picture& picture, const TreeDrawing& drawing, float width);

/// Draws limbs, tufts and words.
void draw_tree(Picture& picture, const TreeDrawing& drawing);

/// Draws the badge of a state: check mark, cross, dot or star; nothing for the root. reach: radius of the disc of the
/// check mark.
void draw_badge(Picture& picture, const Theme& theme, NodeFate fate, Point centre, float reach, Colour ground,
                float strength = 1);

/// Writes a word of the tree with its middle at height y, cut to `room` pixels; a line break is drawn as a return sign.
/// Returns its width.
float write_word(Picture& picture, Point left_middle, Face face, float em, Colour colour, const std::string& label,
                 float room);

/// [nodes] widths of labels for TreeScene::label_width, at a scale of 1.
std::vector<float> label_widths(const std::vector<std::string>& labels);

// The round by itself.

struct PictureSize {
  uint32_t width = 1280, height = 720;
};
inline constexpr PictureSize kSmallestPicture = {480, 240}, kLargestRoundPicture = {7680, 4320};

/// Throws bad_input naming what is allowed. more: pixels below the round itself.
void check_picture_size(const PictureSize& size, uint32_t more = 0);

/// A moment of a round: all of it, or in slow motion.
struct RoundMoment {
  Phase phase = Phase::commit;
  float progress = 1;
};

/// A round, laid out to be drawn at several moments and in several colours.
class RoundCard {
 public:
  /// Throws bad_input for a size that check_picture_size() refuses, and where the log has no such round or no longer
  /// has its tree.
  RoundCard(const RoundLog& log, size_t round, const PictureSize& size);

  void draw(Picture& picture, ThemeKind theme, const RoundMoment& moment = {}) const;
  const RoundRecord& record() const { return *record_; }
  /// What is seen, as a sentence for those who cannot: "Pass 12 of 40. Four guesses were right, ..."
  std::string words() const;
  const std::string& title() const { return title_; }
  const PictureSize& size() const { return size_; }

 private:
  void draw_title(Picture& picture, const Theme& theme) const;
  void draw_caption(Picture& picture, const Theme& theme, const RoundMoment& moment) const;
  void draw_legend(Picture& picture, const Theme& theme, const TreeReveal& reveal) const;
  void draw_chain_note(Picture& picture, const Theme& theme) const;

  std::shared_ptr<const RoundRecord> record_;
  size_t round_, rounds_;
  PictureSize size_;
  std::string title_;  // model, drafter and device
  std::string times_;  // where they come from, if they were not recorded
  TreeModel tree_;
  std::vector<std::string> labels_;
  TreeGeometry geometry_;
};

/// An SVG file of a card. Without a theme it has the dark and the light one, and shows what its reader prefers.
std::string svg_of_card(const RoundCard& card, std::optional<ThemeKind> theme);

/// A PNG file of a card, `scale` pixels for each of its size. Throws what rasterize() throws.
std::string png_of_card(const RoundCard& card, ThemeKind theme, float scale = 1);

/// The same of a round that is laid out for it. Throws what RoundCard throws too.
std::string round_svg(const RoundLog& log, size_t round, std::optional<ThemeKind> theme, const PictureSize& size);
std::string round_png(const RoundLog& log, size_t round, ThemeKind theme, const PictureSize& size, float scale = 1);

}  // namespace canopy::app

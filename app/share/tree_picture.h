#pragma once
// The tree of a round drawn into a picture: the shapes and words of the window's tree (look/watch.md, "Tree").

#include <string>
#include <utility>
#include <vector>

#include "app/layout/tree_look.h"
#include "app/picture/picture.h"

namespace canopy::app {

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

}  // namespace canopy::app

#pragma once
// Positions of a tree's words, tufts and limbs in pixels of a canvas, its zoom, and which places of the canvas it
// takes.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/tree/tree_model.h"
#include "app/tree/tree_words.h"

namespace canopy::app {

// Points and rectangles of a canvas, in pixels; y grows downward.

struct TreePoint {
  float x = 0, y = 0;
  bool operator==(const TreePoint&) const = default;
};

struct TreeRect {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool contains(TreePoint p) const { return p.x >= x0 && p.x <= x1 && p.y >= y0 && p.y <= y1; }
  bool overlaps(const TreeRect& o) const { return x0 < o.x1 && o.x0 < x1 && y0 < o.y1 && o.y0 < y1; }
};

// Positions of a tree's words, tufts and limbs in pixels of a canvas. Pure: drawing, pointing, the small map and tests
// all use it.

/// Which part of a tree is visible, and at which size.
struct TreeZoom {
  bool fit = true;   // show all of it; the other fields are ignored
  float factor = 1;  // size against that of `fit`, at least 1: a larger tree has more words, then larger ones
  TreePoint root;    // position of the root on the canvas, in pixels at 100%
  bool operator==(const TreeZoom&) const = default;
};

struct CanvasSize {
  float width = 0, height = 0;  // pixels
  float scale = 1;              // pixels for each unit of the design
  bool operator==(const CanvasSize&) const = default;
};

/// A node in pixels on the canvas. x: the left edge of its pill, where the badge is; y: its middle. A node without a
/// word is where its tuft begins.
struct NodeBox {
  float x = 0, y = 0;
  float width = 0;       // of the pill; 0 without a word
  float label_room = 0;  // for the word in the pill
  float figure = 0;      // of `width`, for the percentage, which an undecided node does not have
  bool named = false;    // drawn with its word
};

struct TuftBox {
  float x = 0, y = 0;  // where the twigs begin
  float length = 0;    // of the longest twig
  float reach = 0;     // of the outermost twigs to either side
  uint32_t twigs = 0;
  float label_x = 0, label_width = 0;
};

/// A branch from a named node to a named child or to the node's tuft. It runs level, `offset` pixels below the parent's
/// middle, to the end of the parent's column, then in a curve with level ends.
struct Limb {
  uint32_t parent = 0;
  uint32_t child = 0;  // a node, or the index of a tuft
  bool to_tuft = false;
  float offset = 0;  // pixels: children share the end of their parent's limb, from the top down
  float begin = 0;   // thickness there: t min(1, T / sum of t)
  float end = 0;     // thickness t = max(1, 22 sqrt(path probability)) at the child
};

struct TreeGeometry {
  float factor = 1;       // of the zoom
  float pitch = 0;        // height of a row in pixels
  float text = 13;        // height of words at 100%, before text_scale
  float text_scale = 1;   // besides the scale of the canvas
  float pill_height = 0;  // pixels
  bool figures = true;    // accepted and rejected nodes show their probability
  TreeColumns columns;
  TreeWords words;
  std::vector<NodeBox> nodes;
  std::vector<TuftBox> tufts;  // [words.tufts]
  std::vector<Limb> limbs;
  TreeRect bounds;  // of everything
  // Free room below the likeliest child at the node where the accepted path leaves it, for the note that a chain ends
  // there; and that child.
  std::optional<TreeRect> chain_note;
  uint32_t chain_end = 0;

  float left = 0;  // of the first column on the canvas
  float column_end(uint32_t depth) const { return left + columns.x[depth] + columns.width[depth]; }
  /// Whether everything lies on a canvas of this size.
  bool inside(const CanvasSize& canvas) const;
};

/// The design's lengths at 100%.
namespace tree_design {
inline constexpr float pad_left = 12, pad_right = 8, badge = 6.5f, figure_text = 10, figure_gap = 7;
inline constexpr float gap = 30, tight_gap = 16, shortest_word = 24;
inline constexpr float least_with_figures = 44;  // of room for words; with less they stand without percentages
inline constexpr float top = 28, bottom = 10, side = 14;
inline constexpr float least_pitch = 20;  // of optional words
inline constexpr float due_pitch = 15;    // of words that are never left out; below it the tree exceeds the canvas
inline constexpr float tallest_pitch = 46, pill = 23, wide_pill = 18;
inline constexpr uint32_t wide_from = 65;  // nodes from which pills and words are smaller
inline constexpr float grand_from = 900;   // height of the canvas from which limbs and words are larger
inline constexpr float chars = 0.6f;       // width of a character of the monospaced type, of its height
inline constexpr float found_room = 8;     // of the corner behind the label of a tuft with words found in the text
inline constexpr float most_zoom = 24;
inline constexpr uint32_t most_twigs = 32, most_twigs_together = 200;
}  // namespace tree_design

/// The input of arrange(): the tree and the canvas it is drawn on.
struct TreeScene {
  const TreeModel& tree;
  std::span<const float> label_width;  // [nodes] pixels on the canvas, of words set in 12 px
  CanvasSize canvas;
  bool chain_note = false;  // look for room for it
};

TreeGeometry arrange(const TreeScene& scene, const TreeZoom& zoom);

/// The thickness of a limb in pixels at 100%, so that the cross sections of children add up to at most their parent's.
/// widest: of the whole tree's probability.
float limb_thickness(double path_probability, float widest);

/// "31%", "0.4%", "<0.1%".
std::string percentage(double share);

/// The node under a point: its pill, made 20 px high where it is lower.
std::optional<uint32_t> node_at(const TreeGeometry& geometry, TreePoint point, float scale);
/// The tuft under a point: its twigs and its label.
std::optional<uint32_t> tuft_at(const TreeGeometry& geometry, TreePoint point);
/// The part of the canvas that a tuft with its label takes.
TreeRect rect_of(const TuftBox& tuft, float pitch);
/// The middle of what is drawn for a node; for a node without a word, of its tuft.
TreePoint centre_of(const TreeGeometry& geometry, uint32_t node);
/// The nearest ancestor with a word, the node itself included.
uint32_t named_above(const TreeModel& tree, const TreeGeometry& geometry, uint32_t node);

/// The zoom after turning the wheel; the named node nearest to the pointer stays where it is. factor > 1 enlarges.
/// Zooming out to the whole tree sets `fit`.
TreeZoom zoomed_at(const TreeScene& scene, const TreeGeometry& now, TreePoint pointer, float factor);

/// The zoom that puts a node in the middle of the canvas, in the present size or, if that is larger, at least_factor.
TreeZoom centred_on(const TreeScene& scene, const TreeGeometry& now, uint32_t node, float least_factor);

/// The zoom after dragging by this many pixels; some of the tree stays visible.
TreeZoom panned(const TreeScene& scene, const TreeGeometry& now, TreePoint by);

// Which places of a canvas a tree takes, for what stands beside it or over it: notes, and the tour. Pure; pixels of the
// canvas.

/// The pill of a node with its badge.
TreeRect pill_of(const TreeGeometry& geometry, uint32_t node, float scale);

/// The pills of the accepted path and of the bonus.
std::vector<TreeRect> path_pills(const TreeModel& tree, const TreeGeometry& geometry, float scale);

/// All other words, and the tufts with their labels.
std::vector<TreeRect> other_words(const TreeModel& tree, const TreeGeometry& geometry, float scale);

/// Where the accepted path is: up to the children of the node at which it leaves the drafter's favourite, and the rest
/// of it; one place where it never leaves it.
std::vector<TreeRect> path_places(const TreeModel& tree, const TreeGeometry& geometry, float scale);

/// The first of the places that overlaps nothing of what is taken; none where all of them do.
std::optional<TreeRect> clear_place(std::span<const TreeRect> places, std::span<const TreeRect> taken);

/// Places for the number of a word, which has this size: above the word, at its right, at its left, below it.
std::vector<TreeRect> number_places(const TreeRect& pill, TreePoint size, float scale);

/// Places for a note of this size on a canvas, the likeliest to be looked at first: from `wished` on the bottom row,
/// and then row by row upward, on each row at the left, in the middle, at the right and between.
std::vector<TreeRect> note_places(const CanvasSize& canvas, TreePoint size, float wished_x);

}  // namespace canopy::app

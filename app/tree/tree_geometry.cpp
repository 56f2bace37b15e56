#include "app/tree/tree_geometry.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace canopy::app {
namespace {

using namespace tree_design;

constexpr float kMeasuredAt = 12;    // height of the text in which the widths of labels are given
constexpr float kTuftAhead = 0.72f;  // of the gap between columns, from the parent's column to where twigs begin

bool has_figure(NodeFate fate) {
  return fate == NodeFate::accepted || fate == NodeFate::rejected;
}

LabelClaim claim_of(NodeFate fate) {
  if (fate == NodeFate::not_reached) return LabelClaim::least;
  return fate == NodeFate::rejected ? LabelClaim::less : LabelClaim::most;
}

class Arrangement {
 public:
  Arrangement(const TreeScene& scene, const TreeZoom& zoom)
      : tree_(scene.tree), label_(scene.label_width), canvas_(scene.canvas), zoom_(zoom), note_(scene.chain_note) {
    g_.factor = zoom.fit ? 1 : std::clamp(zoom.factor, 1.0f, most_zoom);
  }

  TreeGeometry run() {
    choose_rows();
    choose_sizes();
    place_all_columns();
    if (g_.columns.label_room[0] < px(least_with_figures) || g_.columns.label_room[1] < px(least_with_figures)) {
      g_.figures = false;  // words before percentages
      place_all_columns();
    }
    place_nodes();
    place_tufts();
    make_limbs();
    measure_bounds();
    if (note_) find_chain_note();
    return std::move(g_);
  }

 private:
  float px(float length) const { return length * canvas_.scale; }
  float grown(float length) const { return px(length) * g_.text_scale; }
  float room_y() const { return std::max(px(1), canvas_.height - px(top) - px(bottom)) * g_.factor; }
  float room_x() const { return std::max(px(1), canvas_.width - px(side) * 2); }
  bool grand() const { return canvas_.height >= px(grand_from); }
  float word_width(uint32_t node) const { return label_[node] * g_.text / kMeasuredAt * g_.text_scale; }

  void choose_rows() {
    g_.words = choose_words(tree_, room_y() / px(least_pitch));
    rows_ = place_words(tree_, g_.words);
    const float raw = room_y() / std::max(1.0f, rows_.count);
    g_.text_scale = std::clamp(std::min(raw / px(tallest_pitch), g_.factor), 1.0f, 2.0f);
    g_.pitch = std::clamp(raw, px(due_pitch), px(tallest_pitch) * g_.text_scale);
  }

  void choose_sizes() {
    const bool wide = tree_.size() >= wide_from;
    g_.text = grand() ? 14 : wide ? 12 : 13;
    g_.pill_height = std::min(grown(wide && !grand() ? wide_pill : pill), g_.pitch - px(1.5f));
    g_.text = std::min(g_.text, g_.pill_height / (canvas_.scale * g_.text_scale) - 1);
  }

  /// What stands around the word of a node: the badge, the margins and the percentage.
  float around(uint32_t node) const {
    const NodeFate fate = tree_.nodes[node].fate;
    float width = grown(pad_left + pad_right);
    if (g_.figures && has_figure(fate)) width += grown(figure_gap) + figure_width(tree_.nodes[node].q);
    return width;
  }
  float figure_width(double q) const { return static_cast<float>(percentage(q).size()) * chars * grown(figure_text); }

  uint32_t twigs_of(const Tuft& tuft) const {
    const uint32_t alone = std::min(most_twigs, tuft.nodes);
    if (twigs_together_ <= most_twigs_together) return alone;
    return std::max(2u, alone * most_twigs_together / twigs_together_);
  }
  static float twig_length(uint32_t twigs) { return 15 + 5 * std::sqrt(static_cast<float>(twigs)); }
  float tuft_label_width(const Tuft& tuft) const {
    const float corner = std::ranges::any_of(tuft.heads, [&](uint32_t head) { return is_found(tree_.nodes[head]); })
                             ? px(found_room)
                             : 0;
    if (tuft.nodes == 1) return word_width(tuft.heads.front()) + corner;
    const size_t letters = std::to_string(tuft.nodes).size() + percentage(tuft.mass).size() + 4;  // "+12 · 6%"
    return static_cast<float>(letters) * chars * px(11) + corner;
  }

  void place_all_columns() {
    uint32_t deepest = 0;
    twigs_together_ = 0;
    for (uint32_t i = 0; i < tree_.size(); ++i)
      if (g_.words.named[i]) deepest = std::max(deepest, tree_.nodes[i].depth);
    for (const Tuft& tuft : g_.words.tufts) {
      twigs_together_ += std::min(most_twigs, tuft.nodes);
      deepest = std::max(deepest, tree_.nodes[tuft.parent].depth + 1);
    }
    std::vector<ColumnNeed> needs(size_t{deepest} + 1);
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      if (!g_.words.named[i]) continue;
      ColumnNeed& need = needs[tree_.nodes[i].depth];
      // The margins differ by a percentage, so the word's need holds what is more than the least margins.
      const float least = grown(pad_left + pad_right);
      float& label = need.label[static_cast<size_t>(claim_of(tree_.nodes[i].fate))];
      need.around = std::max(need.around, least);
      label = std::max(label, word_width(i) + around(i) - least);
    }
    for (const Tuft& tuft : g_.words.tufts) {
      float& label = needs[size_t{tree_.nodes[tuft.parent].depth} + 1].label[static_cast<size_t>(LabelClaim::least)];
      label = std::max(label, px(twig_length(twigs_of(tuft))) + tuft_label_width(tuft) - px(gap) * (1 - kTuftAhead));
    }
    ColumnRoom room;
    room.gap = grown(gap);
    room.tight_gap = grown(tight_gap);
    room.shortest = px(shortest_word);
    float natural = room.gap * static_cast<float>(needs.size() - 1);
    for (const ColumnNeed& need : needs)
      natural += std::max({need.label[0], need.label[1], need.label[2]}) + need.around;
    room.width = std::max(room_x() * g_.text_scale, std::min(natural, room_x() * g_.factor));
    g_.columns = place_columns(needs, room);
  }

  void place_nodes() {
    const float root_row = rows_.node[0], content = rows_.count * g_.pitch;
    const float free = std::max(px(1), canvas_.height - px(top) - px(bottom));
    float root_y = px(top) + (free - content) * 0.5f + root_row * g_.pitch;
    if (content > free + 1) root_y = px(top) + over_full(content, free);
    if (!zoom_.fit) root_y = px(zoom_.root.y);
    g_.left = zoom_.fit ? px(side) - over_wide() : px(zoom_.root.x);
    g_.nodes.resize(tree_.size());
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      NodeBox& box = g_.nodes[i];
      box.named = g_.words.named[i] != 0;
      if (!box.named) continue;
      box.y = root_y + (rows_.node[i] - root_row) * g_.pitch;
      box.x = g_.left + g_.columns.x[tree_.nodes[i].depth];
      box.label_room = std::min(word_width(i), std::max(px(shortest_word), label_room(i)));
      box.width = box.label_room + around(i);
      if (g_.figures && has_figure(tree_.nodes[i].fate))
        box.figure = grown(figure_gap) + figure_width(tree_.nodes[i].q);
    }
  }

  /// Room for a word: its column, and behind a leaf, where the next column is free, a part of the gap.
  float label_room(uint32_t node) const {
    const uint32_t depth = tree_.nodes[node].depth;
    float room = g_.columns.width[depth] - around(node);
    bool leaf = g_.words.tuft_of[node] < 0 && depth + 1 < g_.columns.x.size();
    for (const uint32_t child : tree_.children(node)) leaf = leaf && !g_.words.named[child];
    if (leaf) room = g_.columns.x[depth + 1] - g_.columns.x[depth] - around(node) - px(2 * badge);
    return room;
  }

  /// How far the root is left of its place where the columns need more than the canvas: so far that the end of the path
  /// can be seen.
  float over_wide() const {
    const uint32_t last = tree_.path.empty() ? 0 : tree_.path.back();
    const uint32_t depth = tree_.nodes[last].depth;
    const float end = g_.columns.x[depth] + std::min(word_width(last) + around(last), g_.columns.width[depth]);
    return std::clamp(end - room_x(), 0.0f, std::max(0.0f, g_.columns.total - room_x()));
  }

  /// The root's height where the rows that are never left out need more than the canvas: the path is in the middle, as
  /// far as no room stays empty.
  float over_full(float content, float free) const {
    float path = 0;
    for (const uint32_t node : tree_.path) path += rows_.node[node] / static_cast<float>(tree_.path.size());
    const float shift = std::clamp(free * 0.5f - path * g_.pitch, free - content, 0.0f);
    return shift + rows_.node[0] * g_.pitch;
  }

  void place_tufts() {
    const float root_y = g_.nodes[0].y;
    g_.tufts.resize(g_.words.tufts.size());
    for (size_t i = 0; i < g_.tufts.size(); ++i) {
      const Tuft& tuft = g_.words.tufts[i];
      TuftBox& box = g_.tufts[i];
      const uint32_t depth = tree_.nodes[tuft.parent].depth;
      const float column_gap = g_.left + g_.columns.x[depth + 1] - g_.column_end(depth);
      box.x = g_.column_end(depth) + column_gap * kTuftAhead;
      box.y = root_y + (rows_.tuft[i] - rows_.node[0]) * g_.pitch;
      box.twigs = twigs_of(tuft);
      box.length = px(twig_length(box.twigs));
      box.reach = std::min(g_.pitch * kTuftRows * 0.9f, px(6 + 4.8f * std::sqrt(static_cast<float>(box.twigs)))) * 0.5f;
      box.label_x = box.x + box.length + px(6);
      box.label_width = tuft_label_width(tuft);
    }
    for (uint32_t i = 1; i < tree_.size(); ++i) {
      if (g_.nodes[i].named) continue;
      const uint32_t parent = named_above(tree_, g_, i);
      const TuftBox& tuft = g_.tufts[static_cast<size_t>(g_.words.tuft_of[parent])];
      g_.nodes[i].x = tuft.x;
      g_.nodes[i].y = tuft.y;
    }
  }

  void make_limbs() {
    // Scaled with the pills, so that no limb is thicker than the pill that it ends in.
    const float widest = grand() ? 28.0f : 22.0f;
    const float most = std::min(px(widest) * g_.text_scale, g_.pill_height);
    const auto thickness = [&](double path) { return std::max(px(1), limb_thickness(path, most)); };
    std::vector<Limb> of_node;
    for (uint32_t node = 0; node < tree_.size(); ++node) {
      if (!g_.words.named[node]) continue;
      of_node.clear();
      for (const uint32_t child : tree_.children(node)) {
        if (g_.words.named[child] && child != tree_.bonus)
          of_node.push_back({node, child, false, 0, 0, thickness(tree_.nodes[child].path)});
      }
      if (const int32_t tuft = g_.words.tuft_of[node]; tuft >= 0) {
        const auto index = static_cast<uint32_t>(tuft);
        of_node.push_back({node, index, true, 0, 0, thickness(g_.words.tufts[index].mass)});
      }
      share_end(of_node, thickness(tree_.nodes[node].path));
      g_.limbs.insert(g_.limbs.end(), of_node.begin(), of_node.end());
    }
    if (tree_.bonus) g_.limbs.push_back({tree_.nodes[*tree_.bonus].parent, *tree_.bonus, false, 0, px(2.2f), px(2.2f)});
  }

  float height_of(const Limb& limb) const { return limb.to_tuft ? g_.tufts[limb.child].y : g_.nodes[limb.child].y; }

  /// Shares the end of a node's limb among its children, from the top down.
  void share_end(std::vector<Limb>& limbs, float whole) const {
    std::stable_sort(limbs.begin(), limbs.end(),
                     [&](const Limb& a, const Limb& b) { return height_of(a) < height_of(b); });
    float sum = 0;
    for (const Limb& limb : limbs) sum += limb.end;
    const float share = sum > 0 ? std::min(1.0f, whole / sum) : 1;
    float y = -sum * share * 0.5f;
    for (Limb& limb : limbs) {
      limb.begin = limb.end * share;
      limb.offset = y + limb.begin * 0.5f;
      y += limb.begin;
    }
  }

  void measure_bounds() {
    TreeRect& b = g_.bounds;
    const float half = g_.pill_height * 0.5f;
    b = {g_.nodes[0].x, g_.nodes[0].y - half, g_.nodes[0].x, g_.nodes[0].y + half};
    const auto add = [&](const TreeRect& r) {
      b = {std::min(b.x0, r.x0), std::min(b.y0, r.y0), std::max(b.x1, r.x1), std::max(b.y1, r.y1)};
    };
    for (const NodeBox& box : g_.nodes)
      if (box.named) add({box.x, box.y - half, box.x + box.width, box.y + half});
    for (const TuftBox& box : g_.tufts) add(rect_of(box, g_.pitch));
  }

  /// Looks for the node where the accepted path leaves the likeliest children, and for room below that child.
  void find_chain_note() {
    constexpr float kWidth = 176, kHeight = 50;
    for (const uint32_t node : tree_.path) {
      const auto children = tree_.children(node);
      if (children.empty() || tree_.on_path(children.front())) continue;
      // Behind an accepted end nothing was taken instead: the text does not go on.
      if (tree_.next_on_path(node) == TreeNode::none) return;
      if (!g_.words.named[children.front()]) return;
      g_.chain_end = children.front();
      const NodeBox& box = g_.nodes[g_.chain_end];
      const float y = box.y + g_.pill_height * 0.5f + px(5);
      const TreeRect rect = {box.x + px(12), y, box.x + px(12 + kWidth), y + px(kHeight)};
      const bool inside = rect.y1 < canvas_.height - px(bottom) && rect.x1 < canvas_.width - px(8);
      if (inside && free(rect)) g_.chain_note = rect;
      return;
    }
  }

  /// Whether no word, tuft or limb crosses a part of the canvas.
  bool free(const TreeRect& rect) const {
    const float half = g_.pill_height * 0.5f;
    for (const NodeBox& box : g_.nodes)
      if (box.named && rect.overlaps({box.x - half, box.y - half, box.x + box.width, box.y + half})) return false;
    for (const TuftBox& box : g_.tufts)
      if (rect.overlaps(rect_of(box, g_.pitch))) return false;
    for (const Limb& limb : g_.limbs) {
      const NodeBox& from = g_.nodes[limb.parent];
      const float x = g_.column_end(tree_.nodes[limb.parent].depth), y = from.y + limb.offset, to = height_of(limb);
      const float x1 = limb.to_tuft ? g_.tufts[limb.child].x : g_.nodes[limb.child].x;
      const float thick = std::max(limb.begin, limb.end) * 0.5f + px(3);
      if (rect.overlaps({from.x, y - thick, x, y + thick})) return false;
      if (rect.overlaps({x, std::min(y, to) - thick, x1, std::max(y, to) + thick})) return false;
    }
    return true;
  }

  const TreeModel& tree_;
  std::span<const float> label_;
  CanvasSize canvas_;
  TreeZoom zoom_;
  bool note_;
  WordRows rows_;
  uint32_t twigs_together_ = 0;
  TreeGeometry g_;
};

/// Turns an x position into column + share of the way to the next column, which stays right when columns grow.
float column_at(const TreeColumns& columns, float x) {
  const size_t last = columns.x.size() - 1;
  size_t i = 0;
  while (i < last && columns.x[i + 1] <= x) ++i;
  const float length = i < last ? columns.x[i + 1] - columns.x[i] : std::max(1.0f, columns.width[i]);
  return static_cast<float>(i) + (x - columns.x[i]) / length;
}

float offset_of(const TreeColumns& columns, float column) {
  const size_t last = columns.x.size() - 1;
  const size_t i = std::min(static_cast<size_t>(std::max(0.0f, column)), last);
  const float length = i < last ? columns.x[i + 1] - columns.x[i] : std::max(1.0f, columns.width[i]);
  return columns.x[i] + (column - static_cast<float>(i)) * length;
}

/// The named node that is nearest to a point.
uint32_t nearest_to(const TreeGeometry& g, TreePoint point) {
  uint32_t best = 0;
  float least = 1e30f;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const NodeBox& box = g.nodes[i];
    if (!box.named) continue;
    const float dx = std::max({box.x - point.x, 0.0f, point.x - box.x - box.width}), dy = box.y - point.y;
    if (dx * dx + dy * dy >= least) continue;
    least = dx * dx + dy * dy;
    best = i;
  }
  return best;
}

}  // namespace

float limb_thickness(double path_probability, float widest) {
  return widest * static_cast<float>(std::sqrt(std::clamp(path_probability, 0.0, 1.0)));
}

std::string percentage(double share) {
  char text[16];
  if (share >= 0.0095)
    std::snprintf(text, sizeof text, "%.0f%%", share * 100);
  else if (share >= 0.001)
    std::snprintf(text, sizeof text, "%.1f%%", share * 100);
  else
    return "<0.1%";
  return text;
}

bool TreeGeometry::inside(const CanvasSize& canvas) const {
  constexpr float kSlack = 1;
  return bounds.x0 >= -kSlack && bounds.y0 >= -kSlack && bounds.x1 <= canvas.width + kSlack &&
         bounds.y1 <= canvas.height + kSlack;
}

TreeGeometry arrange(const TreeScene& scene, const TreeZoom& zoom) {
  return Arrangement(scene, zoom).run();
}

uint32_t named_above(const TreeModel& tree, const TreeGeometry& geometry, uint32_t node) {
  while (!geometry.words.named[node]) node = tree.nodes[node].parent;
  return node;
}

std::optional<uint32_t> node_at(const TreeGeometry& g, TreePoint point, float scale) {
  const float half = std::max(g.pill_height * 0.5f, 10 * scale), badge = tree_design::badge * scale;
  std::optional<uint32_t> best;
  float nearest = half;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const NodeBox& box = g.nodes[i];
    if (!box.named || point.x < box.x - badge || point.x > box.x + box.width) continue;
    const float away = std::abs(point.y - box.y);
    if (away > nearest || (best && away == nearest)) continue;
    nearest = away;
    best = i;
  }
  return best;
}

TreeRect rect_of(const TuftBox& tuft, float pitch) {
  const float half = std::max(tuft.reach, pitch * kTuftRows * 0.4f);
  return {tuft.x, tuft.y - half, tuft.label_x + tuft.label_width, tuft.y + half};
}

std::optional<uint32_t> tuft_at(const TreeGeometry& g, TreePoint point) {
  for (uint32_t i = 0; i < g.tufts.size(); ++i)
    if (rect_of(g.tufts[i], g.pitch).contains(point)) return i;
  return std::nullopt;
}

TreePoint centre_of(const TreeGeometry& g, uint32_t node) {
  return {g.nodes[node].x + g.nodes[node].width * 0.5f, g.nodes[node].y};
}

TreeZoom zoomed_at(const TreeScene& scene, const TreeGeometry& now, TreePoint pointer, float factor) {
  const float scale = scene.canvas.scale;
  TreeZoom zoom;
  zoom.fit = false;
  zoom.factor = std::min(now.factor * factor, most_zoom);
  if (factor < 1 && zoom.factor <= 1) return {};
  const TreeGeometry next = arrange(scene, zoom);
  // The node stays at its height, and the pointer over the same part of its column.
  const uint32_t held = nearest_to(now, pointer), there = named_above(scene.tree, next, held);
  zoom.root.y = (now.nodes[held].y - (next.nodes[there].y - next.nodes[0].y)) / scale;
  const float column = column_at(now.columns, now.nodes[held].x - now.left);
  zoom.root.x = (now.nodes[held].x - offset_of(next.columns, column)) / scale;
  return zoom;
}

TreeZoom centred_on(const TreeScene& scene, const TreeGeometry& now, uint32_t node, float least_factor) {
  const float scale = scene.canvas.scale;
  TreeZoom zoom;
  zoom.fit = false;
  zoom.factor = std::max(now.factor, least_factor);
  const TreeGeometry there = arrange(scene, zoom);
  const TreePoint at = centre_of(there, node);
  zoom.root.x = (scene.canvas.width * 0.5f - (at.x - there.left)) / scale;
  zoom.root.y = (scene.canvas.height * 0.5f - (at.y - there.nodes[0].y)) / scale;
  return zoom;
}

TreeZoom panned(const TreeScene& scene, const TreeGeometry& now, TreePoint by) {
  const float scale = scene.canvas.scale, kept = 48 * scale;
  const TreeRect& b = now.bounds;
  const float x = std::clamp(by.x, kept - b.x1, std::max(kept - b.x1, scene.canvas.width - kept - b.x0));
  const float y = std::clamp(by.y, kept - b.y1, std::max(kept - b.y1, scene.canvas.height - kept - b.y0));
  return {false, now.factor, {(now.left + x) / scale, (now.nodes[0].y + y) / scale}};
}

namespace {

constexpr float kNoteMargin = 8, kNoteStep = 12, kLineOfDepths = 22;
constexpr uint32_t kNoteColumns = 9;

TreeRect joined(const TreeRect& a, const TreeRect& b) {
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}

}  // namespace

TreeRect pill_of(const TreeGeometry& geometry, uint32_t node, float scale) {
  const NodeBox& box = geometry.nodes[node];
  const float half = geometry.pill_height * 0.5f, badge = tree_design::badge * scale * geometry.text_scale;
  return {box.x - badge, box.y - half, box.x + box.width, box.y + half};
}

std::vector<TreeRect> path_pills(const TreeModel& tree, const TreeGeometry& geometry, float scale) {
  std::vector<TreeRect> pills;
  for (const uint32_t node : tree.path)
    if (geometry.nodes[node].named) pills.push_back(pill_of(geometry, node, scale));
  return pills;
}

std::vector<TreeRect> other_words(const TreeModel& tree, const TreeGeometry& geometry, float scale) {
  std::vector<TreeRect> words;
  for (uint32_t node = 0; node < tree.size(); ++node)
    if (geometry.nodes[node].named && !tree.on_path(node)) words.push_back(pill_of(geometry, node, scale));
  for (const TuftBox& tuft : geometry.tufts) words.push_back(rect_of(tuft, geometry.pitch));
  return words;
}

std::vector<TreeRect> path_places(const TreeModel& tree, const TreeGeometry& geometry, float scale) {
  std::vector<TreeRect> places;
  std::optional<TreeRect> place;
  const auto add = [&](uint32_t node) {
    const NodeBox& box = geometry.nodes[node];
    if (!box.named) return;
    const float half = geometry.pill_height * 0.5f + 8 * scale;
    const TreeRect own = {box.x - 12 * scale, box.y - half, box.x + box.width + 8 * scale, box.y + half};
    place = place ? joined(*place, own) : own;
  };
  bool left = false;
  for (const uint32_t node : tree.path) {
    if (node == 0 && tree.path.size() > 1) continue;
    add(node);
    if (left || node == tree.bonus || tree.nodes[node].rank == 0) continue;
    left = true;
    add(tree.children(tree.nodes[node].parent).front());
    if (place) places.push_back(*place);
    place.reset();
  }
  if (place) places.push_back(*place);
  return places;
}

std::optional<TreeRect> clear_place(std::span<const TreeRect> places, std::span<const TreeRect> taken) {
  for (const TreeRect& place : places)
    if (std::ranges::none_of(taken, [&](const TreeRect& each) { return place.overlaps(each); })) return place;
  return std::nullopt;
}

std::vector<TreeRect> number_places(const TreeRect& pill, TreePoint size, float scale) {
  const float gap = 3 * scale, middle = (pill.y0 + pill.y1 - size.y) * 0.5f;
  const float inset = pill.x0 + tree_design::badge * scale + 2 * scale;
  // Digits are lower than their line, so that a number above a word needs less than all of it.
  const float air = size.y * 0.15f;
  std::vector<TreeRect> places;
  for (const TreePoint at : {TreePoint{inset, pill.y0 - size.y + air}, TreePoint{pill.x1 + gap, middle},
                             TreePoint{pill.x0 - gap - size.x, middle}, TreePoint{inset, pill.y1 - air}})
    places.push_back({at.x, at.y + air, at.x + size.x, at.y + size.y - air});
  return places;
}

std::vector<TreeRect> note_places(const CanvasSize& canvas, TreePoint size, float wished_x) {
  const float margin = kNoteMargin * canvas.scale, last = canvas.width - margin - size.x;
  std::vector<float> columns = {wished_x, margin, (canvas.width - size.x) * 0.5f, last};
  for (uint32_t i = 1; i + 1 < kNoteColumns; ++i)
    columns.push_back(margin + (last - margin) * static_cast<float>(i) / (kNoteColumns - 1));
  std::vector<TreeRect> places;
  const float top = kLineOfDepths * canvas.scale;
  for (float y = canvas.height - margin * 0.5f - size.y; y >= top; y -= kNoteStep * canvas.scale)
    for (const float x : columns)
      if (x >= 0 && x + size.x <= canvas.width) places.push_back({x, y, x + size.x, y + size.y});
  return places;
}

}  // namespace canopy::app

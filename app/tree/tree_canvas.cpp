#include "app/tree/tree_canvas.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/state/text_link.h"
#include "app/tree/tree_overlays.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

void measure(ShownTree& tree) {
  tree.scale = look().scale;
  tree.fonts_found = look().fonts_found;
  tree.label_width.clear();
  // Measured in the regular weight; the semibold one is as wide, as both are monospaced.
  for (const std::string& label : tree.labels) tree.label_width.push_back(text_size(Type::mono, label).x);
}

}  // namespace

TokenPieces ShownTree::pieces() const {
  return [log = log](uint32_t token) { return log->piece(token); };
}

std::optional<NodeRef> ShownTree::ref(uint32_t node) const {
  if (model.bonus == node) return NodeRef{round, static_cast<uint32_t>(record->nodes.size())};
  if (node >= record->nodes.size()) return std::nullopt;
  return NodeRef{round, node};
}

std::optional<uint32_t> ShownTree::node(const std::optional<NodeRef>& ref) const {
  if (!ref || ref->round != round || !record || ref->node > record->nodes.size()) return std::nullopt;
  if (ref->node == record->nodes.size()) return model.bonus;
  return ref->node;
}

bool show_round(ShownTree& tree, const RoundsState& rounds) {
  const std::shared_ptr<const RoundRecord> record = rounds.shown();
  const bool same = record == tree.record && tree.log == rounds.log && tree.round == rounds.playback.shown;
  if (same && (!record || (tree.scale == look().scale && tree.fonts_found == look().fonts_found))) return false;
  if (!same) {
    tree.record = record;
    tree.log = rounds.log;
    tree.round = rounds.playback.shown;
    if (!record) return true;
    tree.model = tree_of_round(*record, *rounds.log, tree.round);
    tree.labels = tree_labels(tree.model, *rounds.log);
  }
  measure(tree);
  return !same;
}

namespace {

constexpr double kZoomSeconds = 0.16;
constexpr float kWheelStep = 1.2f;
constexpr float kClose = 2;  // zoom of find_accepted()

TreePoint point_on(ImVec2 screen, ImVec2 origin) {
  return {screen.x - origin.x, screen.y - origin.y};
}

}  // namespace

TreeScene TreeCanvas::scene() const {
  return {shown_.model, shown_.label_width, {size_.x, size_.y, look().scale}, true};
}

TreePaint TreeCanvas::paint_of(const TreeReveal& reveal) const {
  return {shown_.model, geometry_, reveal, shown_.labels, pos_, size_, hovered_, selected_, tufts_.open};
}

ImVec2 TreeCanvas::screen_of(uint32_t node) const {
  const TreePoint at = centre_of(geometry_, node);
  return {pos_.x + at.x, pos_.y + at.y};
}

std::vector<ImVec4> TreeCanvas::on_screen(const std::vector<TreeRect>& places) const {
  std::vector<ImVec4> corners;
  for (const TreeRect& each : places)
    corners.emplace_back(pos_.x + each.x0, pos_.y + each.y0, pos_.x + each.x1, pos_.y + each.y1);
  return corners;
}

void TreeCanvas::begin_motion(std::vector<uint32_t> match, double seconds) {
  if (reduced_motion_ || geometry_.nodes.empty()) return;
  before_ = geometry_.nodes;
  match_ = std::move(match);
  motion_start_ = ImGui::GetTime();
  motion_seconds_ = seconds;
  keep_drawing(seconds);
}

void TreeCanvas::begin_motion_in_place(double seconds) {
  std::vector<uint32_t> itself(geometry_.nodes.size());
  std::iota(itself.begin(), itself.end(), 0u);
  begin_motion(std::move(itself), seconds);
}

void TreeCanvas::change_zoom(const TreeZoom& zoom) {
  begin_motion_in_place(kZoomSeconds);
  zoom_ = zoom;
}

void TreeCanvas::fit() {
  change_zoom({});
}

void TreeCanvas::find_accepted() {
  if (!shown_.record || target_.nodes.empty()) return;
  const uint32_t middle = shown_.model.path[shown_.model.path.size() / 2];
  change_zoom(centred_on(scene(), target_, middle, kClose));
}

/// Takes over the shown round. When stepping, nodes that both rounds have move to their new places. While following,
/// the tree changes at once: at 100 rounds a second a transition would only be a blur.
void TreeCanvas::take_round(const RoundsState& rounds) {
  const bool another = shown_.record != nullptr && rounds.shown() != shown_.record;
  const bool steps = another && rounds.playback.state == PlayState::paused && rounds.log == shown_.log;
  const ShownTree before = steps ? shown_ : ShownTree();
  const float scale = shown_.scale;
  const int fonts_found = shown_.fonts_found;
  const bool changed = show_round(shown_, rounds);
  stale_ = stale_ || changed || scale != shown_.scale || fonts_found != shown_.fonts_found;
  if (changed) tufts_ = {};
  if (!changed || !another) return;
  motion_seconds_ = 0;
  if (!shown_.record || !steps) return;
  begin_motion(match_nodes(before.model, node_keys(before.model, before.record->context), shown_.model,
                           node_keys(shown_.model, shown_.record->context)),
               kTransitionSeconds);
}

/// Arranges the tree where the round, the zoom or the canvas is another one than in the last frame.
void TreeCanvas::arrange_now(double now) {
  const CanvasSize canvas = scene().canvas;
  if (stale_ || !(arranged_zoom_ == zoom_) || !(arranged_canvas_ == canvas)) {
    target_ = arrange(scene(), zoom_);
    arranged_zoom_ = zoom_;
    arranged_canvas_ = canvas;
    stale_ = false;
  }
  geometry_ = target_;
  const bool moving = now < motion_start_ + motion_seconds_ && match_.size() == geometry_.nodes.size();
  if (moving) blend(before_, match_, static_cast<float>((now - motion_start_) / motion_seconds_), geometry_.nodes);
}

void TreeCanvas::draw(const RoundsState& rounds, ImVec2 pos, ImVec2 size, CommandSink& sink) {
  pos_ = pos;
  size_ = size;
  reduced_motion_ = rounds.reduced_motion;
  take_round(rounds);
  card_.reset();
  if (!shown_.record || size.x < px(60) || size.y < px(40)) return;
  arrange_now(ImGui::GetTime());
  hovered_ = shown_.node(rounds.hovered);
  selected_ = shown_.node(rounds.selected);
  ImGui::SetCursorScreenPos(pos);
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton("Canvas", size, ImGuiButtonFlags_EnableNav);
  id_ = ImGui::GetItemID();
  focus_last_item(kTreeArea);
  const Playback& play = rounds.playback;
  TreeReveal reveal =
      app::reveal(shown_.model, play.slow_motion ? play.phase : Phase::commit, play.slow_motion ? play.progress : 1);
  const double passed = ImGui::GetTime() - motion_start_;
  if (passed < motion_seconds_ && match_.size() == reveal.nodes.size()) {
    for (size_t i = 0; i < match_.size(); ++i)
      if (match_[i] == TreeNode::none) reveal.nodes[i].shown *= static_cast<float>(passed / motion_seconds_);
  }
  const TreePaint paint = paint_of(reveal);
  drag(paint, sink);
  point_at_tufts(paint);
  point(rounds, sink);
  use_keys(sink);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(pos, {pos.x + size.x, pos.y + size.y}, true);
  ButtonSpec jump{"Jump to live", Icon::next, ButtonKind::primary};
  jump.tooltip = "Follow the newest pass again  F5";
  jump_.reset();
  if (rounds.behind_live()) jump_ = jump_place(button_size(jump));
  draw_layers(list, paint, rounds);
  list->PopClipRect();
  if (!jump_) return;
  ImGui::SetCursorScreenPos({std::floor(pos_.x + jump_->x0), std::floor(pos_.y + jump_->y0)});
  if (button(jump)) sink.post(RoundsCommand(FollowRounds{}));
}

/// Where the button that leads back to the newest round covers no word of the tree: in the middle at the top, else in
/// the first place for a note; none where all is full, as the strip of passes leads back, too.
std::optional<TreeRect> TreeCanvas::jump_place(ImVec2 size) const {
  const CanvasSize canvas{size_.x, size_.y, look().scale};
  std::vector<TreeRect> taken = path_pills(shown_.model, geometry_, canvas.scale);
  for (const TreeRect& each : other_words(shown_.model, geometry_, canvas.scale)) taken.push_back(each);
  if (geometry_.chain_note) taken.push_back(*geometry_.chain_note);
  const float x = (size_.x - size.x) * 0.5f, y = px(28);
  std::vector<TreeRect> places = {{x, y, x + size.x, y + size.y}};
  for (const TreeRect& each : note_places(canvas, {size.x, size.y}, x)) places.push_back(each);
  return clear_place(places, taken);
}

/// The wheel zooms about the pointer; dragging moves the tree, or the view when it begins on the small map; a click
/// selects a node.
void TreeCanvas::drag(const TreePaint& paint, CommandSink& sink) {
  const ImGuiIO& io = ImGui::GetIO();
  const TreePoint at = point_on(io.MousePos, pos_);
  if (ImGui::IsItemHovered()) {
    ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
    if (io.MouseWheel != 0) change_zoom(zoomed_at(scene(), target_, at, std::pow(kWheelStep, io.MouseWheel)));
  }
  if (ImGui::IsItemActivated()) {
    dragged_ = false;
    on_map_ = minimap_shown_ && minimap_place(paint).contains(at);
  }
  if (ImGui::IsItemActive() && on_map_) {
    const TreePoint to = minimap_to_canvas(paint, at);
    zoom_ = panned(scene(), target_, {size_.x * 0.5f - to.x, size_.y * 0.5f - to.y});
  } else if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, px(3))) {
    dragged_ = true;
    motion_seconds_ = 0;
    if (io.MouseDelta.x != 0 || io.MouseDelta.y != 0)
      zoom_ = panned(scene(), target_, {io.MouseDelta.x, io.MouseDelta.y});
  }
  if (!ImGui::IsItemDeactivated() || dragged_ || on_map_) return;
  if (tufts_.click(geometry_, at)) return;
  const std::optional<uint32_t> node = node_at(geometry_, at, look().scale);
  const bool again = !node || node == selected_;
  sink.post(RoundsCommand(SelectNode{again ? std::nullopt : shown_.ref(*node)}));
}

void TreeCanvas::point_at_tufts(const TreePaint& paint) {
  const TreePoint at = point_on(ImGui::GetIO().MousePos, pos_);
  const bool over = ImGui::IsItemHovered() && !(ImGui::IsItemActive() && dragged_) && paint.reveal.whole;
  tufts_.point(paint, over ? std::optional(at) : std::nullopt, ImGui::GetTime(), reduced_motion_);
}

void TreeCanvas::point(const RoundsState& rounds, CommandSink& sink) {
  const TreePoint at = point_on(ImGui::GetIO().MousePos, pos_);
  const bool over = ImGui::IsItemHovered() && !(ImGui::IsItemActive() && dragged_) && !tufts_.covers(at);
  std::optional<uint32_t> node = over ? node_at(geometry_, at, look().scale) : std::nullopt;
  if (node && rounds.playback.slow_motion) {
    const TreeReveal now = reveal(shown_.model, rounds.playback.phase, rounds.playback.progress);
    if (now.nodes[*node].shown <= 0) node.reset();  // the node is not visible yet
  }
  const std::optional<NodeRef> ref = node ? shown_.ref(*node) : std::nullopt;
  if (ref && ref != rounds.hovered) sink.post(RoundsCommand(HoverNode{ref}));
  if (!ref && pointed_ && rounds.hovered) sink.post(RoundsCommand(HoverNode{}));
  pointed_ = ref.has_value();
}

void TreeCanvas::walk_to(uint32_t node, CommandSink& sink) {
  sink.post(RoundsCommand(SelectNode{shown_.ref(node)}));
  const TreePoint at = centre_of(target_, node);
  const float margin = px(40);
  const bool inside = at.x > margin && at.x < size_.x - margin && at.y > margin && at.y < size_.y - margin;
  if (!inside && !target_.inside({size_.x, size_.y, look().scale}))
    change_zoom(centred_on(scene(), target_, node, target_.factor));
}

/// The node that an arrow key leads to: left and right along a branch, up and down to the nearest node of the same
/// depth.
std::optional<uint32_t> TreeCanvas::neighbour(uint32_t node, ImGuiDir direction) const {
  const TreeModel& tree = shown_.model;
  if (direction == ImGuiDir_Left) return node == 0 ? std::nullopt : std::optional(tree.nodes[node].parent);
  if (direction == ImGuiDir_Right) {
    if (tree.next_on_path(node) != TreeNode::none) return tree.next_on_path(node);
    const auto children = tree.children(node);
    const bool goes_on = !children.empty() && target_.nodes[children.front()].named;
    return goes_on ? std::optional(children.front()) : std::nullopt;
  }
  const int sign = direction == ImGuiDir_Down ? 1 : -1;
  std::optional<uint32_t> best;
  const float from = target_.nodes[node].y;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const NodeBox& box = target_.nodes[i];
    if (tree.nodes[i].depth != tree.nodes[node].depth || !box.named ||
        (box.y - from) * static_cast<float>(sign) <= 0.5f)
      continue;
    if (!best || (box.y - target_.nodes[*best].y) * static_cast<float>(sign) < 0) best = i;
  }
  return best;
}

void TreeCanvas::use_keys(CommandSink& sink) {
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) || ImGui::GetIO().WantTextInput) return;
  const auto pressed = [](ImGuiKey key, int mods = 0) {
    return ImGui::IsKeyPressed(key, true) && ImGui::GetIO().KeyMods == mods;
  };
  const int with = letters_are_typed() ? ImGuiMod_Alt : 0;
  if (pressed(ImGuiKey_F, with)) fit();
  if (pressed(ImGuiKey_A, with)) find_accepted();
  if (pressed(ImGuiKey_Escape) && !tufts_.close() && selected_) sink.post(RoundsCommand(SelectNode{}));
  const ImGuiID focused = ImGui::GetFocusID();
  if (focused != id_ && focused != 0) return;
  constexpr std::pair<ImGuiKey, ImGuiDir> kArrows[] = {{ImGuiKey_LeftArrow, ImGuiDir_Left},
                                                       {ImGuiKey_RightArrow, ImGuiDir_Right},
                                                       {ImGuiKey_UpArrow, ImGuiDir_Up},
                                                       {ImGuiKey_DownArrow, ImGuiDir_Down}};
  for (const auto& [key, direction] : kArrows) {
    ImGui::SetKeyOwner(key, id_);  // the arrow keys move within the tree, not from control to control
    if (!ImGui::IsKeyPressed(key, ImGuiInputFlags_Repeat, id_) || ImGui::GetIO().KeyMods != 0) continue;
    const std::optional<uint32_t> from = selected_ ? selected_ : hovered_;
    const std::optional<uint32_t> to = from ? neighbour(*from, direction) : std::optional(shown_.model.path.front());
    if (to) walk_to(*to, sink);
  }
}

void TreeCanvas::draw_layers(ImDrawList* list, const TreePaint& paint, const RoundsState& rounds) {
  const Playback& play = rounds.playback;
  const bool slow = play.slow_motion && !paint.reveal.whole;
  if (slow && play.phase == Phase::verify) draw_one_pass(list, paint);
  if (!paint.reveal.draft_shown) draw_limbs(list, paint);
  draw_words(list, paint);
  if (paint.reveal.draft_shown) draw_draft_positions(list, paint);
  if (slow && play.phase == Phase::verify) draw_pass_count(list, paint);
  if (slow && play.phase == Phase::insert) draw_order(list, paint);
  if (slow && play.phase >= Phase::walk) draw_plain_ghost(list, paint);
  draw_depths(list, paint);
  if (paint.reveal.whole)
    if (const auto chain = chain_estimate(*shown_.record, shown_.model))
      draw_chain_note(list, paint, *chain, shown_.record->emitted.size());
  if (paint.reveal.walker != TreeNode::none && slow) draw_ring(list, paint, paint.reveal.walker);
  if (selected_) draw_ring(list, paint, *selected_);
  if (hovered_ && hovered_ != selected_) draw_ring(list, paint, *hovered_);
  minimap_shown_ = !target_.inside({size_.x, size_.y, look().scale});
  if (minimap_shown_) draw_minimap(list, paint);
  tufts_.draw(list, paint, ImGui::GetTime());
  draw_card(list, rounds);
}

void TreeCanvas::draw_card(ImDrawList* list, const RoundsState& rounds) {
  const bool pinned = !(hovered_ && pointed_);
  const std::optional<uint32_t> node = pinned ? selected_ : hovered_;
  if (!node || dragged_) return;
  card_ = shown_.facts(*node);
  if (const FoundPlace* place = place_of(rounds, shown_.ref(*node))) card_->place = place_words(*place);
  const NodeBox& box = geometry_.nodes[*node];
  const float half = std::max(geometry_.pill_height * 0.5f, px(10));
  // What the card should not cover: the path from the root to the node, its siblings, and the accepted path.
  std::vector<ImVec4> avoid;
  const auto keep_clear = [&](uint32_t each) {
    const NodeBox& b = geometry_.nodes[each];
    if (b.named)
      avoid.emplace_back(pos_.x + b.x - px(8), pos_.y + b.y - half, pos_.x + b.x + b.width, pos_.y + b.y + half);
  };
  for (uint32_t way = *node; way != TreeNode::none; way = shown_.model.nodes[way].parent) keep_clear(way);
  if (*node != 0)
    for (const uint32_t sibling : shown_.model.children(shown_.model.nodes[*node].parent)) keep_clear(sibling);
  for (const uint32_t each : shown_.model.path) keep_clear(each);
  if (jump_) avoid.emplace_back(pos_.x + jump_->x0, pos_.y + jump_->y0, pos_.x + jump_->x1, pos_.y + jump_->y1);
  const ImVec2 at = place_card(token_card_size(*card_), {pos_.x + box.x - px(10), pos_.y + box.y - half},
                               {pos_.x + box.x + box.width + px(4), pos_.y + box.y + half}, pos_,
                               {pos_.x + size_.x, pos_.y + size_.y}, avoid);
  draw_token_card(list, at, *card_, node == selected_);
}

}  // namespace canopy::app

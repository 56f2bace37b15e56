#pragma once
// The area in which the tree of the shown round is drawn, with pointing, dragging, zooming and the arrow keys.

#include <imgui.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/rounds.h"
#include "app/state/view_model.h"
#include "app/tree/token_card.h"
#include "app/tree/tree_look.h"
#include "app/tree/tree_model.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {

// The tree of the shown round, prepared once for each round: model, labels and widths of labels.

struct ShownTree {
  size_t round = 0;  // index in the log
  std::shared_ptr<const RoundRecord> record;
  std::shared_ptr<const RoundLog> log;
  TreeModel model;
  std::vector<std::string> labels;
  std::vector<float> label_width;  // pixels at `scale`, of labels in 12 px
  float scale = 0;
  int fonts_found = 0;  // Look::fonts_found when they were measured

  TokenPieces pieces() const;
  TokenFacts facts(uint32_t node) const { return token_facts(*record, model, node, pieces()); }
  /// From a node of the model to its NodeRef and back. The root of an AR round has none.
  std::optional<NodeRef> ref(uint32_t node) const;
  std::optional<uint32_t> node(const std::optional<NodeRef>& ref) const;
};

/// Updates `tree` to the shown round; true when the round is another one than before. Without a record the tree becomes
/// empty (record == null).
bool show_round(ShownTree& tree, const RoundsState& rounds);

// The area in which a tree is drawn, with pointing, dragging, zooming and the arrow keys. It posts commands for
// everything that others must know; only zoom and running transitions are kept here.

class TreeCanvas {
 public:
  /// Draws the shown round and posts HoverNode and SelectNode.
  void draw(const RoundsState& rounds, ImVec2 pos, ImVec2 size, CommandSink& sink);

  void fit();
  /// Moves the accepted path into the middle, large enough to read.
  void find_accepted();

  const ShownTree& shown() const { return shown_; }
  const TreeGeometry& geometry() const { return geometry_; }
  const TreeZoom& zoom() const { return zoom_; }
  bool minimap_shown() const { return minimap_shown_; }
  /// The middle of a node on the screen; for tests.
  ImVec2 screen_of(uint32_t node) const;
  /// Places of the canvas as corners on the screen.
  std::vector<ImVec4> on_screen(const std::vector<TreeRect>& places) const;
  /// The card drawn in the last frame, if there was one; for tests.
  const std::optional<TokenFacts>& card() const { return card_; }
  /// The tuft that is unfolded, if one is; for tests.
  std::optional<uint32_t> open_tuft() const { return tufts_.open; }

 private:
  TreeScene scene() const;
  TreePaint paint_of(const TreeReveal& reveal) const;
  void take_round(const RoundsState& rounds);
  /// Begins a transition from where everything is drawn now to where it belongs.
  void begin_motion(std::vector<uint32_t> match, double seconds);
  void begin_motion_in_place(double seconds);
  void change_zoom(const TreeZoom& zoom);
  void arrange_now(double now);
  void point_at_tufts(const TreePaint& paint);
  void point(const RoundsState& rounds, CommandSink& sink);
  void drag(const TreePaint& paint, CommandSink& sink);
  void use_keys(CommandSink& sink);
  void walk_to(uint32_t node, CommandSink& sink);
  std::optional<uint32_t> neighbour(uint32_t node, ImGuiDir direction) const;
  void draw_layers(ImDrawList* list, const TreePaint& paint, const RoundsState& rounds);
  void draw_card(ImDrawList* list, const RoundsState& rounds);
  std::optional<TreeRect> jump_place(ImVec2 size) const;

  ShownTree shown_;
  TreeGeometry target_;     // where everything belongs
  TreeZoom arranged_zoom_;  // what target_ was arranged for
  CanvasSize arranged_canvas_;
  bool stale_ = true;      // target_ is of another round
  TreeGeometry geometry_;  // where it is drawn; during a transition between the old place and target_
  TreeZoom zoom_;
  bool reduced_motion_ = false;
  bool minimap_shown_ = false;
  ImVec2 pos_, size_;
  ImGuiID id_ = 0;
  // pointing
  std::optional<uint32_t> hovered_, selected_;  // nodes of the shown round
  bool pointed_ = false;                        // hovered_ is under the mouse here, and not hovered in the chat
  bool dragged_ = false, on_map_ = false;
  std::optional<TokenFacts> card_;
  std::optional<TreeRect> jump_;  // where the button to the newest round is; none while it is not there
  OpenTuft tufts_;
  // The running transition, in the time of ImGui.
  double motion_start_ = 0, motion_seconds_ = 0;
  std::vector<NodeBox> before_;
  std::vector<uint32_t> match_;  // [nodes] index in before_ of the box of each node
};

}  // namespace canopy::app

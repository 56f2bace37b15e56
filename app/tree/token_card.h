#pragma once
// The card of one token, with everything that the record has of it, and the card of an unfolded tuft.

#include <imgui.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/tree/tree_model.h"
#include "app/tree/tree_paint.h"
#include "engine/trace/trace_format.h"

namespace canopy::app {

// Everything known of one node of a round as text: the contents of its card.

/// Looks up the text of a token; nullopt where it is not known.
using TokenPieces = std::function<std::optional<trace::Piece>(uint32_t token)>;

struct FactWords {
  enum class Kind { plain, token, figure };
  Kind kind = Kind::plain;
  std::string text;
  bool operator==(const FactWords&) const = default;
};

/// The facts as they are shown; empty where the record does not have them.
struct TokenFacts {
  NodeFate fate = NodeFate::root;
  std::string label;        // "or"
  std::string state;        // "Rejected at the frontier"
  std::string id;           // "476"
  std::string depth, rank;  // "3", "0"
  std::string position;     // in the context, from 0: "504"
  std::string row;          // of the pass: "12 of 64"
  std::string bytes;        // "20 6F 72"
  std::string p, log_p;     // the target's: "0.031", "-3.474"
  std::string q, log_q;     // of its sources
  std::string path;         // "0.371"
  std::string choice;       // the target's own next token after this one: "and"
  std::string choice_id;    // "290"
  std::string source;       // who guessed it, as a sentence; empty where that was not recorded
  std::string place;        // where the chat has what it was found behind, as a sentence; the caller's
  std::string note;         // why p or choice of a drafted token is not known, as sentences
  std::vector<FactWords> sentence;
};

/// node: an index in `tree`, which must be the model of the record.
TokenFacts token_facts(const RoundRecord& record, const TreeModel& tree, uint32_t node, const TokenPieces& pieces);

/// Three decimals; "<0.001" for what would be rounded to 0.
std::string probability_text(double probability);

/// Size of the card in pixels.
ImVec2 token_card_size(const TokenFacts& facts);
void draw_token_card(ImDrawList* list, ImVec2 pos, const TokenFacts& facts, bool pinned);

/// The upper left corner for a card beside an item: at the item's lower right corner if the card stays within the area
/// there and does not overlap the item or `avoid`; else at the first other corner where that holds, else at the one
/// with the least overlap.
ImVec2 place_card(ImVec2 size, ImVec2 item_min, ImVec2 item_max, ImVec2 area_min, ImVec2 area_max,
                  std::span<const ImVec4> avoid);

// The tuft that the mouse is over, unfolded as a card over its neighbours: its likeliest words and the number of
// the others.

struct OpenTuft {
  std::optional<uint32_t> open;  // index in TreeGeometry::tufts
  bool pinned = false;           // it stays open without the mouse

  /// Follows the mouse. at: where it is on the canvas, none when it is elsewhere. A tuft opens when the mouse has been
  /// over it for 120 ms, and closes when it has left it and its card. now: seconds.
  void point(const TreePaint& paint, std::optional<TreePoint> at, double now, bool reduced_motion);
  /// Pins the tuft at a point, or lets go of the one that is pinned; false where there is nothing to do.
  bool click(const TreeGeometry& geometry, TreePoint at);
  /// Whether a point is on the card.
  bool covers(TreePoint at) const { return open && card_.contains(at); }
  /// Closes the card; false if none is open.
  bool close();
  void draw(ImDrawList* list, const TreePaint& paint, double now) const;

 private:
  std::optional<uint32_t> pointed_;
  double since_ = 0;      // when the mouse came over it
  double opened_ = 0;     // when the card opened
  bool at_once_ = false;  // without motion
  TreeRect card_;
};

}  // namespace canopy::app

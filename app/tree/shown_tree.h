#pragma once
// The tree of the round that is shown, made once for each round: model, rows, labels and their widths.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/rounds/rounds_state.h"
#include "app/tree/token_facts.h"
#include "app/tree/tree_layout.h"

namespace canopy::app {

struct ShownTree {
  size_t round = 0;  // of the log
  std::shared_ptr<const RoundRecord> record;
  std::shared_ptr<const RoundLog> log;
  TreeModel model;
  TreeRows rows;
  bool pinned = true;
  std::vector<std::string> labels;
  std::vector<float> label_width;  // pixels, in 12 px at `scale`
  float scale = 0;

  TokenPieces pieces() const;
  TokenFacts facts(uint32_t node) const { return token_facts(*record, model, node, pieces()); }
  /// The name of a node outside the tree, and back. The root of an AR round has none.
  std::optional<NodeRef> ref(uint32_t node) const;
  std::optional<uint32_t> node(const std::optional<NodeRef>& ref) const;
};

/// Brings `tree` up to date; true when another round took its place. Null records leave it empty (record == null).
bool show_round(ShownTree& tree, const RoundsState& rounds, bool pinned);

}  // namespace canopy::app

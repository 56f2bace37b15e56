#pragma once
// The tree of the shown round, prepared once for each round: model, labels and widths of labels.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/layout/tree_model.h"
#include "app/rounds/rounds_state.h"
#include "app/tree/token_facts.h"

namespace canopy::app {

struct ShownTree {
  size_t round = 0;  // index in the log
  std::shared_ptr<const RoundRecord> record;
  std::shared_ptr<const RoundLog> log;
  TreeModel model;
  std::vector<std::string> labels;
  std::vector<float> label_width;  // pixels at `scale`, of labels in 12 px
  float scale = 0;

  TokenPieces pieces() const;
  TokenFacts facts(uint32_t node) const { return token_facts(*record, model, node, pieces()); }
  /// From a node of the model to its NodeRef and back. The root of an AR round has none.
  std::optional<NodeRef> ref(uint32_t node) const;
  std::optional<uint32_t> node(const std::optional<NodeRef>& ref) const;
};

/// Updates `tree` to the shown round; true when the round is another one than before. Without a record the tree becomes
/// empty (record == null).
bool show_round(ShownTree& tree, const RoundsState& rounds);

}  // namespace canopy::app

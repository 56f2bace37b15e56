#include "app/tree/shown_tree.h"

#include "app/layout/tree_labels.h"
#include "app/look/fonts.h"

namespace canopy::app {
namespace {

void measure(ShownTree& tree) {
  tree.scale = look().scale;
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
  if (same && (!record || tree.scale == look().scale)) return false;
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

}  // namespace canopy::app

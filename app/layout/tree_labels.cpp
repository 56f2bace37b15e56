#include "app/layout/tree_labels.h"

#include "app/layout/token_label.h"

namespace canopy::app {

std::optional<uint32_t> token_before(const RoundLog& log, size_t round) {
  const ReplySummary& reply = log.replies()[log.summary(round).reply];
  if (round <= reply.first_round) return reply.first_token;
  const std::shared_ptr<const RoundRecord> before = log.round(round - 1);
  if (!before || before->emitted.empty()) return std::nullopt;
  return before->emitted.back();
}

TreeModel tree_of_round(const RoundRecord& record, const RoundLog& log, size_t round) {
  return tree_model(record, record.nodes.empty() ? token_before(log, round) : std::nullopt);
}

std::vector<std::string> tree_labels(const TreeModel& tree, const RoundLog& log) {
  std::vector<std::string> labels;
  for (const TreeNodeView& node : tree.nodes)
    labels.push_back(tree_label(node.token ? log.piece(*node.token) : std::nullopt, node.token));
  return labels;
}

}  // namespace canopy::app

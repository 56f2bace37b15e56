#pragma once
// The words of a round's tree, from the log that has the round.

#include <optional>
#include <string>
#include <vector>

#include "app/layout/tree_model.h"
#include "app/rounds/round_log.h"

namespace canopy::app {

/// The last token before a round: the last one that the round before emitted, or the reply's first token.
std::optional<uint32_t> token_before(const RoundLog& log, size_t round);

/// The model of a round of the log. A round without a draft has the token before it as its root.
TreeModel tree_of_round(const RoundRecord& record, const RoundLog& log, size_t round);

/// [nodes] the label of each, not shortened to any room.
std::vector<std::string> tree_labels(const TreeModel& tree, const RoundLog& log);

}  // namespace canopy::app

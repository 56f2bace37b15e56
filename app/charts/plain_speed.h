#pragma once

#include "app/charts/statistics_view.h"
#include "app/rounds/round_log.h"
#include "engine/client/cost_snapshot.h"

namespace canopy::app {

/// What plain decoding reaches where a round of the log was: measured with its reply; else by the costs of the loaded
/// pair, for its own rounds; else what the round itself expected. shown and costs may be null.
PlainSpeed plain_speed(const RoundLog& log, size_t round, const RoundRecord* shown, const CostSnapshot* costs);

}  // namespace canopy::app

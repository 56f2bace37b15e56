#pragma once
// What the rounds of a pair of models would cost on a device, predicted, as a table to choose widths by.

#include <cstdint>

#include "engine/predict/prediction.h"
#include "engine/speculation/cost_table.h"

namespace canopy::predict {

struct RoundSizes {
  uint32_t rows = 129;         // of the widest pass
  uint32_t context = 512;      // the most positions that rounds stand behind
  uint32_t block = 16;         // rows of the drafter's pass
  uint32_t most_waiting = 64;  // features that a draft injects, at most
};

/// Every width behind half of the context, some at both of its ends. drafter: null where there is
/// none; its head must be the target's. What the host does between passes is not predicted and counts as nothing.
/// Throws bad_input for rows or a block of 0, or beyond RecordedModel::kMaxWidth.
CostTable predict_costs(RecordedModel& target, RecordedModel* drafter, const DeviceProfile& device,
                        const KernelRules& rules, const RoundSizes& sizes);

}  // namespace canopy::predict

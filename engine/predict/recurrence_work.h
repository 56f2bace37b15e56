#pragma once
// The work of a recurrence.

#include "engine/compute/ops.h"
#include "engine/predict/work_time.h"

namespace canopy::predict {

/// States come from memory and go back to it once, as those of all layers together are more than a cache holds. The
/// steps of a workgroup wait for each other.
Work work_of_recurrence(const DeltaNetArgs& args);

}  // namespace canopy::predict

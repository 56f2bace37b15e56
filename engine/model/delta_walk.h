#pragma once
// The order in which a recurrence goes through the rows of a pass (DeltaStep).

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/delta_net.h"
#include "engine/compute/rows.h"
#include "engine/model/state_history.h"

namespace canopy {

/// The row of a pass whose position is the one before and which it sees, by row; DeltaStep::kNone where it follows the
/// text. Throws bad_input where such a row comes later, or where a row that follows no other does not stand at
/// `position`, behind the text whose state there is.
std::vector<uint32_t> parents_of(const RowBatch& batch, uint32_t position);

/// A step for each row: children behind their parent, the one with most rows below it last, so that few states wait at
/// a time. A row's state is put aside where a child does not come next. With `use.to`, rows must be a line. Throws
/// bad_input as parents_of() does, and for a `use.to` of rows that are none.
std::vector<DeltaStep> delta_walk(const RowBatch& batch, const StateUse& use);

/// The steps of a line of rows behind `use.from`, the state after the last going to `use.to`.
std::vector<DeltaStep> delta_line(std::span<const uint32_t> rows, const StateUse& use);

/// States that are put aside at a time, at most, in a pass of so many rows.
uint32_t most_spare_states(uint32_t width);

}  // namespace canopy

#pragma once
// The parts of a weight, joined: what every backend asks of them before it lays them out in its own way.

#include <cstdint>
#include <span>

#include "engine/compute/types.h"

namespace canopy {

struct WeightExtent {
  uint32_t rows = 0;  // of the whole matrix
  uint32_t cols = 0;
};

/// Checks that the parts agree in type and columns, have the bytes they claim where they have any yet, and fit the
/// layout; gives the joined extent. Throws bad_input with the part, the actual and the allowed value.
WeightExtent joined_extent(std::span<const WeightPart> parts, WeightLayout layout);

/// A row of a joined weight: which part it is of, and which of its rows.
struct JoinedRow {
  uint32_t part = 0;
  uint32_t row = 0;
};
JoinedRow joined_row(std::span<const WeightPart> parts, WeightLayout layout, uint32_t row);

}  // namespace canopy

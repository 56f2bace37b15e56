#pragma once
// The parts of a weight, joined: what every backend asks of them before it lays them out in its own way.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// The rows of a joined weight, fetched a few at a time: parts need not have all of theirs at once. The parts must
/// outlive it; each thread has its own.
class RowFetcher {
 public:
  RowFetcher(std::span<const WeightPart> parts, WeightLayout layout);

  /// Fetches rows [begin, end) of the joined weight.
  void fetch(uint32_t begin, uint32_t end);
  /// Where a fetched row starts. Valid until the next fetch.
  const std::byte* row(uint32_t row) const;

 private:
  /// Parts whose rows alternate.
  uint32_t together() const { return layout_ == WeightLayout::paired ? 2 : 1; }

  struct Piece {
    uint32_t first = 0, end = 0;  // rows of its part
    const std::byte* data = nullptr;
    std::vector<std::byte> scratch;
  };
  std::span<const WeightPart> parts_;
  WeightLayout layout_;
  uint64_t row_bytes_;
  std::vector<Piece> pieces_;
};

}  // namespace canopy

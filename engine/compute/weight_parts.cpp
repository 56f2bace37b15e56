#include "engine/compute/weight_parts.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"

namespace canopy {

WeightExtent joined_extent(std::span<const WeightPart> parts, WeightLayout layout) {
  if (parts.empty()) throw bad_input("A weight needs at least one part.");
  for (size_t i = 0; layout == WeightLayout::paired && i < parts.size(); i += 2) {
    if (i + 1 < parts.size() && parts[i].rows == parts[i + 1].rows) continue;
    throw bad_input("A paired weight needs two parts of the same number of rows, or several such pairs.");
  }
  WeightExtent extent{0, parts[0].cols};
  uint64_t rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const WeightPart& part = parts[i];
    const std::string which = "Part " + std::to_string(i) + " of a weight";
    if (part.type != parts[0].type || part.cols != parts[0].cols) {
      throw bad_input(which + " is " + to_string(part.type) + " with " + std::to_string(part.cols) +
                      " columns; the first is " + to_string(parts[0].type) + " with " + std::to_string(parts[0].cols) +
                      ": all must agree.");
    }
    if (part.rows == 0 || part.cols == 0 || part.cols % block_size(part.type).elements != 0) {
      throw bad_input(which + " has shape [" + std::to_string(part.rows) + ", " + std::to_string(part.cols) +
                      "]; rows must be at least 1 and columns a multiple of " +
                      std::to_string(block_size(part.type).elements) + ".");
    }
    if (!part.data.empty() && part.data.size() != row_bytes(part) * part.rows) {
      throw bad_input(which + " has " + std::to_string(part.data.size()) + " bytes; its shape takes " +
                      std::to_string(row_bytes(part) * part.rows) + ".");
    }
    rows += part.rows;
  }
  if (rows > 0x7FFFFFFFu) throw bad_input("A weight has " + std::to_string(rows) + " rows; at most 2147483647 fit.");
  extent.rows = static_cast<uint32_t>(rows);
  return extent;
}

JoinedRow joined_row(std::span<const WeightPart> parts, WeightLayout layout, uint32_t row) {
  const uint32_t together = layout == WeightLayout::paired ? 2 : 1;  // parts whose rows alternate
  uint32_t part = 0;
  for (; row >= parts[part].rows * together; part += together) row -= parts[part].rows * together;
  return {part + row % together, row / together};
}

RowFetcher::RowFetcher(std::span<const WeightPart> parts, WeightLayout layout)
    : parts_(parts), layout_(layout), row_bytes_(row_bytes(parts[0])), pieces_(parts.size()) {}

void RowFetcher::fetch(uint32_t begin, uint32_t end) {
  uint32_t start = 0;  // of the part, or of the pair that it is in
  for (uint32_t p = 0; p < parts_.size(); ++p) {
    const uint32_t rows = parts_[p].rows * together();
    // Rows of this part among the first `joined` of its pair, or of itself.
    const auto rows_before = [&](uint32_t joined) { return (joined + together() - 1 - p % together()) / together(); };
    Piece& piece = pieces_[p];
    piece.first = rows_before(std::clamp(begin, start, start + rows) - start);
    piece.end = rows_before(std::clamp(end, start, start + rows) - start);
    if (piece.end > piece.first) {
      piece.data = read_rows(parts_[p], piece.first, piece.end - piece.first, piece.scratch).data();
    }
    if (p % together() == together() - 1) start += rows;
  }
}

const std::byte* RowFetcher::row(uint32_t row) const {
  const JoinedRow from = joined_row(parts_, layout_, row);
  return pieces_[from.part].data + (from.row - pieces_[from.part].first) * row_bytes_;
}

}  // namespace canopy

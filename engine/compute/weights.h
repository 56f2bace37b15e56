#pragma once
// Weights on their way to a device: their parts joined, the blocks of memory they share, and the slots through which
// all cores lay them out while the device copies.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/compute/types.h"

namespace canopy {

// The parts of a weight, joined: what every backend asks of them before it lays them out in its own way.

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

// How buffers that go together, such as a model's weights, share few allocations.

/// Buffers that lie in one block.
struct BlockRun {
  uint64_t bytes = 0;
  uint64_t buffers = 0;
  bool operator==(const BlockRun&) const = default;
};

/// The blocks of at most `most` bytes that buffers of these bytes, in this order, come to lie in; a buffer beyond that
/// has a block of its own. Each buffer starts at a multiple of `alignment`.
std::vector<BlockRun> block_runs(std::span<const uint64_t> buffers, uint64_t most, uint64_t alignment);

// Weights on their way to a device behind a bus: all cores lay them out in pinned memory, slot by slot, while the
// device copies out of the slots before. Backends say what a slot is, how a band of a weight is laid out and how a slot
// is sent.

inline constexpr uint64_t kUploadSlots = 4;
inline constexpr uint64_t kUploadSlotBytes = uint64_t{8} << 20;  // unless a band of a weight is larger

/// Pinned memory that is used in turn. Slots are counted on without end; kUploadSlots after each other have memory of
/// their own. Belongs to one thread; others may write to slots that it hands out.
class UploadSlots {
 public:
  virtual ~UploadSlots() = default;
  /// Contents undefined; written only, as the memory may be uncached.
  virtual std::span<std::byte> slot(uint64_t index) const = 0;
  /// Whether the device has copied all that was sent from this slot's memory.
  virtual bool is_free(uint64_t index) = 0;
  virtual void wait_until_free(uint64_t index) = 0;
};

/// Lays out a band of a piece in its slot. For one thread, with the memory that it works in.
using LayOutBand = std::function<void(size_t piece, uint64_t band, std::span<std::byte> slot)>;

/// A weight cut into pieces that slots hold, each a run of bands.
struct UploadWork {
  std::vector<uint64_t> bands;                            // of each piece, at least one
  uint64_t bands_of_a_thread = 1;                         // that are work enough for one
  std::function<LayOutBand()> make_layout;                // called by each thread
  std::function<void(size_t piece, uint64_t slot)> send;  // starts the copies out of a slot that is filled
};

/// Sends the pieces in order. Returns when the last copy is started; the slots know from which the device still copies.
/// `next_slot` counts the slots that were used. Throws what laying out and sending throw; pieces that were sent before
/// are then copied all the same.
void stream_upload(UploadSlots& slots, uint64_t& next_slot, const UploadWork& work);

}  // namespace canopy

#pragma once
// Weights on their way to a device behind a bus: all cores lay them out in pinned memory, slot by slot, while the
// device copies out of the slots before. Backends say what a slot is, how a band of a weight is laid out and how a slot
// is sent.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace canopy {

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

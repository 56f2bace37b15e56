#pragma once
// Mapped memory that is filled and copied to the device in turn: while the device copies from one slot, the host fills
// the next.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"

namespace canopy::vk {

/// Bytes of a slot from `from`, and where on the device they go.
struct SlotCopy {
  uint64_t from = 0;
  const Buffer* to = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// Belongs to the context's thread; others may write to slots that it hands out.
class UploadRing {
 public:
  static constexpr size_t kSlots = 4;
  static constexpr uint64_t kSlotBytes = 8ull << 20;  // unless a band of a weight is larger

  /// The context must outlive it. Throws what Context::create_buffer throws.
  UploadRing(Context& context, uint64_t slot_bytes);

  uint64_t slot_bytes() const { return slots_[0].buffer.bytes(); }
  /// Slots are counted on without end; kSlots after each other have memory of their own. Contents undefined; written
  /// only, as the memory may be uncached.
  std::span<std::byte> slot(uint64_t index) const { return slots_[index % kSlots].buffer.mapped(); }
  /// Whether the device has copied all that was submitted from this slot's memory.
  bool is_free(uint64_t index);
  void wait_until_free(uint64_t index);
  /// Starts copies from a slot that is filled. What is submitted later sees them done.
  void submit(uint64_t index, std::span<const SlotCopy> copies);

 private:
  struct Slot {
    Buffer buffer;
    Submission submission = 0;
  };

  Context& context_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace canopy::vk

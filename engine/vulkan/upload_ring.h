#pragma once
// Mapped memory that is filled and copied to the device in turn: while the device copies from one slot, the host fills
// the next.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/compute/upload_stream.h"
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

/// Belongs to the context's thread.
class UploadRing : public UploadSlots {
 public:
  static constexpr size_t kSlots = kUploadSlots;
  static constexpr uint64_t kSlotBytes = kUploadSlotBytes;

  /// The context must outlive it. Throws what Context::create_buffer throws.
  UploadRing(Context& context, uint64_t slot_bytes);

  uint64_t slot_bytes() const { return slots_[0].buffer.bytes(); }
  std::span<std::byte> slot(uint64_t index) const override { return slots_[index % kSlots].buffer.mapped(); }
  bool is_free(uint64_t index) override;
  void wait_until_free(uint64_t index) override;
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

#pragma once
// How bytes reach the device's memory and come back: staging, the ring of slots for weights, and the few allocations
// that the weights of a model lie in.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/weights.h"
#include "engine/vulkan/command_list.h"
#include "engine/vulkan/context.h"
#include "engine/vulkan/device_objects.h"
#include "engine/vulkan/memory.h"

namespace canopy::vk {

// Moving bytes to and from device memory that the host cannot see, through two small mapped buffers in turn.

class Staging {
 public:
  explicit Staging(Context& context) : context_(context) {}

  /// Takes the bytes; what is submitted later sees them in place. The last of them may still be on their way, so that
  /// the host can prepare the next ones meanwhile.
  void upload(const Buffer& to, uint64_t offset, std::span<const std::byte> data);
  /// Returns when all bytes are there. What fits into a slot together comes in one submission.
  void download(std::span<const Download> downloads);

 private:
  static constexpr uint64_t slot_bytes = 8ull << 20;

  struct Slot {
    Buffer buffer;
    std::unique_ptr<CommandList> copy;  // the last one submitted for this slot
    uint64_t submission = 0;
  };

  void prepare(Slot& slot, BufferKind kind);
  void submit(Slot& slot);
  void finish(Slot& slot);

  Context& context_;
  std::array<Slot, 2> up_;
  size_t next_up_ = 0;
  std::array<Slot, 2> down_;
};

// Buffers that are made one after the other and go together, such as a model's weights, in few allocations.

/// Knows beforehand what will be asked for, so that a block is as large as what comes to lie in it and no memory is
/// left over. A block is freed when its last buffer is gone, so what a load has made before it fails goes with its
/// buffers: the arena itself holds nothing.
class BufferArena {
 public:
  /// Buffers of these bytes, in this order. The context must outlive it.
  BufferArena(Context& context, std::vector<uint64_t> expected)
      : context_(context), expected_(std::move(expected)), most_(context.max_block()) {}

  /// A buffer of BufferKind::device. Those expected lie in blocks of at most Context::max_block() bytes (a larger
  /// buffer in one of its own), or in smaller ones where so much is not to be had at once; one of another size than
  /// expected gets memory of its own. Throws what Context::create_buffer throws.
  Buffer create(uint64_t bytes, std::string_view name);

 private:
  uint64_t share(uint64_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }
  std::shared_ptr<MemoryBlock> next_block(const VkMemoryRequirements& needs, std::string_view name);

  Context& context_;
  std::vector<uint64_t> expected_;
  size_t next_ = 0;  // of expected_
  uint64_t most_;    // bytes of a block
  uint64_t alignment_ = 1;
  std::weak_ptr<MemoryBlock> block_;
  uint64_t taken_ = 0;  // bytes of it
};

// Mapped memory that is filled and copied to the device in turn: while the device copies from one slot, the host fills
// the next.

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

// Repacks a weight on all cores into the slots of a ring, from which the device copies meanwhile.

/// A run of bands that goes through a slot together: units first, then scales.
struct StreamPiece {
  WeightShardLayout layout;  // its rows, counted in the whole weight
  const Buffer* units = nullptr;
  const Buffer* scales = nullptr;  // null for types without
  uint64_t unit_offset = 0;        // where its bytes go in the buffers
  uint64_t scale_offset = 0;
};

/// Sends the pieces in order. Returns when the last copy is submitted; the slots from which the device still copies are
/// known to the ring. `next_slot` counts the slots that were used. Throws what the parts' readers throw and
/// device_lost; pieces that were submitted before are then copied all the same.
void stream(UploadRing& ring, uint64_t& next_slot, std::span<const WeightPart> parts, WeightLayout layout,
            const std::vector<StreamPiece>& pieces);

}  // namespace canopy::vk

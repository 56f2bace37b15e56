#pragma once
// Moving bytes to and from device memory that the host cannot see, through two small mapped buffers in turn.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/vulkan/buffer.h"
#include "engine/vulkan/command_list.h"

namespace canopy::vk {

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

}  // namespace canopy::vk

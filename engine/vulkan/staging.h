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
  /// Returns when the bytes are there.
  void download(const Buffer& from, uint64_t offset, std::span<std::byte> data);

 private:
  static constexpr uint64_t slot_bytes = 8ull << 20;

  struct Slot {
    Buffer buffer;
    std::unique_ptr<CommandList> copy;  // the last one submitted for this slot
    uint64_t submission = 0;
    std::span<std::byte> destination;  // of a download, to fill once the copy is done
  };

  Slot& prepare(std::array<Slot, 2>& slots, size_t turn, BufferKind kind);
  void start(Slot& slot, const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset,
             uint64_t bytes);
  void finish(Slot& slot);

  Context& context_;
  std::array<Slot, 2> up_;
  size_t next_up_ = 0;
  std::array<Slot, 2> down_;
};

}  // namespace canopy::vk

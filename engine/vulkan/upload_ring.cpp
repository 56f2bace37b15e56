#include "engine/vulkan/upload_ring.h"

namespace canopy::vk {

UploadRing::UploadRing(Context& context, uint64_t slot_bytes) : context_(context) {
  for (Slot& slot : slots_) slot.buffer = context.create_buffer(BufferKind::host_write, slot_bytes, "upload");
}

bool UploadRing::is_free(uint64_t index) {
  return context_.is_complete(slots_[index % kSlots].submission);
}

void UploadRing::wait_until_free(uint64_t index) {
  context_.wait(slots_[index % kSlots].submission);
}

void UploadRing::submit(uint64_t index, std::span<const SlotCopy> copies) {
  Slot& slot = slots_[index % kSlots];
  CommandList list(context_, {.name = "upload"});
  for (const SlotCopy& copy : copies) list.copy(slot.buffer, copy.from, *copy.to, copy.offset, copy.bytes);
  slot.submission = context_.submit(list);
}

}  // namespace canopy::vk

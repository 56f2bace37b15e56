#include "engine/vulkan/staging.h"

#include <algorithm>
#include <cstring>

#include "engine/vulkan/context.h"

namespace canopy::vk {

Staging::Slot& Staging::prepare(std::array<Slot, 2>& slots, size_t turn, BufferKind kind) {
  Slot& slot = slots[turn % slots.size()];
  finish(slot);
  if (!slot.buffer) {
    slot.buffer = context_.create_buffer(kind, std::min(slot_bytes, context_.limits().max_allocation), "staging");
  }
  return slot;
}

void Staging::start(Slot& slot, const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset,
                    uint64_t bytes) {
  slot.copy = std::make_unique<CommandList>(context_, CommandListOptions{.name = "staging copy"});
  slot.copy->copy(from, from_offset, to, to_offset, bytes);
  slot.submission = context_.submit(*slot.copy);
}

void Staging::finish(Slot& slot) {
  if (slot.copy == nullptr) {
    return;
  }
  context_.wait(slot.submission);
  slot.copy.reset();
  if (!slot.destination.empty()) {
    context_.read_mapped(slot.buffer, 0, slot.destination);
    slot.destination = {};
  }
}

void Staging::upload(const Buffer& to, uint64_t offset, std::span<const std::byte> data) {
  for (size_t done = 0; done < data.size(); ++next_up_) {
    Slot& slot = prepare(up_, next_up_, BufferKind::host_write);
    const size_t bytes = std::min<size_t>(data.size() - done, slot.buffer.bytes());
    context_.write_mapped(slot.buffer, 0, data.subspan(done, bytes));
    start(slot, slot.buffer, 0, to, offset + done, bytes);
    done += bytes;
  }
}

void Staging::download(const Buffer& from, uint64_t offset, std::span<std::byte> data) {
  for (size_t turn = 0, done = 0; done < data.size(); ++turn) {
    Slot& slot = prepare(down_, turn, BufferKind::host_read);
    const size_t bytes = std::min<size_t>(data.size() - done, slot.buffer.bytes());
    start(slot, from, offset + done, slot.buffer, 0, bytes);
    slot.destination = data.subspan(done, bytes);
    done += bytes;
  }
  for (Slot& slot : down_) {
    finish(slot);
  }
}

}  // namespace canopy::vk

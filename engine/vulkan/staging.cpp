#include "engine/vulkan/staging.h"

#include <algorithm>
#include <vector>

#include "engine/vulkan/context.h"

namespace canopy::vk {

void Staging::prepare(Slot& slot, BufferKind kind) {
  finish(slot);
  if (!slot.buffer) {
    slot.buffer = context_.create_buffer(kind, std::min(slot_bytes, context_.limits().max_allocation), "staging");
  }
  slot.copy = std::make_unique<CommandList>(context_, CommandListOptions{.name = "staging copy"});
}

void Staging::submit(Slot& slot) {
  slot.submission = context_.submit(*slot.copy);
}

void Staging::finish(Slot& slot) {
  if (slot.copy == nullptr) {
    return;
  }
  context_.wait(slot.submission);
  slot.copy.reset();
}

void Staging::upload(const Buffer& to, uint64_t offset, std::span<const std::byte> data) {
  for (size_t done = 0; done < data.size(); ++next_up_) {
    Slot& slot = up_[next_up_ % up_.size()];
    prepare(slot, BufferKind::host_write);
    const size_t bytes = std::min<size_t>(data.size() - done, slot.buffer.bytes());
    context_.write_mapped(slot.buffer, 0, data.subspan(done, bytes));
    slot.copy->copy(slot.buffer, 0, to, offset + done, bytes);
    submit(slot);
    done += bytes;
  }
}

void Staging::download(std::span<const Download> downloads) {
  // The copies of one slot at a time. Not kept beyond this call, which may end by an exception.
  std::array<std::vector<std::span<std::byte>>, 2> held;
  uint64_t used = 0;  // bytes of the slot that is being filled
  size_t turn = 0;
  const auto deliver = [&](size_t index) {
    finish(down_[index]);
    uint64_t offset = 0;
    for (const std::span<std::byte> to : held[index]) {
      context_.read_mapped(down_[index].buffer, offset, to);
      offset += to.size();
    }
    held[index].clear();
  };
  for (const Download& d : downloads) {
    for (size_t done = 0; done < d.to.size();) {
      const size_t index = turn % down_.size();
      Slot& slot = down_[index];
      if (used == 0) {
        deliver(index);
        prepare(slot, BufferKind::host_read);
      }
      const size_t bytes = std::min<size_t>(d.to.size() - done, slot.buffer.bytes() - used);
      slot.copy->copy(*d.from, d.offset + done, slot.buffer, used, bytes);
      held[index].push_back(d.to.subspan(done, bytes));
      used += bytes;
      done += bytes;
      if (used == slot.buffer.bytes()) {
        submit(slot);
        used = 0;
        ++turn;
      }
    }
  }
  if (used > 0) submit(down_[turn % down_.size()]);
  for (size_t index = 0; index < down_.size(); ++index) deliver(index);
}

}  // namespace canopy::vk

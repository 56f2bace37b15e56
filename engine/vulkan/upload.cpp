#include "engine/vulkan/upload.h"

#include <algorithm>

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

// A heap may be cut up, or other programs may leave less than a whole block: half as much from then
// on, down to one buffer.
std::shared_ptr<MemoryBlock> BufferArena::next_block(const VkMemoryRequirements& needs, std::string_view name) {
  for (;;) {
    const BlockRun run = block_runs(std::span(expected_).subspan(next_), most_, alignment_).front();
    try {
      return context_.allocate_block(needs, BufferKind::device, std::max(run.bytes, needs.size), name);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::out_of_memory || run.buffers == 1) throw;
      while (most_ >= run.bytes) most_ /= 2;
    }
  }
}

Buffer BufferArena::create(uint64_t bytes, std::string_view name) {
  if (next_ == expected_.size() || expected_[next_] != bytes) {
    return context_.create_buffer(BufferKind::device, bytes, name);
  }
  Buffer buffer = context_.bare_buffer(BufferKind::device, bytes, name);
  const VkMemoryRequirements needs = context_.requirements(buffer);
  alignment_ = std::max({alignment_, needs.alignment, context_.limits().atom_size});
  uint64_t offset = share(taken_);
  std::shared_ptr<MemoryBlock> block = block_.lock();
  const bool fits = block != nullptr && (needs.memoryTypeBits & block->type_bit()) != 0 &&
                    needs.size <= block->bytes() - std::min(block->bytes(), offset);
  if (!fits) {
    block = next_block(needs, name);
    block_ = block;
    offset = 0;
  }
  ++next_;
  context_.place(buffer, std::move(block), offset, name);
  taken_ = offset + share(bytes);
  return buffer;
}

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

namespace {

void submit_piece(UploadRing& ring, const StreamPiece& piece, uint64_t slot) {
  const WeightShardLayout& layout = piece.layout;
  std::vector<SlotCopy> copies = {{0, piece.units, piece.unit_offset, layout.unit_bytes}};
  if (piece.scales != nullptr) {
    copies.push_back({layout.unit_bytes, piece.scales, piece.scale_offset, layout.scale_bytes});
  }
  ring.submit(slot, copies);
}

void pack_into(const PackBand& pack, const WeightShardLayout& layout, uint64_t band, std::span<std::byte> slot) {
  const auto words = [&](uint64_t start, uint64_t bytes) {
    return std::span(reinterpret_cast<uint32_t*>(slot.data() + start + band * bytes), bytes / 4);
  };
  pack(layout, band, words(0, layout.band_unit_bytes()), words(layout.unit_bytes, layout.band_scale_bytes()));
}

}  // namespace

void stream(UploadRing& ring, uint64_t& next_slot, std::span<const WeightPart> parts, WeightLayout layout,
            const std::vector<StreamPiece>& pieces) {
  UploadWork work;
  for (const StreamPiece& piece : pieces) work.bands.push_back(piece.layout.bands());
  work.bands_of_a_thread = bands_of_a_thread(pieces[0].layout);
  work.make_layout = [&]() -> LayOutBand {
    return [&pieces, pack = band_packer(parts, layout)](size_t piece, uint64_t band, std::span<std::byte> slot) {
      pack_into(pack, pieces[piece].layout, band, slot);
    };
  };
  work.send = [&](size_t piece, uint64_t slot) { submit_piece(ring, pieces[piece], slot); };
  stream_upload(ring, next_slot, work);
}

}  // namespace canopy::vk

#include "engine/vulkan/weight_stream.h"

#include "engine/vulkan/weight_repack.h"

namespace canopy::vk {
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

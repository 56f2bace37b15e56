#include "engine/vulkan/weight_upload.h"

#include <algorithm>
#include <vector>

#include "engine/vulkan/weight_repack.h"
#include "engine/vulkan/weight_stream.h"

namespace canopy::vk {
namespace {

// A new buffer's own words where its memory is the host's, so that no second copy is needed; else nothing.
std::span<uint32_t> words_in_place(const Context& context, const Buffer& buffer) {
  const DeviceType type = context.report().type;
  const bool unified = type == DeviceType::cpu || type == DeviceType::integrated;
  if (!unified || buffer.mapped().empty() || !buffer.coherent()) return {};
  return {reinterpret_cast<uint32_t*>(buffer.mapped().data()), buffer.bytes() / 4};
}

// The shards cut into pieces of whole bands that slots hold.
std::vector<StreamPiece> pieces_of(const VulkanWeight& weight, uint64_t slot_bytes) {
  std::vector<StreamPiece> pieces;
  for (const WeightShard& shard : weight.shards) {
    const WeightShardLayout& whole = shard.layout;
    const uint64_t unit_bytes = whole.band_unit_bytes(), scale_bytes = whole.band_scale_bytes();
    const uint64_t most = slot_bytes / (unit_bytes + scale_bytes);  // bands
    for (uint64_t first = 0; first < whole.bands(); first += most) {
      const uint64_t bands = std::min(most, whole.bands() - first);
      const auto first_row = static_cast<uint32_t>(first * kBandRows);
      const auto stored_rows = static_cast<uint32_t>(bands * kBandRows);
      const WeightShardLayout layout = {whole.first_row + first_row, std::min(stored_rows, whole.rows - first_row),
                                        stored_rows, bands * unit_bytes, bands * scale_bytes};
      pieces.push_back(
          {layout, &shard.units, shard.scales ? &shard.scales : nullptr, first * unit_bytes, first * scale_bytes});
    }
  }
  return pieces;
}

// In place, or through a ring of slots: the device copies from some while all cores repack into the next.
void fill(DeviceState& state, const VulkanWeight& weight, std::span<const WeightPart> parts, WeightLayout layout) {
  const Context& context = *state.context;
  if (!words_in_place(context, weight.shards[0].units).empty()) {
    for (const WeightShard& shard : weight.shards) {
      repack(parts, layout, shard.layout, words_in_place(context, shard.units), words_in_place(context, shard.scales));
    }
    return;
  }
  const WeightShardLayout& shard = weight.shards[0].layout;
  const uint64_t slot_bytes = std::max(UploadRing::kSlotBytes, shard.band_unit_bytes() + shard.band_scale_bytes());
  if (state.ring == nullptr || state.ring->slot_bytes() < slot_bytes) {
    state.ring.reset();
    state.ring = std::make_unique<UploadRing>(*state.context, slot_bytes);
  }
  stream(*state.ring, state.next_slot, parts, layout, pieces_of(weight, slot_bytes));
}

}  // namespace

uint64_t shard_limit(const DeviceState& state) {
  const DeviceLimits& limits = state.context->limits();
  uint64_t limit = std::min(limits.max_storage_range, state.context->max_block());
  return limit;
}

void expect_weights(DeviceState& state, std::span<const WeightRequest> requests) {
  std::vector<uint64_t> buffers;
  for (const WeightRequest& request : requests) {
    for (const auto& shard :
         shard_rows(request.parts[0].type, joined_extent(request.parts, request.layout), shard_limit(state))) {
      buffers.push_back(shard.unit_bytes);
      if (shard.scale_bytes > 0) buffers.push_back(shard.scale_bytes);
    }
  }
  state.ring.reset();
  state.arena.reset();
  if (!buffers.empty()) state.arena = std::make_unique<BufferArena>(*state.context, std::move(buffers));
}

std::unique_ptr<VulkanWeight> upload_weight(DeviceState& state, std::span<const WeightPart> parts, WeightLayout layout,
                                            std::string_view name) {
  Context& context = *state.context;
  const auto make = [&](uint64_t bytes) {
    return state.arena ? state.arena->create(bytes, name) : context.create_buffer(BufferKind::device, bytes, name);
  };
  const WeightExtent extent = joined_extent(parts, layout);
  auto weight = std::make_unique<VulkanWeight>(parts[0].type, extent.rows, extent.cols);
  for (const WeightShardLayout& shard_layout : shard_rows(parts[0].type, extent, shard_limit(state))) {
    WeightShard& shard = weight->shards.emplace_back();
    shard.layout = shard_layout;
    shard.units = make(shard_layout.unit_bytes);
    if (shard_layout.scale_bytes > 0) shard.scales = make(shard_layout.scale_bytes);
    if (shard_layout.scale_bytes == 0) continue;
  }
  fill(state, *weight, parts, layout);
  return weight;
}

uint64_t weight_bytes(const DeviceState& state, std::span<const WeightPart> parts, WeightLayout layout) {
  uint64_t bytes = 0;
  for (const auto& shard : shard_rows(parts[0].type, joined_extent(parts, layout), shard_limit(state))) {
    bytes += shard.unit_bytes + shard.scale_bytes;
  }
  return bytes;
}

}  // namespace canopy::vk

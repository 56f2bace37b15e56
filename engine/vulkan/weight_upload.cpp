#include "engine/vulkan/weight_upload.h"

#include <algorithm>
#include <vector>

#include "engine/vulkan/weight_repack.h"

namespace canopy::vk {
namespace {

constexpr uint64_t kUploadPiece = 8ull << 20;  // bytes repacked while as many are on their way

// A new buffer's own words where its memory is the host's, so that no second copy is needed; else nothing.
std::span<uint32_t> words_in_place(const Context& context, const Buffer& buffer) {
  const DeviceType type = context.report().type;
  const bool unified = type == DeviceType::cpu || type == DeviceType::integrated;
  if (!unified || buffer.mapped().empty() || !buffer.coherent()) return {};
  return {reinterpret_cast<uint32_t*>(buffer.mapped().data()), buffer.bytes() / 4};
}

// In place, or piece by piece: the device copies one while all cores repack the next.
void fill(Context& context, const WeightShard& shard, std::span<const WeightPart> parts, WeightLayout layout) {
  if (const std::span<uint32_t> units = words_in_place(context, shard.units); !units.empty()) {
    return repack(parts, layout, shard.layout, units, words_in_place(context, shard.scales));
  }
  const WeightShardLayout& whole = shard.layout;
  const uint64_t band_bytes = whole.unit_bytes / (whole.stored_rows / kBandRows);
  std::vector<uint32_t> units, scales;
  uint64_t units_done = 0, scales_done = 0;
  for (WeightShardLayout piece :
       shard_rows(parts[0].type, {whole.rows, parts[0].cols}, std::max(kUploadPiece, band_bytes))) {
    piece.first_row += whole.first_row;
    units.resize(piece.unit_bytes / 4);
    scales.resize(piece.scale_bytes / 4);
    repack(parts, layout, piece, units, scales);
    context.upload(shard.units, units_done, as_bytes_of(units));
    if (!scales.empty()) context.upload(shard.scales, scales_done, as_bytes_of(scales));
    units_done += piece.unit_bytes;
    scales_done += piece.scale_bytes;
  }
}

}  // namespace

uint64_t shard_limit(const DeviceState& state) {
  const DeviceLimits& limits = state.context->limits();
  uint64_t limit = std::min(limits.max_storage_range, state.context->max_block());
  if (state.texel_fetch) limit = std::min(limit, limits.max_texel_elements * 16);
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
  state.arena.emplace(*state.context, std::move(buffers));
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
    fill(context, shard, parts, layout);
    if (state.texel_fetch) shard.unit_texels = context.create_view(shard.units, 0, shard_layout.unit_bytes, 4);
    if (shard_layout.scale_bytes == 0) continue;
    if (state.texel_fetch) shard.scale_texels = context.create_view(shard.scales, 0, shard_layout.scale_bytes, 4);
  }
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

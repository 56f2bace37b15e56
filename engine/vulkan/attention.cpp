#include "engine/vulkan/attention.h"

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"
#include "engine/compute/ops.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {
namespace {

// Partial results in memory at a time; passes of more rows take several turns.
constexpr uint64_t kMostScratch = uint64_t{64} << 20;
// With fewer workgroups a large device is not busy: then chunks go to workgroups one by one.
constexpr uint64_t kEnoughWorkgroups = 256;
constexpr uint64_t kAlignment = 256;  // of a storage binding, on any device
// A step of its own for the merge takes about as long as so many loads that wait for each other.
constexpr uint32_t kMostMergeRounds = 8;
constexpr uint32_t kMergedTogether = 4;  // entries that are loaded together, of two quads: attention_part.comp

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

uint32_t units_of(const AttentionExtent& extent, uint32_t unit_chunks) {
  const uint64_t positions = uint64_t{unit_chunks} * kAttentionChunk;
  const uint64_t units = (extent.keys + positions - 1) / positions + (extent.windowed ? 1 : 0);
  return static_cast<uint32_t>(std::max<uint64_t>(units, 1));
}

// Of the workgroup of the first step that comes last for all its rows.
uint32_t merge_rounds(const AttentionTile& tile, const AttentionExtent& extent, uint32_t entries) {
  const uint32_t quad_pairs = tile.queries * ((extent.head_dim / 4 + 1) / 2);
  return (quad_pairs + tile.lanes - 1) / tile.lanes * ((entries + kMergedTogether - 1) / kMergedTogether);
}

}  // namespace

uint32_t head_slices(uint32_t head_dim, CacheType type) {
  const uint32_t elements = type == CacheType::f32 ? 32 : 64;
  return (head_dim + elements - 1) / elements;
}

AttentionTile attention_tile(uint64_t queries, uint32_t slices, const AttentionDevice& device) {
  if (device.software) return {16, 4};
  if (queries <= 4) return {64, 4};
  if (queries <= 8) return {64, 8};
  // 32 queries take more shared memory than every device has, and with long heads more registers than there are.
  constexpr uint32_t wide_tile_bytes = 24 << 10, most_slices = 2;
  if (queries <= 16 || device.max_shared_bytes < wide_tile_bytes || slices > most_slices) return {128, 16};
  return {128, 32};
}

AttentionPlan plan_attention(const AttentionExtent& extent, const AttentionDevice& device) {
  const uint32_t group = extent.heads / extent.kv_heads;
  AttentionPlan plan;
  const uint32_t slices = head_slices(extent.head_dim, extent.type);
  plan.tile = attention_tile(uint64_t{extent.width} * group, slices, device);
  plan.own_tile = attention_tile(group, slices, device);
  const uint64_t spans = units_of(extent, kSpanChunks);
  const uint64_t workgroups = spans * extent.kv_heads * plan.tiles(extent.width, group);
  plan.unit_chunks = workgroups >= kEnoughWorkgroups || device.software ? kSpanChunks : 1;
  plan.units = units_of(extent, plan.unit_chunks);
  plan.entries_per_row = uint64_t{extent.heads} * (plan.units + kOwnChunks);
  const uint64_t entry_bytes = (uint64_t{extent.head_dim} + 2) * sizeof(float);
  const uint64_t rows = kMostScratch / (plan.entries_per_row * entry_bytes);
  plan.rows_at_a_time = static_cast<uint32_t>(std::clamp<uint64_t>(rows, 1, extent.width));
  const uint64_t entries = plan.entries_per_row * plan.rows_at_a_time;
  plan.output_bytes = rounded_up(entries * extent.head_dim * sizeof(float), kAlignment);
  plan.scratch_bytes = plan.output_bytes + entries * 2 * sizeof(float);
  plan.merge_rounds = merge_rounds(plan.tile, extent, plan.units);
  plan.merges = plan.rows_at_a_time >= extent.width && plan.merge_rounds <= kMostMergeRounds;
  return plan;
}

uint64_t attention_scratch_bytes(const AttentionExtent& extent, const AttentionDevice& device) {
  const AttentionPlan widest = plan_attention(extent, device);
  const uint64_t heads_of_rows = uint64_t{extent.heads} * extent.width;
  const uint64_t of_spans = heads_of_rows * (units_of(extent, kSpanChunks) + kOwnChunks);
  // Chunks go one by one while there are fewer spans * kv_heads * tiles than kEnoughWorkgroups; a tile has so many
  // queries, each of which has an entry for each chunk.
  const uint64_t of_few = kEnoughWorkgroups * kSpanChunks * widest.tile.queries + heads_of_rows * kOwnChunks;
  const uint64_t of_chunks = heads_of_rows * (units_of(extent, 1) + kOwnChunks);
  const uint64_t entry_bytes = (uint64_t{extent.head_dim} + 2) * sizeof(float);
  const uint64_t bytes = std::min(std::max(of_spans, of_few), of_chunks) * entry_bytes;
  const uint64_t of_a_row = uint64_t{extent.heads} * (units_of(extent, kSpanChunks) + kOwnChunks) * entry_bytes;
  return std::min(bytes, std::max(kMostScratch, of_a_row)) + kAlignment;
}

// Heads: rotation and K/V store, attention, and moves between slots.

namespace {

void require_shape(const KvShape& own, const KvShape& shape, const char* op) {
  if (own == shape) return;
  throw bad_input(std::string(op) + " is given a K/V cache of another shape than its arguments say.");
}

uint32_t slot_words(const KvShape& shape) {
  return static_cast<uint32_t>(slot_bytes(shape) / sizeof(uint32_t));
}

}  // namespace

const VulkanKv& checked_kv(const KvLayer& layer, const KvShape& shape, const char* op) {
  const VulkanKv& kv = kv_of(layer);
  require_shape(kv.shape, shape, op);
  return kv;
}

Binding queries_of(const RopeStoreArgs& args, const Buffer& none) {
  if (args.heads == 0) return Binding(none);
  return words(*args.q, uint64_t{args.width} * args.heads * args.shape.head_dim, "The queries of a pass");
}

template <>
void VulkanRecorder::record_op(const RopeStoreArgs& args) {
  if (args.cache == nullptr && args.shape.kv_heads != 0) throw bad_input("rope_store has K and V, but no K/V cache.");
  const VulkanKv* kv = args.cache != nullptr ? &checked_kv(*args.cache, args.shape, "rope_store") : nullptr;
  const uint32_t dim = args.shape.head_dim;
  const uint32_t all_heads = args.row_heads();
  struct Push {
    uint32_t heads, kv_heads;
    float norm_eps;
    uint32_t query_offset;
  };
  const KernelOptions options{{{0, state_.software ? 8u : 32u},
                               {1, dim},
                               {2, args.interleaved ? 1u : 0u},
                               {3, args.q_norm != nullptr ? 1u : 0u},
                               {4, args.k_norm != nullptr ? 1u : 0u},
                               {5, args.v_norm != nullptr ? 1u : 0u}},
                              0};
  CommandList& list = this->list(0);
  const auto norm = [&](const canopy::Buffer* weight) {
    return weight != nullptr ? words(*weight, dim, "The head norm of rope_store") : Binding(state_.dummy);
  };
  const std::vector<Binding> bindings = {
      words(*args.qkv, uint64_t{args.width} * all_heads * dim, "The input of rope_store"),
      words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of rope_store"),
      whole(*args.rotation),
      norm(args.q_norm),
      norm(args.k_norm),
      queries_of(args, state_.written_dummy),
      kv != nullptr ? kv->keys : Binding(state_.written_dummy),
      kv != nullptr ? kv->values : Binding(state_.written_dummy),
      norm(args.v_norm)};
  list.bind(state_.context->kernel(cache_shader("rope_store", args.shape.type), options), bindings,
            bytes_of(Push{args.heads, args.shape.kv_heads, args.norm_eps, args.query_offset}));
  list.dispatch(all_heads, args.width);
  list.barrier();
}

namespace {

Binding pages_of(const AttentionArgs& args) {
  return words(*args.pages, (uint64_t{args.max_positions} + kPagePositions - 1) / kPagePositions,
               "The page table of attention");
}

Binding sinks_of(const AttentionArgs& args, const Buffer& none) {
  return args.sinks != nullptr ? words(*args.sinks, args.heads, "The sinks of attention") : Binding(none);
}

SpecConstant has_sinks(const AttentionArgs& args) {
  return {9, args.sinks != nullptr ? 1u : 0u};
}

SpecConstant softcap_of(const AttentionArgs& args) {
  return {11, std::bit_cast<uint32_t>(args.softcap)};
}

}  // namespace

// Partial results of chunks of positions, then their merge (shaders/attention.glsl).
template <>
void VulkanRecorder::record_op(const AttentionArgs& args) {
  const VulkanKv& kv = checked_kv(*args.cache, args.shape, "attention");
  require_width(args.width, activations_of(*args.out), "attention");
  if (args.heads == 0 || args.heads % args.shape.kv_heads != 0) {
    throw bad_input("attention has " + std::to_string(args.heads) + " heads and " +
                    std::to_string(args.shape.kv_heads) + " K/V heads; allowed: a multiple of the K/V heads.");
  }
  struct PartPush {
    uint32_t first_row, rows, kv_heads, units;
    float scale;
    uint32_t shared_queries, own_groups;
  };
  struct MergePush {
    uint32_t first_row, heads, units;
  };
  const uint32_t dim = args.shape.head_dim, kv_heads = args.shape.kv_heads, group = args.heads / kv_heads;
  const uint32_t value_dim = args.shape.value_dim();
  const uint32_t q_width = args.heads * dim;
  const AttentionPlan plan = plan_attention({.width = args.width,
                                             .heads = args.heads,
                                             .kv_heads = kv_heads,
                                             .head_dim = value_dim,
                                             .type = args.shape.type,
                                             .keys = args.keys(),
                                             .windowed = args.window > 0},
                                            {state_.context->limits().max_shared_bytes, state_.software});
  const bool merges = plan.merges && !state_.separate_steps;
  const SpecConstant mask{3, args.mask == AttentionMask::block ? 1u : 0u}, window{4, args.window},
      sinks = has_sinks(args);
  const auto part_kernel = [&](const AttentionTile& tile, bool own) -> const Kernel& {
    return state_.context->kernel(cache_shader("attention_part", args.shape.type),
                                  {{{0, tile.lanes},
                                    {1, dim},
                                    {2, group},
                                    mask,
                                    window,
                                    {5, tile.queries},
                                    {6, own ? 1u : 0u},
                                    {7, own ? 1u : plan.unit_chunks},
                                    {8, merges ? plan.unit_chunks : 0u},
                                    sinks,
                                    {10, value_dim},
                                    softcap_of(args)},
                                   0});
  };
  const uint32_t quad_lanes = state_.software ? 4 : std::min(32u, std::bit_ceil(value_dim / 4));
  const uint64_t spans = (args.keys() + kSpanChunks * kAttentionChunk - 1) / (kSpanChunks * kAttentionChunk) + 1;
  const uint32_t most_lanes = value_dim > 256 ? 4 : 8;  // whose outputs fit the shared memory that every device has
  const uint32_t span_lanes =
      state_.software ? 1 : static_cast<uint32_t>(std::min<uint64_t>(most_lanes, std::bit_ceil(spans)));
  const KernelOptions merge{
      {{0, quad_lanes}, {1, value_dim}, mask, window, {5, span_lanes}, {7, plan.unit_chunks}, sinks}, 0};

  const Binding rows = words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of attention");
  const Binding q = words(*args.q, uint64_t{args.width} * q_width, "The queries of attention");
  const Buffer& space = scratch(plan.scratch_bytes, "partial attention");
  const Binding outputs(space, 0, plan.output_bytes);
  const Binding sums(space, plan.output_bytes, plan.scratch_bytes - plan.output_bytes);
  const Binding out = activations_of(*args.out).values;
  const std::vector<Binding> inputs = {kv.keys,
                                       kv.values,
                                       q,
                                       rows,
                                       whole(*args.ancestors),
                                       outputs,
                                       sums,
                                       pages_of(args),
                                       counters(merges ? args.width * kv_heads : 0),
                                       out,
                                       sinks_of(args, state_.dummy)};
  const uint32_t own_pieces = (group + plan.own_tile.queries - 1) / plan.own_tile.queries;
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  for (uint32_t first = 0; first < args.width; first += plan.rows_at_a_time) {
    const uint32_t count = std::min(plan.rows_at_a_time, args.width - first);
    const PartPush push{first, count, kv_heads, plan.units, args.scale, plan.tile.queries, own_pieces * kOwnChunks};
    list.bind(part_kernel(plan.tile, false), inputs, bytes_of(push));
    list.dispatch(plan.tiles(count, group), plan.units, kv_heads);
    list.bind(part_kernel(plan.own_tile, true), inputs, bytes_of(push));
    list.dispatch(count * own_pieces, kOwnChunks, kv_heads);
    list.barrier();
    if (merges) continue;
    list.bind(state_.context->kernel("attention_merge", merge), {rows, outputs, sums, out, inputs.back()},
              MergePush{first, args.heads, plan.units});
    list.dispatch(args.heads, count);
    list.barrier();
  }
}

template <>
void VulkanRecorder::record_op(const KvMoveArgs& args) {
  const auto& cache = static_cast<const VulkanKvCache&>(*args.cache);
  require_shape(cache.shape, args.shape, "kv_move");
  if (args.count > kMaxKvMoves) {
    throw bad_input("kv_move is asked for " + std::to_string(args.count) + " moves; at most " +
                    std::to_string(kMaxKvMoves) + " are possible.");
  }
  struct Push {
    uint32_t count, slot_words, plane_words;
  };
  const Push push{args.count, slot_words(args.shape), cache.plane_words};
  CommandList& list = this->list(0);
  const Kernel& kernel = state_.context->kernel("kv_move", {{{0, std::bit_ceil(args.count)}}, 0});
  const Binding moves = words(*args.moves, uint64_t{args.count} * 2, "The moves of kv_move");
  for (const VulkanKvCache::Shard& shard : cache.shards) {
    list.bind(kernel, {moves, *shard.memory}, push);
    list.dispatch((push.slot_words + 31) / 32, shard.planes);
  }
  list.barrier();
}

}  // namespace canopy::vk

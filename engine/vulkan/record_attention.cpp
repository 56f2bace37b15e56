// Heads: rotation and K/V store, attention, and moves between slots.

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/error.h"
#include "engine/compute/kv_slots.h"
#include "engine/vulkan/attention_plan.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

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
  const VulkanKv& kv = checked_kv(*args.cache, args.shape, "rope_store");
  const uint32_t dim = args.shape.head_dim;
  const uint32_t all_heads = args.heads + 2 * args.shape.kv_heads;
  struct Push {
    uint32_t heads, kv_heads;
    float norm_eps;
  };
  const KernelOptions options{{{0, state_.software ? 8u : 32u},
                               {1, dim},
                               {2, args.interleaved ? 1u : 0u},
                               {3, args.q_norm != nullptr ? 1u : 0u},
                               {4, args.k_norm != nullptr ? 1u : 0u}},
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
      kv.keys,
      kv.values};
  list.bind(state_.context->kernel(cache_shader("rope_store", args.shape.type), options), bindings,
            bytes_of(Push{args.heads, args.shape.kv_heads, args.norm_eps}));
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

// Partial results of chunks of positions, then their merge (shaders/partials.glsl).
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
  const uint32_t q_width = args.heads * dim;
  const AttentionPlan plan = plan_attention({.width = args.width,
                                             .heads = args.heads,
                                             .kv_heads = kv_heads,
                                             .head_dim = dim,
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
                                    softcap_of(args)},
                                   0});
  };
  const uint32_t quad_lanes = state_.software ? 4 : std::min(32u, std::bit_ceil(dim / 4));
  const uint64_t spans = (args.keys() + kSpanChunks * kAttentionChunk - 1) / (kSpanChunks * kAttentionChunk) + 1;
  const uint32_t span_lanes = state_.software ? 1 : static_cast<uint32_t>(std::min<uint64_t>(8, std::bit_ceil(spans)));
  const KernelOptions merge{{{0, quad_lanes}, {1, dim}, mask, window, {5, span_lanes}, {7, plan.unit_chunks}, sinks},
                            0};

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

#include "engine/predict/attention_work.h"

#include <algorithm>
#include <cmath>

#include "engine/vulkan/attention_plan.h"

namespace canopy::predict {
namespace {

// Instructions for a query and a key beside their products: exponential, maximum, mask.
constexpr double kScoreOps = 8;
// Of the rate of multiply-adds: RADV makes 1.1 instructions of one with 32 queries at a time, 2 with 4.
constexpr double kWideShare = 0.9, kNarrowShare = 0.5;
// A workgroup brings 128 bytes of each of 64 positions at a time, and computes in between.
constexpr double kSliceBytes = 64 * 128, kLoading = 0.6;
// Keys whose results a workgroup of the merge loads together: of 8 spans (record_attention.cpp).
constexpr double kMergedAtOnce = 8.0 * vk::kSpanChunks * kAttentionChunk;
// Positions at the end that a row does not share with others: those of a tree, to a whole chunk.
constexpr double kOwnPositions = vk::kOwnChunks * kAttentionChunk;

double pieces(double count, double size) {
  return std::ceil(count / size);
}

struct AttentionSizes {
  double width, keys, kv_heads, group, head_dim, head_bytes;

  explicit AttentionSizes(const AttentionArgs& args)
      : width(args.width),
        keys(static_cast<double>(args.keys())),
        kv_heads(args.shape.kv_heads),
        group(1.0 * args.heads / args.shape.kv_heads),
        head_dim(args.shape.head_dim),
        head_bytes(args.shape.head_dim * mean_element_bytes(args.shape)) {}
  double queries() const { return width * group; }  // of a K/V head
  double memory_bytes() const { return 2 * keys * kv_heads * head_bytes; }
  /// Queries and outputs of all heads.
  double row_bytes() const { return 2 * width * kv_heads * group * head_dim * sizeof(float); }
  /// Of so many queries, padding included, with so many keys each, in all K/V heads.
  double lane_ops(double queries, double keys, double share) const {
    return kv_heads * queries * keys * (2 * head_dim / share + kScoreOps);
  }
};

Work work_of_parts(const AttentionArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  const AttentionSizes sizes(args);
  const vk::AttentionDevice limits{.max_shared_bytes = static_cast<uint32_t>(device.workgroup_shared_bytes())};
  const vk::AttentionPlan plan = vk::plan_attention(
      {args.width, args.heads, args.shape.kv_heads, args.shape.head_dim, args.shape.type, args.keys(), args.window > 0},
      limits);
  const double own = std::min(sizes.keys, kOwnPositions), shared = sizes.keys - own;
  const double unit = plan.unit_chunks * kAttentionChunk;
  const double units = pieces(shared, unit), tiles = pieces(sizes.queries(), plan.tile.queries);
  const double own_queries = plan.own_tile.queries, own_pieces = pieces(sizes.group, own_queries);
  const double own_groups = sizes.width * own_pieces;  // of a K/V head, for each chunk

  Work work;
  work.workgroups = sizes.kv_heads * (units * tiles + own_groups * pieces(own, kAttentionChunk));
  work.workgroups_reading_memory = sizes.kv_heads * (units + pieces(own, kAttentionChunk));
  work.invocations = plan.tile.lanes;
  work.bytes_in_flight =
      rules.attention_bytes_in_flight > 0 ? plan.tile.lanes * rules.attention_bytes_in_flight : kSliceBytes * kLoading;
  work.longest_memory_bytes = 2 * sizes.head_bytes * std::max(std::min(shared, unit), std::min(own, 64.0));
  work.memory_bytes = sizes.memory_bytes();
  const double read_again = shared * (tiles - 1) + own * (own_groups - 1);
  const double entries = sizes.kv_heads * sizes.queries() * (units + pieces(own, kAttentionChunk));
  work.cache_bytes = sizes.row_bytes() + 2 * sizes.kv_heads * sizes.head_bytes * read_again +
                     2 * entries * (sizes.head_dim + 2) * sizeof(float);
  const double share = plan.tile.queries >= 16 ? kWideShare : kNarrowShare;
  work.lane_ops = sizes.lane_ops(tiles * plan.tile.queries, shared, share) +
                  sizes.lane_ops(own_groups * own_queries, own, kNarrowShare);
  const bool merges = rules.last_finishes && plan.merges;
  work.steps = rules.attention_steps + (merges || !rules.last_finishes ? 0 : 1);
  // Counting, then the entries; a step of its own has those of its first spans at once, and then the next.
  work.tail_latencies = merges ? kCountLatencies + plan.merge_rounds : pieces(sizes.keys, kMergedAtOnce) - 1;
  return work;
}

/// A workgroup of 128 takes 8 rows and 256 positions.
Work work_of_rows(const AttentionArgs& args, const KernelRules& rules) {
  const AttentionSizes sizes(args);
  constexpr double span = 256, rows = 8, invocations = 128;
  const double spans = pieces(sizes.keys, span), row_groups = pieces(sizes.width, rows);
  const double padded = row_groups * std::min(sizes.width, rows);  // the fullest group decides
  Work work;
  work.workgroups = sizes.kv_heads * spans * row_groups;
  work.workgroups_reading_memory = sizes.kv_heads * spans;
  work.invocations = invocations;
  work.bytes_in_flight = invocations * rules.attention_bytes_in_flight;
  work.longest_memory_bytes = 2 * std::min(sizes.keys, span) * sizes.head_bytes;
  work.memory_bytes = sizes.memory_bytes();
  const double partials = spans > 1 ? 2 * spans : 0;
  work.cache_bytes = work.memory_bytes * (row_groups - 1) + (2 + partials) / 2 * sizes.row_bytes();
  work.lane_ops = sizes.lane_ops(padded * sizes.group, sizes.keys, kNarrowShare);
  work.steps = rules.attention_steps;
  return work;
}

}  // namespace

Work work_of_attention(const AttentionArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  return rules.splits_attention ? work_of_parts(args, rules, device) : work_of_rows(args, rules);
}

}  // namespace canopy::predict

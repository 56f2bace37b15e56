#include "engine/whatif/kernel_work.h"

#include <algorithm>
#include <cmath>

#include "engine/vulkan/attention.h"
#include "engine/vulkan/product_config.h"

namespace canopy::predict {
namespace {

// Of the compiler's ideal throughput: barriers, and waves that wait at the same time.
constexpr double kArithmeticShare = 0.8;
// Of a unit's issue slots that one wave fills of its own lanes' share, as its instructions depend on each other.
constexpr double kLoneWaveShare = 0.5;
// How reading, the cache and arithmetic overlap: the norm of their times. 1 would be one after the other, infinity the
// longest alone; at 4, two equal times take 1.19 of one.
constexpr double kOverlap = 4;

double norm_of(double a, double b, double c) {
  const double most = std::max({a, b, c});
  if (most <= 0) return 0;
  const auto power = [most](double x) { return std::pow(x / most, kOverlap); };
  return most * std::pow(power(a) + power(b) + power(c), 1 / kOverlap);
}

/// Workgroups that a unit holds at a time; a fraction where neighbouring units share their memory.
double resident_workgroups(const Work& work, const DeviceProfile& device) {
  const double lanes = device.resident_lanes * std::min(1.0, device.full_registers / work.registers);
  double most = lanes / work.invocations;
  if (work.shared_bytes > 0) most = std::min(most, device.shared_kb * 1024 / work.shared_bytes);
  return std::max(1.0, most);
}

struct MemoryTime {
  double us = 0;
  bool in_flight = false;  // the workgroups' requests decide, not the bandwidth
};

/// By Little's law a workgroup reads what it has in flight once in each latency; all together no more than the memory
/// gives.
MemoryTime memory_time(const Work& work, const DeviceProfile& device) {
  if (work.memory_bytes <= 0) return {};
  const double readers = work.workgroups_reading_memory > 0 ? work.workgroups_reading_memory : work.workgroups;
  const double longest = work.longest_memory_bytes > 0 ? work.longest_memory_bytes : work.memory_bytes / readers;
  const double bytes_a_us = work.bytes_in_flight / device.latency_us;  // of a workgroup
  const double rounds = std::max(1.0, readers / (device.units * resident_workgroups(work, device)));
  const double by_requests = rounds * longest / bytes_a_us;
  const double by_bandwidth = work.memory_bytes / (device.memory_gb_s * 1e3 * device.memory_share);
  return {std::max(by_requests, by_bandwidth), by_requests > by_bandwidth};
}

/// The unit that has most workgroups decides; with few waves at a time it does not fill its issue slots.
double arithmetic_time(const Work& work, const DeviceProfile& device) {
  const double lanes = work.lane_ops / (device.lane_tops() * 1e6);
  const double matrix = work.matrix_flops > 0 ? work.matrix_flops / (device.matrix_tflop_s * 1e6) : 0;
  const double evenly = device.matrix_overlaps ? std::max(lanes, matrix) : lanes + matrix;
  const double rounds = std::ceil(work.workgroups / device.units);
  const double at_a_time = std::min(rounds, resident_workgroups(work, device));
  const double filled = std::min(1.0, at_a_time * work.invocations * kLoneWaveShare / device.lanes_a_clock);
  return evenly * (rounds * device.units / work.workgroups) / (filled * kArithmeticShare);
}

Limit limit_of(const WorkTime& time, bool in_flight) {
  const double most = std::max({time.memory, time.cache, time.arithmetic, time.steps});
  if (time.memory == most) return in_flight ? Limit::in_flight : Limit::memory;
  if (time.cache == most) return Limit::cache;
  return time.arithmetic == most ? Limit::arithmetic : Limit::steps;
}

}  // namespace

const char* to_string(Limit limit) {
  switch (limit) {
    case Limit::memory: return "memory";
    case Limit::in_flight: return "bytes in flight";
    case Limit::cache: return "cache";
    case Limit::arithmetic: return "arithmetic";
    case Limit::steps: return "dispatches";
  }
  return "";
}

WorkTime time_of(const Work& work, const DeviceProfile& device) {
  const MemoryTime memory = memory_time(work, device);
  WorkTime time;
  time.memory = memory.us;
  time.cache = work.cache_bytes / (device.cache_tb_s * 1e6);
  time.arithmetic = arithmetic_time(work, device);
  time.steps = work.steps * (device.step_us - work.early_us + work.first_latencies * device.latency_us) +
               (work.cache_latencies + work.tail_latencies) * device.cache_latency_us;
  time.total = norm_of(time.memory, time.cache, time.arithmetic) + time.steps;
  time.limit = limit_of(time, memory.in_flight);
  return time;
}

namespace {

constexpr uint32_t kSubgroup = 32;
constexpr uint32_t kBlock = 32;  // columns that an invocation of the products by multiply-adds fetches at a time
// Of llama.cpp's mat-vec kernels: 32 bytes of a 4-bit type in flight for each of 64 invocations, over two rows.
constexpr double kMatVecColumns = 1800;
constexpr vk::MatrixShape kMatrix{.m = 16, .n = 16, .k = 16};

/// Of 8-bit integers.
vk::MatrixShape integer_shape(const DeviceProfile& device) {
  return {16,
          16,
          device.integer_depth,
          vk::MatrixType::s8,
          vk::MatrixType::s8,
          vk::MatrixType::s32,
          vk::MatrixType::s32,
          vk::MatrixScope::subgroup};
}

/// What drivers of such a device report, as far as the choices read it.
vk::DeviceLimits limits_of(const DeviceProfile& device) {
  vk::DeviceLimits limits;
  limits.max_invocations = 1024;
  limits.max_group_size = {1024, 1024, 64};
  limits.max_shared_bytes = static_cast<uint32_t>(device.workgroup_shared_bytes());
  limits.pinned_subgroup = kSubgroup;
  return limits;
}

ProductCut cut_of(const vk::FmaConfig& config) {
  const double step = 1.0 * kBlock * config.slices;
  return {1.0 * config.tile_rows(),   1.0 * config.columns,       step, step,
          1.0 * config.invocations(), 1.0 * config.shared_bytes()};
}

ProductCut cut_of(const vk::MatrixConfig& config, bool dense) {
  const double step = config.step, steps = dense ? 1 : config.ahead;
  return {1.0 * config.tile_rows(),   1.0 * config.columns,       steps * step, step,
          1.0 * config.invocations(), 1.0 * config.shared_bytes()};
}

std::vector<ProductCut> named_cuts(const Weight& weight, uint32_t width, Kernels kernels, const DeviceProfile& device) {
  const vk::DeviceLimits limits = limits_of(device);
  const vk::ProductShape shape{weight.rows(), weight.cols(), chunk_columns(weight.rows(), weight.cols()), width};
  switch (kernels) {
    case Kernels::fma: return {cut_of(vk::choose_fma(shape, vk::kMostFmaColumns, false, limits))};
    case Kernels::matrix:
    case Kernels::matrix_i8: {
      const vk::MatrixShape matrix = kernels == Kernels::matrix ? kMatrix : integer_shape(device);
      std::vector<ProductCut> cuts;
      for (const vk::MatrixConfig& config :
           vk::matrix_candidates(shape, matrix, vk::kMostMatrixColumns, false, limits)) {
        cuts.push_back(cut_of(config, is_dense(weight.type())));
      }
      return cuts;
    }
    case Kernels::cuda: break;  // op_work.cpp has them
    case Kernels::llama_cpp:
      return {
          {.rows = 2, .columns = 1, .columns_in_flight = kMatVecColumns, .step = kMatVecColumns, .invocations = 64}};
    default: break;  // processor_work.cpp has them
  }
  return {{}};
}

/// Of a product with experts: its pairs, and on matrix cores its workgroups, whose columns are pairs.
struct ExpertCut {
  vk::PairTiles tiles;
  ProductCut cut;
};

ExpertCut cut_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width, bool matrix_cores,
                         const DeviceProfile& device) {
  const vk::ExpertShape shape{experts, weight.rows() / experts.all,       weight.cols(),
                              width,   matrix_cores ? &kMatrix : nullptr, false};
  const vk::ExpertVariant variant = vk::choose_experts_by_rule(shape, limits_of(device));
  return {variant.tiles, variant.matrix ? cut_of(*variant.matrix, is_dense(weight.type())) : ProductCut{}};
}

}  // namespace

std::vector<ProductCut> cuts_of(const Weight& weight, uint32_t width, const KernelRules& rules,
                                const DeviceProfile& device) {
  std::vector<ProductCut> cuts = named_cuts(weight, width, rules.kernels, device);
  for (ProductCut& cut : cuts) {
    if (rules.tile_rows > 0) cut.rows = rules.tile_rows;
    if (rules.tile_columns > 0) cut.columns = rules.tile_columns;
    if (rules.invocations > 0) cut.invocations = rules.invocations;
    if (rules.columns_in_flight > 0) cut.columns_in_flight = cut.step = rules.columns_in_flight;
  }
  return cuts;
}

namespace {

// Instructions for a query and a key beside their products: exponential, maximum, mask.
constexpr double kScoreOps = 8;
// Of the rate of multiply-adds: RADV makes 1.1 instructions of one with 32 queries at a time, 2 with 4.
constexpr double kWideShare = 0.9, kNarrowShare = 0.5;
// A workgroup brings 128 bytes of each of 64 positions at a time, and computes in between.
constexpr double kSliceBytes = 64 * 128, kLoading = 0.6;
// Keys whose results a workgroup of the merge loads together: of 8 spans (attention_merge.comp).
constexpr double kMergedAtOnce = 8.0 * vk::kSpanChunks * kAttentionChunk;
// Positions at the end that a row does not share with others: those of a tree, to a whole chunk.
constexpr double kOwnPositions = vk::kOwnChunks * kAttentionChunk;

double pieces(double count, double size) {
  return std::ceil(count / size);
}

struct AttentionSizes {
  double width, keys, kv_heads, group, head_dim, head_bytes;
  double planes;  // keys and values; keys alone of a latent cache

  explicit AttentionSizes(const AttentionArgs& args)
      : width(args.width),
        keys(static_cast<double>(args.keys())),
        kv_heads(args.shape.kv_heads),
        group(1.0 * args.heads / args.shape.kv_heads),
        head_dim(args.shape.head_dim),
        head_bytes(args.shape.head_dim * mean_element_bytes(args.shape)),
        planes(args.shape.planes()) {}
  double queries() const { return width * group; }  // of a K/V head
  double memory_bytes() const { return planes * keys * kv_heads * head_bytes; }
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

namespace {

// engine/vulkan/record_products.cpp: of multiply-adds, rows of an expert and invocations of a workgroup.
constexpr double kTileRows = 64, kInvocations = 256;
constexpr double kBlockColumns = 32;  // of the weight, that an invocation has under way beside those it decodes
constexpr double kRegisters = 96;

/// What both kinds of kernels do: `tiles` of up to `columns` pairs, each with `rows` rows of a workgroup.
struct TiledExperts {
  double rows, cols, bytes;  // of an expert
  double pairs, touched, tiles;
  double columns;

  TiledExperts(const Weight& weight, const vk::PairTiles& of)
      : rows(1.0 * weight.rows() / of.experts.all),
        cols(weight.cols()),
        bytes(static_cast<double>(stored_bytes(weight)) / of.experts.all),
        pairs(of.pairs()),
        touched(of.experts.touched(of.width)),
        tiles(of.grouped ? touched * std::ceil(pairs / touched / of.columns) : pairs),
        columns(of.columns) {}

  double elements() const { return rows * cols; }
  Work work(double tile_rows) const {
    const double row_tiles = std::ceil(rows / tile_rows);
    Work work;
    work.memory_bytes = touched * bytes;
    work.cache_bytes = (tiles - touched) * bytes + 4 * pairs * row_tiles * cols + 4 * pairs * rows;
    work.workgroups = tiles * row_tiles;
    work.workgroups_reading_memory = touched * row_tiles;
    work.steps = 1;
    return work;
  }
};

Work work_of_multiply_adds(const Weight& weight, const vk::PairTiles& tiles) {
  const TiledExperts all(weight, tiles);
  const KernelRules rules = rules_of(Kernels::fma);
  Work work = all.work(kTileRows);
  work.invocations = kInvocations / std::max(1.0, all.columns / 2);
  work.registers = kRegisters;
  work.bytes_in_flight = work.invocations * kBlockColumns * all.bytes / all.elements();
  work.lane_ops =
      all.elements() * all.tiles * (decode_ops(Kernels::fma, weight.type()) + all.columns * rules.column_ops) +
      all.tiles * all.columns * std::ceil(all.rows / kTileRows) * all.cols * rules.stage_ops;
  return work;
}

/// A tile's matrices have all their columns, whatever pairs are there.
Work work_on_matrix_cores(const Weight& weight, const ExpertCut& of) {
  const TiledExperts all(weight, of.tiles);
  const ProductCut& cut = of.cut;
  const KernelRules rules = rules_of(Kernels::matrix);
  Work work = all.work(cut.rows);
  work.invocations = cut.invocations;
  work.shared_bytes = cut.shared_bytes;
  work.registers = rules.registers;
  const double columns_in_flight = cut.columns_in_flight - (1 - rules.loading) * cut.step;
  work.bytes_in_flight = cut.rows * columns_in_flight * all.bytes / all.elements();
  work.lane_ops = all.elements() * all.tiles * decode_ops(Kernels::matrix, weight.type()) +
                  std::ceil(all.rows / cut.rows) * all.pairs * all.cols * rules.stage_ops;
  work.matrix_flops = 2 * all.elements() * all.tiles * cut.columns;
  return work;
}

}  // namespace

Work work_of_route(const RouteArgs& args, const RouteKernel& kernel) {
  const double router_rows = args.experts.router_rows(), cols = args.in->cols(), router = 4 * router_rows * cols;
  const double groups = std::ceil(router_rows / kernel.experts);
  Work work;
  work.memory_bytes = router;
  work.cache_bytes = router * (args.width - 1) + static_cast<double>(args.price().bytes) - router;
  work.lane_ops = static_cast<double>(args.price().flops);
  work.invocations = kernel.invocations;
  work.workgroups = groups * args.width;
  work.workgroups_reading_memory = groups;
  work.bytes_in_flight = 4 * kernel.experts * std::min(kernel.columns_in_flight, cols);
  work.steps = kernel.steps;
  return work;
}

Work work_of_experts(const Weight& weight, const ExpertCounts& experts, uint32_t width, const KernelRules& rules,
                     const DeviceProfile& device) {
  const ExpertCut cut = cut_of_experts(weight, experts, width, rules.matrix_cores, device);
  return rules.matrix_cores ? work_on_matrix_cores(weight, cut) : work_of_multiply_adds(weight, cut.tiles);
}

}  // namespace canopy::predict

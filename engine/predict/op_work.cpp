#include "engine/predict/op_work.h"

#include <algorithm>
#include <cmath>

#include "engine/compute/product_split.h"

namespace canopy::predict {
namespace {

constexpr double kFloat = sizeof(float);
// Instructions for a query and a key beside their products: exponential, maximum, mask.
constexpr double kScoreOps = 8;
// Of the multiply-add rate that attention reaches: reductions across lanes between the products.
constexpr double kAttentionShare = 0.5;

double rounded_up(double a, double b) {
  return std::ceil(a / b);
}

/// A product of [rows, cols] with the rows of a pass.
struct ProductShape {
  double rows = 0, cols = 0, bytes = 0, width = 0;
  WeightType type = WeightType::f32;
};

ProductShape shape_of(const Weight& weight, uint32_t width, const KernelRules& rules) {
  return {static_cast<double>(weight.rows()), static_cast<double>(weight.cols()),
          static_cast<double>(stored_bytes(weight)), static_cast<double>(rules.buckets ? width_bucket(width) : width),
          weight.type()};
}

/// Bytes that workgroups fetch `times` over: what fits into half of the last-level cache comes from memory once.
struct Reading {
  double memory = 0, cache = 0;
};
Reading read_again(double bytes, double times, bool from_memory, const DeviceProfile& device) {
  if (from_memory && bytes > device.cache_mb * 1e6 / 2) return {bytes * times, 0};
  return {bytes, bytes * (times - 1)};
}

/// Activations from the shared cache, once for each workgroup; once for each unit where its own cache holds them all.
double activation_bytes(const ProductShape& product, double workgroups, double row_tiles, const KernelRules& rules,
                        const DeviceProfile& device) {
  const double all = product.width * product.cols * rules.activation_bytes;
  const bool stays = all <= device.local_kb * 1e3 / 2;
  return all * (stays ? std::min(row_tiles, std::min(workgroups, static_cast<double>(device.units))) : row_tiles);
}

Work product_work(const ProductShape& product, const KernelRules& rules, const DeviceProfile& device) {
  const double row_tiles = rounded_up(product.rows, rules.tile_rows);
  const auto rows = static_cast<uint32_t>(product.rows), cols = static_cast<uint32_t>(product.cols);
  const double chunks = rules.splits_columns ? chunk_count(rows, cols) : 1;
  const double column_tiles = rounded_up(product.width, rules.tile_columns);
  const double columns = std::max(product.width, rules.least_columns);  // of all tiles
  const double weights = product.rows * product.cols;

  Work work;
  work.workgroups = row_tiles * chunks * column_tiles;
  work.workgroups_reading_memory = rules.repeats_weights ? 0 : row_tiles * chunks;
  work.invocations = rules.invocations;
  if (rules.slice_columns > 0) {
    const double slices = std::max(1.0, std::floor(product.cols / chunks / rules.slice_columns));
    work.invocations = std::min(rules.invocations, rules.tile_rows * slices);
  }
  work.bytes_in_flight = rules.bytes_in_flight;
  work.occupancy = rules.occupancy;

  const Reading reading = read_again(product.bytes, column_tiles, rules.repeats_weights, device);
  work.memory_bytes = reading.memory;
  const double sums = chunks > 1 ? 2 * chunks : 0;  // partial sums, written and read
  work.cache_bytes = reading.cache + activation_bytes(product, work.workgroups, row_tiles, rules, device) +
                     (1 + sums) * product.width * product.rows * kFloat;
  work.tail_latencies = chunks > 1 ? 2 : 0;  // the last workgroup of a tile counts itself, then adds the sums

  const double decoding = rules.decode_ops * decode_factor(product.type) + rules.other_ops;
  work.lane_ops = weights * (column_tiles * decoding + columns * rules.ops_a_column);
  (rules.matrix_cores ? work.matrix_flops : work.f32_flops) = 2 * weights * columns;
  return work;
}

/// Products that run one after the other without waiting, or as one dispatch.
Work together(Work a, const Work& b) {
  const double workgroups = a.workgroups + b.workgroups;
  if (a.workgroups_reading_memory > 0) a.workgroups_reading_memory += b.workgroups_reading_memory;
  a.workgroups = workgroups;
  a.memory_bytes += b.memory_bytes;
  a.cache_bytes += b.cache_bytes;
  a.lane_ops += b.lane_ops;
  a.f32_flops += b.f32_flops;
  a.matrix_flops += b.matrix_flops;
  a.tail_latencies = std::max(a.tail_latencies, b.tail_latencies);
  return a;
}

/// By its price.
template <class Args>
Work work_of_args(const Args& args, const KernelRules&, const DeviceProfile& device) {
  const OpPrice price = args.price();
  const auto bytes = static_cast<double>(price.bytes);
  Work work;
  (bytes > device.cache_mb * 1e6 / 2 ? work.memory_bytes : work.cache_bytes) = bytes;
  work.f32_flops = static_cast<double>(price.flops);
  work.workgroups = std::max(1.0, bytes / 4096);
  return work;
}

Work work_of_args(const LinearArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = product_work(shape_of(*args.weight, args.width, rules), rules, device);
  work.steps = rules.linear_steps;
  return work;
}

Work work_of_args(const LinearAddArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = product_work(shape_of(*args.weight, args.width, rules), rules, device);
  work.cache_bytes += 2 * kFloat * args.width * args.weight->rows();  // x
  work.steps = rules.add_steps;
  return work;
}

Work work_of_args(const LinearSwigluArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = product_work(shape_of(*args.weight, args.width, rules), rules, device);
  work.steps = rules.swiglu_steps;
  return work;
}

Work work_of_args(const ProjectHeadsArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work;
  for (size_t i = 0; i < args.weights.size(); ++i) {
    const Work one = product_work(shape_of(*args.weights[i], args.heads.width, rules), rules, device);
    work = i == 0 ? one : together(work, one);
  }
  work.cache_bytes += static_cast<double>(args.heads.price().bytes);
  // Where q, k and v have different types, today's kernels wait between them.
  const double extra = rules.kernels == Kernels::today ? static_cast<double>(args.weights.size()) - 1 : 0;
  work.steps = rules.heads_steps + std::max(0.0, extra);
  return work;
}

Work work_of_args(const AttentionArgs& args, const KernelRules& rules, const DeviceProfile&) {
  const auto keys = static_cast<double>(args.keys());
  const double width = args.width;
  const double group = rules.attention_positions > 0 ? rules.attention_positions : keys;
  const double groups = rounded_up(keys, group);
  const double row_groups = rounded_up(width, rules.attention_rows);
  const double padded = row_groups * std::min(width, rules.attention_rows);             // the fullest group decides
  const double key_bytes = 2.0 * args.shape.head_dim * element_bytes(args.shape.type);  // K and V of a head
  const double q = static_cast<double>(args.heads) * args.shape.head_dim;
  Work work;
  work.workgroups = args.shape.kv_heads * groups * row_groups;
  work.workgroups_reading_memory = args.shape.kv_heads * groups;
  work.invocations = rules.attention_invocations;
  work.bytes_in_flight = rules.attention_bytes_in_flight;
  work.longest_memory_bytes = std::min(keys, group) * key_bytes;
  work.memory_bytes = keys * args.shape.kv_heads * key_bytes;
  const double partials = groups > 1 ? 2 * groups : 0;
  work.cache_bytes = work.memory_bytes * (row_groups - 1) + (2 + partials) * width * q * kFloat;
  work.f32_flops = 4 * padded * keys * q / kAttentionShare;
  work.lane_ops = kScoreOps * padded * keys * args.heads;
  work.steps = rules.attention_steps;
  return work;
}

template <class Args>
uint64_t bytes_of_weight(const Args&) {
  return 0;
}
uint64_t bytes_of_weight(const LinearArgs& args) {
  return stored_bytes(*args.weight);
}
uint64_t bytes_of_weight(const LinearAddArgs& args) {
  return stored_bytes(*args.weight);
}
uint64_t bytes_of_weight(const LinearSwigluArgs& args) {
  return stored_bytes(*args.weight);
}
uint64_t bytes_of_weight(const ProjectHeadsArgs& args) {
  uint64_t bytes = 0;
  for (const Weight* weight : args.weights) bytes += stored_bytes(*weight);
  return bytes;
}

}  // namespace

Work work_of(const Op& op, const KernelRules& rules, const DeviceProfile& device) {
  return std::visit([&](const auto& args) { return work_of_args(args, rules, device); }, op);
}

uint64_t weight_bytes_of(const Op& op) {
  return std::visit([](const auto& args) { return bytes_of_weight(args); }, op);
}

}  // namespace canopy::predict

#include "engine/predict/op_work.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/compute/product_split.h"
#include "engine/predict/attention_work.h"
#include "engine/predict/cuda_work.h"
#include "engine/predict/expert_work.h"
#include "engine/predict/product_cut.h"

namespace canopy::predict {
namespace {

constexpr double kFloat = sizeof(float);
// Of a recurrence: columns of a state that a workgroup of shaders/delta_net.comp has, one of each invocation;
// instructions for each element of the state and step, its decay, the products with key and query, the sum; and
// accesses to the cache of a step that wait for each other: which row it is, then its key and query.
constexpr uint32_t kStateColumns = 32;
constexpr double kStateOps = 4, kStepLatencies = 2;
constexpr double kHeadSums = 16;  // of squares, beside a head in shared memory: product_heads.comp

double rounded_up(double a, double b) {
  return std::ceil(a / b);
}

/// `bytes` of activations from the shared cache for every tile of weight rows; once for each unit where its own cache
/// holds them all.
double activation_bytes(double bytes, double row_tiles, double workgroups, const DeviceProfile& device) {
  const bool stays = bytes <= device.local_kb * 1e3 / 2;
  return bytes * (stays ? std::min({row_tiles, workgroups, static_cast<double>(device.units)}) : row_tiles);
}

/// Rows that the kernels' device pads a pass to.
uint32_t padded_width_of(uint32_t width, const KernelRules& rules) {
  DeviceInfo info;
  info.width_buckets = rules.width_buckets;
  return padded_width(info, width);
}

/// As f16 with f32 sums would take as long. Matrices deeper than the columns of one scale are half zeros.
double matrix_flops_of(const Weight& weight, double flops, const KernelRules& rules, const DeviceProfile& device) {
  if (rules.kernels != Kernels::matrix_i8) return flops;
  const double depth = device.integer_depth * scales_of_block(weight.type());
  return flops * std::max(1.0, depth / 32) * device.matrix_tflop_s / device.integer_tops;
}

/// Rows of the pass that a workgroup stages: those of whole subgroups, each of which has eight values of an invocation.
double staged_columns(double columns, uint32_t width, const ProductCut& cut, const KernelRules& rules) {
  if (!rules.stages_asked) return columns;
  const double of_subgroup = std::max(1.0, 32 * 8 / cut.step);
  return std::min(columns, rounded_up(width, of_subgroup) * of_subgroup);
}

/// With a width that the kernels' device pads passes to.
Work work_of_cut(const Weight& weight, uint32_t width, const ProductCut& cut, const KernelRules& rules,
                 const DeviceProfile& device) {
  const double row_tiles = rounded_up(weight.rows(), cut.rows);
  const double column_tiles = rounded_up(width, cut.columns);
  const double chunks = rules.splits_columns ? chunk_count(weight.rows(), weight.cols()) : 1;
  const double columns = rules.matrix_cores ? column_tiles * cut.columns : width;  // that are computed
  const double weights = double{1} * weight.rows() * weight.cols();
  const auto bytes = static_cast<double>(stored_bytes(weight));

  Work work;
  work.workgroups = row_tiles * chunks * column_tiles;
  work.invocations = cut.invocations;
  work.shared_bytes = cut.shared_bytes;
  // A step's place is empty only while that step is staged.
  const double columns_in_flight = cut.columns_in_flight - (1 - rules.loading) * cut.step;
  work.bytes_in_flight = cut.rows * columns_in_flight * bytes / weights;
  work.registers = rules.registers;

  work.memory_bytes = bytes;
  work.workgroups_reading_memory = row_tiles * chunks;
  const double sums = chunks > 1 ? 2 * chunks : 0;  // partial sums, written and read
  const double activations = double{1} * width * weight.cols();
  work.cache_bytes = bytes * (column_tiles - 1) +
                     activation_bytes(activations * rules.activation_bytes, row_tiles, work.workgroups, device) +
                     (1 + sums) * width * weight.rows() * kFloat;
  work.tail_latencies = chunks > 1 ? kCountLatencies + 1 : 0;  // the sums of a tile

  work.lane_ops = weights * (column_tiles * rules.decode * decode_ops(rules.kernels, weight.type()) +
                             columns * (rules.column_ops + scale_ops(rules.kernels, weight.type()))) +
                  row_tiles * staged_columns(columns, width, cut, rules) * weight.cols() * rules.stage_ops;
  if (rules.matrix_cores) work.matrix_flops = matrix_flops_of(weight, 2 * weights * columns, rules, device);
  return work;
}

struct CutWork {
  ProductCut cut;
  Work work;
};

/// Of the variants that there are, the one that takes least: the backend times them on its device, and takes that
/// (engine/vulkan/product_tuner.h). One that is hardly faster than its choice by rule changes nothing.
CutWork best_of_product(const Weight& weight, uint32_t pass_width, const KernelRules& all_rules,
                        const DeviceProfile& device) {
  constexpr double faster = 0.99;
  const KernelRules rules = rules_for(all_rules, weight.type());
  const uint32_t width = padded_width_of(pass_width, rules);
  std::optional<CutWork> best;
  double best_us = 0;
  for (const ProductCut& cut : cuts_of(weight, width, rules, device)) {
    const Work work = work_of_cut(weight, width, cut, rules, device);
    const double us = time_of(work, device).total;
    if (best && us > faster * best_us) continue;
    best = CutWork{cut, work};
    best_us = us;
  }
  return *best;
}

Work work_of_product(const Weight& weight, uint32_t width, const KernelRules& rules, const DeviceProfile& device) {
  return best_of_product(weight, width, rules, device).work;
}

Work work_of_price(const OpPrice& price, const DeviceProfile& device) {
  const auto bytes = static_cast<double>(price.bytes);
  Work work;
  (bytes > device.cache_mb * 1e6 / 2 ? work.memory_bytes : work.cache_bytes) = bytes;
  work.lane_ops = static_cast<double>(price.flops);
  work.workgroups = std::max(1.0, bytes / 4096);
  return work;
}

template <class Args>
Work work_of_args(const Args& args, const KernelRules&, const DeviceProfile& device) {
  return work_of_price(args.price(), device);
}

Work work_of_args(const LinearArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = work_of_product(*args.weight, args.width, rules, device);
  work.steps = rules.linear_steps;
  return work;
}

Work work_of_args(const LinearAddArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = work_of_product(*args.weight, args.width, rules, device);
  work.cache_bytes += 2 * kFloat * args.width * args.weight->rows();  // x
  work.steps = rules.add_steps;
  return work;
}

Work work_of_args(const LinearSwigluArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = work_of_product(*args.weight, args.width, rules, device);
  work.steps = rules.swiglu_steps;
  return work;
}

Work work_of_args(const RouteArgs& args, const KernelRules&, const DeviceProfile&) {
  return work_of_route(args);
}

Work work_of_args(const ExpertSwigluArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = work_of_experts(*args.weight, args.experts, args.width, rules, device);
  work.steps += steps_of_groups(args.experts, args.width);
  return work;
}

Work work_of_args(const ExpertAddArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work = work_of_experts(*args.weight, args.experts, args.width, rules, device);
  work.cache_bytes += bytes_beside(args.price(), *args.weight, args.experts, args.width);
  work.steps += 1;  // the rows' sums
  return work;
}

/// The workgroup that comes last for the heads of a tile finishes them, so many at a time as shared memory has room
/// for: all sums go over memory, and behind the count come the loads of each turn.
void finish_heads(Work& work, const ProjectHeadsArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  const double dim = args.heads.shape.head_dim;
  double turns = 0;
  for (const Weight* weight : args.weights) {
    const ProductCut cut = best_of_product(*weight, args.heads.width, rules, device).cut;
    const double heads = std::max(1.0, cut.rows / dim) * std::min(cut.columns, double{1} * args.heads.width);
    const double together = std::max(1.0, std::floor(cut.shared_bytes / kFloat / (dim + kHeadSums)));
    turns = std::max(turns, rounded_up(heads, together));
    if (chunk_count(weight->rows(), weight->cols()) == 1) {
      work.cache_bytes += 2 * kFloat * args.heads.width * weight->rows();
    }
  }
  work.tail_latencies = kCountLatencies + turns;
}

Work work_of_args(const ProjectHeadsArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  Work work;
  bool whole_heads = true;
  for (size_t i = 0; i < args.weights.size(); ++i) {
    const Work one = work_of_product(*args.weights[i], args.heads.width, rules, device);
    work = i == 0 ? one : together(work, one);
    whole_heads = whole_heads && args.weights[i]->rows() % args.heads.shape.head_dim == 0;
  }
  work.cache_bytes += static_cast<double>(args.heads.price().bytes);
  if (rules.last_finishes && whole_heads) finish_heads(work, args, rules, device);
  work.steps = rules.heads_steps + (rules.last_finishes && !whole_heads ? 1 : 0);
  return work;
}

Work work_of_args(const DeltaNetArgs& args, const KernelRules&, const DeviceProfile&) {
  return work_of_recurrence(args, kStateColumns, 1);
}

Work work_of_args(const AttentionArgs& args, const KernelRules& rules, const DeviceProfile& device) {
  return work_of_attention(args, rules, device);
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
uint64_t bytes_of_weight(const ExpertSwigluArgs& args) {
  return expert_price(*args.weight, args.experts, args.width).bytes;
}
uint64_t bytes_of_weight(const ExpertAddArgs& args) {
  return expert_price(*args.weight, args.experts, args.width).bytes;
}
uint64_t bytes_of_weight(const ProjectHeadsArgs& args) {
  uint64_t bytes = 0;
  for (const Weight* weight : args.weights) bytes += stored_bytes(*weight);
  return bytes;
}

}  // namespace

Work work_of_recurrence(const DeltaNetArgs& args, uint32_t columns, uint32_t column_lanes) {
  const auto state = static_cast<double>(args.shape.state_elements());
  Work work;
  work.memory_bytes = 2 * state * kFloat;
  work.cache_bytes = static_cast<double>(args.price().bytes) - work.memory_bytes;
  work.lane_ops = kStateOps * args.width * state;
  work.invocations = columns * column_lanes;
  work.workgroups = args.shape.value_heads * rounded_up(args.shape.value_dim, columns);
  work.registers = 1.0 * args.shape.key_dim / column_lanes + 32;
  work.bytes_in_flight = columns * args.shape.key_dim * kFloat;  // a column is asked for at once
  work.tail_latencies = kStepLatencies * (args.width - 1.0);
  return work;
}

Work together(Work a, const Work& b) {
  a.workgroups += b.workgroups;
  a.workgroups_reading_memory += b.workgroups_reading_memory;
  a.memory_bytes += b.memory_bytes;
  a.cache_bytes += b.cache_bytes;
  a.lane_ops += b.lane_ops;
  a.matrix_flops += b.matrix_flops;
  a.tail_latencies = std::max(a.tail_latencies, b.tail_latencies);
  return a;
}

Work work_by_price(const Op& op, const DeviceProfile& device) {
  return work_of_price(std::visit([](const auto& args) { return args.price(); }, op), device);
}

Work work_of(const Op& op, const KernelRules& rules, const DeviceProfile& device) {
  if (rules.kernels == Kernels::cuda) return cuda_work_of(op, device);
  return std::visit([&](const auto& args) { return work_of_args(args, rules, device); }, op);
}

uint64_t weight_bytes_of(const Op& op) {
  return std::visit([](const auto& args) { return bytes_of_weight(args); }, op);
}

}  // namespace canopy::predict

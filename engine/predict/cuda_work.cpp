#include "engine/predict/cuda_work.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "cuda_backend/attention_plan.h"
#include "cuda_backend/product_plan.h"
#include "cuda_backend/weight_tiles.h"
#include "engine/base/error.h"
#include "engine/predict/cuda_code.h"
#include "engine/predict/expert_work.h"
#include "engine/predict/op_work.h"

namespace canopy::predict {
namespace {

// The step of NVIDIA's profiles is that of a kernel in a CUDA graph.
constexpr double kGraphStep = 1;
// What a kernel saves by starting beside the end of the one in front (programmatic dependent launch), which kernels do
// from this compute capability on. Measured on an H100 in a captured graph, of a norm and a matrix-vector product that
// ask for nothing early: 0.15 and 0.21 us (pegainfer-project/pegainfer issue 569, July 2026), of which the smaller
// counts. Empty kernels save 0.96 us.
constexpr int kStartsEarly = 90;
constexpr double kEarlyUs = 0.15;
// Of a ring, what is under way while one of its stages is read, besides the other stages.
constexpr double kPartOfStage = 0.5, kNotAside = 0.6;
// Instructions for each value of a row of the pass that a warp of a narrow product brings, if not the first: in the
// machine code for 9.0 37 for seven units of 8.
constexpr double kNarrowStageOps = 37.0 / (7 * 8);
// Where rows are raised so that sums may be halves: three more, and half of the tensor cores' time, by the data sheets.
constexpr double kRaiseOps = 3, kHalvesPart = 0.5;
// Bytes of a value of activations: products read halves, what follows a product also has it in f32.
constexpr double kReadBytes = 2, kWrittenBytes = 4 + 2;
constexpr double kRowsOfTile = 16;
constexpr double kRouteLoads =
    3;  // of the four of a router's row that a lane asks for together; the machine code spreads them

// Attention: instructions of a lane beside one of the tensor cores, for a score's exponential and its two halves, and
// for each number of a cache with more than halves.
constexpr double kBesideTensor = 1, kScoreInstructions = 24, kSplitInstructions = 4;
constexpr double kPairFlops = 2.0 * 16 * 8 * 16;  // of a tensor-core instruction
constexpr double kMergedAtATime = 8;              // results that a warp of the merge asks for together
constexpr double kRowThenPages = 2;               // accesses to what all layers read, before the first key

cuda::GpuLimits gpu_limits_of(const DeviceProfile& device) {
  return {device.cuda_capability, static_cast<uint32_t>(device.cuda_shared_kb * 1024), device.units,
          device.warpgroup_tflop_s > 0};
}

cuda::WeightParams weight_params_of(const Weight* weight) {
  if (weight == nullptr) return {};
  return {0, weight->rows(), weight->cols()};
}

cuda::TileShape tile_shape_of(const Weight* weight) {
  return weight == nullptr ? cuda::TileShape{} : cuda::tile_shape(weight->type());
}

double tile_bytes(const Weight* weight) {
  if (weight == nullptr) return 0;
  const cuda::WeightParams params = weight_params_of(weight);
  return 1.0 * params.groups() * params.supers() * tile_shape_of(weight).bytes();
}

/// Whether products of this weight are added in halves, at twice the rate of f32.
bool adds_halves(const Weight* weight, const DeviceProfile& device) {
  return cuda::adds_slowly(device.cuda_capability) && !is_dense(weight->type());
}

/// Instructions × lanes that a narrow product has less for each weight, where there are fewer rows than it may have.
double unstaged_ops(double rows, const Weight* weight, const DeviceProfile& device) {
  const double of_value = kNarrowStageOps + (adds_halves(weight, device) ? kRaiseOps : 0);
  return (cuda::kNarrow - rows) * of_value / kRowsOfTile;
}

/// Instructions × lanes for all weights and rows of the pass.
double product_ops(const cuda::ProductPlan& plan, const Weight* weight, uint32_t width, const CudaCode& code,
                   const DeviceProfile& device) {
  if (weight == nullptr) return 0;
  const double weights = 1.0 * weight->rows() * weight->cols();
  if (plan.columns > cuda::kNarrow) return plan.pass_tiles * weights * code.of_weight;
  // The main loop was counted with rows of the pass that are not there.
  return weights * (code.of_weight - unstaged_ops(width, weight, device));
}

Work launch_of_product(const Weight* first, const Weight* second, uint32_t width, cuda::ProductKind kind,
                       const DeviceProfile& device) {
  const cuda::GpuLimits limits = gpu_limits_of(device);
  const cuda::ProductPlan plan =
      cuda::plan_product(weight_params_of(first), tile_shape_of(first), weight_params_of(second), tile_shape_of(second),
                         width, limits, kind);
  const double rows = first->rows() + (second != nullptr ? second->rows() : 0);
  const double row_tiles = plan.row_tiles[0] + plan.row_tiles[1];
  const bool narrow = plan.columns == cuda::kNarrow;

  Work work;
  work.kernel = cuda::product_kernel(first->type(), second != nullptr ? second->type() : first->type(), plan);
  const CudaCode code = cuda_code(work.kernel, device.cuda_capability);
  work.registers = code.registers;
  work.shared_bytes = plan.shared_bytes;
  work.invocations = plan.threads;
  work.workgroups = row_tiles * (narrow ? 1 : plan.pass_tiles * plan.parts);
  work.workgroups_reading_memory = row_tiles * plan.parts;
  const double ring = 1.0 * plan.threads / 32 * plan.warp_tiles * plan.stage_bytes;
  work.bytes_in_flight = ring * (limits.copies_aside() ? plan.stages - kPartOfStage : kNotAside);
  work.memory_bytes = tile_bytes(first) + tile_bytes(second);
  const double sums = plan.parts > 1 ? 2.0 * plan.parts : 0;
  work.cache_bytes = work.memory_bytes * (plan.pass_tiles - 1) + row_tiles * width * first->cols() * kReadBytes +
                     width * rows * (kWrittenBytes + sums * sizeof(float));
  work.lane_ops = product_ops(plan, first, width, code, device) + product_ops(plan, second, width, code, device);
  work.matrix_flops = 2 * rows * first->cols() * plan.columns * plan.pass_tiles;
  if (adds_halves(first, device)) work.matrix_flops *= kHalvesPart;
  if (plan.warpgroups) work.matrix_flops *= device.matrix_tflop_s / device.warpgroup_tflop_s;
  work.tail_latencies = plan.parts > 1 ? kCountLatencies + 1 : 0;
  work.steps = kGraphStep;
  work.first_latencies = 1;  // a kernel asks for weights before all else, and its parameters come with the launch
  return work;
}

/// Pairs of a row and an expert by themselves, or in tiles, as many as there are if each row chooses evenly. What
/// several tiles read comes from the cache but once.
Work launch_of_experts(const Weight* weight, const ExpertCounts& experts, uint32_t width, const DeviceProfile& device) {
  const cuda::GpuLimits limits = gpu_limits_of(device);
  cuda::WeightParams one = weight_params_of(weight);
  one.rows /= experts.all;
  const uint32_t columns = cuda::columns_of_experts(experts, width);
  const cuda::ExpertPlan plan = cuda::plan_experts(one, tile_shape_of(weight), columns, limits);
  const bool narrow = columns <= cuda::kNarrow;
  const CudaCode code =
      cuda_code(cuda::product_kernel(weight->type(), weight->type(), plan.product), device.cuda_capability);
  const double pairs = 1.0 * width * experts.used, touched = experts.touched(width), of_expert = pairs / touched;
  const double tiles = columns == 1 ? pairs : touched * std::ceil(of_expert / columns);
  const double weights = 1.0 * one.rows * one.cols, bytes = tile_bytes(weight) / experts.all;

  Work work;
  work.kernel = cuda::expert_kernel(weight->type(), columns);
  work.registers = cuda_code(work.kernel, device.cuda_capability).registers;
  work.shared_bytes = plan.shared_bytes;
  work.invocations = plan.product.threads;
  work.workgroups = tiles * plan.product.row_tiles[0];
  work.workgroups_reading_memory = touched * plan.product.row_tiles[0];
  const double ring = plan.product.threads / 32.0 * (narrow ? 1 : 2) * plan.product.stage_bytes;
  work.bytes_in_flight = ring * (limits.copies_aside() ? plan.product.stages - kPartOfStage : kNotAside);
  work.memory_bytes = touched * bytes;
  work.cache_bytes = (tiles - touched) * bytes +
                     pairs * (plan.product.row_tiles[0] * one.cols * kReadBytes + one.rows * kWrittenBytes);
  const double unstaged = narrow ? unstaged_ops(std::min<double>(columns, of_expert), weight, device) : 0;
  work.lane_ops = tiles * weights * (code.of_weight - unstaged);
  work.matrix_flops = 2 * tiles * weights * std::max(columns, cuda::kNarrow);
  if (adds_halves(weight, device)) work.matrix_flops *= kHalvesPart;
  work.steps = kGraphStep;
  return work;
}

Work in_turn(const Work& a, const Work& b) {
  Work all = together(a, b);
  all.tail_latencies = a.tail_latencies + b.tail_latencies;
  all.steps = a.steps + b.steps;
  if (a.kernel != b.kernel) all.kernel += ", " + b.kernel;
  all.registers = std::max(a.registers, b.registers);
  all.shared_bytes = std::max(a.shared_bytes, b.shared_bytes);
  return all;
}

Work launches_of_heads(const ProjectHeadsArgs& args, const DeviceProfile& device) {
  Work work;
  for (size_t i = 0; i < args.weights.size();) {
    const Weight *first = args.weights[i], *second = i + 1 < args.weights.size() ? args.weights[i + 1] : nullptr;
    if (second != nullptr &&
        !cuda::go_together(first->type(), weight_params_of(first), second->type(), weight_params_of(second))) {
      second = nullptr;
    }
    const Work one = launch_of_product(first, second, args.heads.width, cuda::ProductKind::heads, device);
    work = i == 0 ? one : in_turn(work, one);
    i += second != nullptr ? 2 : 1;
  }
  work.cache_bytes += static_cast<double>(args.heads.price().bytes);
  work.tail_latencies += kCountLatencies + 1;  // the block that brings the last rows of a head finishes it
  return work;
}

/// What a warp does with a chunk and its eight queries.
struct ChunkWork {
  double tensor = 0;  // instructions of the tensor cores
  double lanes = 0;   // other instructions × lanes

  explicit ChunkWork(const KvShape& shape) {
    const bool more_than_halves = shape.type != CacheType::f16;
    const double slices = std::ceil(1.0 * shape.head_dim / cuda::kSliceDims);
    const double of_scores = 4 * std::ceil(shape.head_dim / 16.0), of_values = of_scores / slices;
    tensor = (of_scores + of_values) * (more_than_halves ? 3 : 2);
    lanes = 32 * tensor * kBesideTensor + kAttentionChunk * cuda::kItemQueries * kScoreInstructions;
    if (more_than_halves) lanes += kAttentionChunk * (1 + 1 / slices) * shape.head_dim * kSplitInstructions;
  }
};

Work launch_of_attention(const AttentionArgs& args, const DeviceProfile& device) {
  const cuda::AttentionExtent extent{args.shape, args.heads, args.max_positions, args.keys(), args.window > 0};
  const double launches = std::ceil(1.0 * args.width / cuda::attention_rows_at_a_time(extent));
  cuda::AttentionParams p;
  p.cache.type = static_cast<uint32_t>(args.shape.type);
  p.row_count = static_cast<uint32_t>(std::ceil(args.width / launches));
  const cuda::AttentionLaunch launch = cuda::plan_attention(p, extent, gpu_limits_of(device));
  const double head_bytes = args.shape.head_dim * mean_element_bytes(args.shape),
               keys = static_cast<double>(args.keys());
  const double kv_heads = args.shape.kv_heads, warps = launch.threads / 32.0, tiles = p.tiles * launches;
  const double items = tiles * (launch.many ? warps : 1), own_items = 1.0 * args.width * p.pieces;
  const double own_chunks = std::min(2.0, std::ceil(keys / kAttentionChunk)), chunks = keys / kAttentionChunk;
  const double entries = 1.0 * args.width * args.heads * (p.spans + own_chunks);

  Work work;
  work.kernel = launch.kernel(args.shape.type);
  work.registers = cuda_code(work.kernel, device.cuda_capability).registers;
  work.shared_bytes = launch.shared_bytes;
  work.invocations = launch.threads;
  work.workgroups = launches * launch.blocks;
  work.workgroups_reading_memory = kv_heads * p.span_blocks * p.slices;
  const double stages = launch.many ? p.stages - kPartOfStage : warps * (p.warp_stages - kPartOfStage);
  work.bytes_in_flight = stages * cuda::kAttentionStageBytes * mean_element_bytes(args.shape) /
                         (args.shape.type == CacheType::f16 ? 2 : 4);
  work.longest_memory_bytes = 2 * head_bytes * std::min(keys, 1.0 * cuda::kSpanChunks * kAttentionChunk);
  work.memory_bytes = 2 * keys * kv_heads * head_bytes;
  // Of its own chunks a row reads what it sees.
  const double own_keys = std::min(keys, own_chunks * kAttentionChunk);
  work.cache_bytes = work.memory_bytes * (tiles - 1) + 2 * own_items * own_keys * kv_heads * head_bytes +
                     2 * entries * (args.shape.head_dim + 2) * sizeof(float) +
                     2.0 * args.width * args.heads * args.shape.head_dim * sizeof(float);
  const ChunkWork chunk(args.shape);
  const double all = kv_heads * p.slices * (items * chunks + own_items * own_chunks);
  work.lane_ops = all * chunk.lanes;
  work.matrix_flops = all * chunk.tensor * kPairFlops;
  // The last block of a tile merges: its warps have some heads each, whose results come head behind head.
  const double heads = std::ceil(1.0 * std::min(p.tile_rows, p.row_count) * p.tile_pieces * p.item_heads / warps);
  work.tail_latencies = launches * (kCountLatencies + std::ceil(heads * (p.spans + own_chunks) / kMergedAtATime));
  work.cache_latencies = kRowThenPages * launches;
  work.first_latencies = 1;  // keys; queries come beside what goes before them
  work.steps = kGraphStep * launches;
  return work;
}

/// The kernel of an op without products.
struct KernelName {
  std::string operator()(const EmbedArgs& args) const {
    return std::string("embed_") + cuda::kernel_suffix(args.table->type());
  }
  std::string operator()(const RopeStoreArgs&) const { return "rope_store"; }
  std::string operator()(const SelectArgs&) const { return "select_rows"; }
  std::string operator()(const SampleArgs&) const { return "sample_best_filtered"; }
  std::string operator()(const PickArgs&) const { return "pick_logits"; }
  std::string operator()(const KvMoveArgs&) const { return "kv_gather"; }
  template <class Args>
  std::string operator()(const Args&) const {
    return Args::name;
  }
};

Work launches_of(const Op& op, const DeviceProfile& device) {
  if (const auto* heads = std::get_if<ProjectHeadsArgs>(&op)) return launches_of_heads(*heads, device);
  if (const auto* attention = std::get_if<AttentionArgs>(&op)) return launch_of_attention(*attention, device);
  if (const auto* linear = std::get_if<LinearArgs>(&op)) {
    return launch_of_product(linear->weight, nullptr, linear->width, cuda::ProductKind::store, device);
  }
  if (const auto* swiglu = std::get_if<LinearSwigluArgs>(&op)) {
    return launch_of_product(swiglu->weight, nullptr, swiglu->width, cuda::ProductKind::swiglu, device);
  }
  if (const auto* add = std::get_if<LinearAddArgs>(&op)) {
    Work work = launch_of_product(add->weight, nullptr, add->width, cuda::ProductKind::add, device);
    work.cache_bytes += 2.0 * sizeof(float) * add->width * add->weight->rows();  // x
    return work;
  }
  if (const auto* experts = std::get_if<ExpertSwigluArgs>(&op)) {
    Work work = launch_of_experts(experts->weight, experts->experts, experts->width, device);
    work.steps += kGraphStep * steps_of_groups(experts->experts, experts->width);
    return work;
  }
  if (const auto* experts = std::get_if<ExpertAddArgs>(&op)) {
    Work work = launch_of_experts(experts->weight, experts->experts, experts->width, device);
    work.cache_bytes += bytes_beside(experts->price(), *experts->weight, experts->experts, experts->width);
    work.steps += kGraphStep;  // the rows' sums
    return work;
  }
  if (const auto* route = std::get_if<RouteArgs>(&op)) {
    Work work = work_of_route(*route, {.experts = cuda::kRouteExperts,
                                       .invocations = 32.0 * cuda::kRouteExperts,
                                       .columns_in_flight = 32 * 4 * kRouteLoads,
                                       .steps = kGraphStep});
    work.kernel = RouteArgs::name;
    return work;
  }
  const auto* recurrence = std::get_if<DeltaNetArgs>(&op);
  Work work = recurrence != nullptr ? work_of_recurrence(*recurrence, cuda::kStateColumns, cuda::kColumnLanes)
                                    : work_by_price(op, device);
  work.kernel = std::visit(KernelName(), op);
  const uint32_t registers = cuda_code(work.kernel, device.cuda_capability).registers;
  if (registers > 0) work.registers = registers;
  work.steps = kGraphStep;
  return work;
}

}  // namespace

Work cuda_work_of(const Op& op, const DeviceProfile& device) {
  if (device.cuda_capability == 0) {
    throw bad_input("The " + std::string(device.name) + " does not run CUDA kernels; allowed: GPUs of NVIDIA.");
  }
  Work work = launches_of(op, device);
  work.early_us = device.cuda_capability >= kStartsEarly ? kEarlyUs : 0;
  return work;
}

}  // namespace canopy::predict

#include "engine/whatif/op_work.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "cuda_backend/plan.h"
#include "cuda_backend/weight_tiles.h"
#include "engine/base/error.h"
#include "engine/vulkan/product_config.h"
#include "engine/whatif/cuda_code.h"

namespace canopy::predict {

// What ops do on an NVIDIA GPU with the kernels of the CUDA backend, cut as that backend's own functions cut them.

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
  work.workgroups_reading_memory = kv_heads * p.span_blocks * p.value_slices;
  const double stages = launch.many ? p.stages - kPartOfStage : warps * (p.warp_stages - kPartOfStage);
  work.bytes_in_flight = stages * cuda::kAttentionStageBytes * mean_element_bytes(args.shape) /
                         (args.shape.type == CacheType::f16 ? 2 : 4);
  const double planes = args.shape.planes();  // keys and values; keys alone of a latent cache
  work.longest_memory_bytes = planes * head_bytes * std::min(keys, 1.0 * cuda::kSpanChunks * kAttentionChunk);
  work.memory_bytes = planes * keys * kv_heads * head_bytes;
  // Of its own chunks a row reads what it sees.
  const double own_keys = std::min(keys, own_chunks * kAttentionChunk);
  work.cache_bytes = work.memory_bytes * (tiles - 1) + 2 * own_items * own_keys * kv_heads * head_bytes +
                     2 * entries * (args.shape.head_dim + 2) * sizeof(float) +
                     2.0 * args.width * args.heads * args.shape.head_dim * sizeof(float);
  const ChunkWork chunk(args.shape);
  const double all = kv_heads * p.value_slices * (items * chunks + own_items * own_chunks);
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

/// Of an op by its price alone.
Work work_of_price(const OpPrice& price, const DeviceProfile& device) {
  const auto bytes = static_cast<double>(price.bytes);
  Work work;
  (bytes > device.cache_mb * 1e6 / 2 ? work.memory_bytes : work.cache_bytes) = bytes;
  work.lane_ops = static_cast<double>(price.flops);
  work.workgroups = std::max(1.0, bytes / 4096);
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
    const double groups = experts->x == nullptr ? steps_of_groups(experts->experts, experts->width) : 0;
    work.steps += kGraphStep * (experts->x == nullptr ? groups : 1);  // or the rows' sums
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
                                    : work_of_price(price_of(op), device);
  work.kernel = recurrence != nullptr && !recurrence->shape.corrects ? "scan" : std::visit(KernelName(), op);
  const uint32_t registers = cuda_code(work.kernel, device.cuda_capability).registers;
  if (registers > 0) work.registers = registers;
  work.steps = kGraphStep;
  return work;
}

/// Throws bad_input for a device that has no compute capability.
Work cuda_work_of(const Op& op, const DeviceProfile& device) {
  if (device.cuda_capability == 0) {
    throw bad_input("The " + std::string(device.name) + " does not run CUDA kernels; allowed: GPUs of NVIDIA.");
  }
  Work work = launches_of(op, device);
  work.early_us = device.cuda_capability >= kStartsEarly ? kEarlyUs : 0;
  return work;
}

constexpr double kFloat = sizeof(float);
// Of a recurrence: columns of a state that a workgroup of shaders/delta_net.comp has, one of each invocation;
// instructions for each element of the state and step, its decay, the products with key (not of a scan) and query, the
// sum; and accesses to the cache of a step that wait for each other: which row it is, then its key and query.
constexpr uint32_t kStateColumns = 32;
constexpr double kStateOps = 4, kScanOps = 3, kStepLatencies = 2;
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
  work.steps += args.x == nullptr ? steps_of_groups(args.experts, args.width) : 1;  // or the rows' sums
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
  work.lane_ops = (args.shape.corrects ? kStateOps : kScanOps) * args.width * state;
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

Work work_of(const Op& op, const KernelRules& rules, const DeviceProfile& device) {
  if (is_of_processors(rules.kernels) || device.is_processor()) {
    throw bad_input("The " + std::string(device.name) + " is " + (device.is_processor() ? "a" : "no") +
                    " processor: the kernels '" + to_string(rules.kernels) + "' do not run there.");
  }
  if (rules.kernels == Kernels::cuda) return cuda_work_of(op, device);
  return std::visit([&](const auto& args) { return work_of_args(args, rules, device); }, op);
}

uint64_t weight_bytes_of(const Op& op) {
  return std::visit([](const auto& args) { return bytes_of_weight(args); }, op);
}

}  // namespace canopy::predict

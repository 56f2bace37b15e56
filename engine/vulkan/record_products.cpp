// Records matrix products and those of a mixture's experts, with the variants that a test forces, timing chose, or a
// rule gives.

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/vulkan/product_config.h"
#include "engine/vulkan/product_tuner.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

// Which variant of a matrix product runs: the one that a test forces, else the one that timing chose, else that of a
// rule. A choice changes no bit.

namespace {

constexpr uint64_t kSmallWeight = 128 * 1024;  // elements

template <class Config>
std::vector<ProductVariant> variants_of(const std::vector<Config>& configs) {
  std::vector<ProductVariant> variants;
  for (const Config& config : configs) variants.push_back(config.variant());
  return variants;
}

std::vector<ProductVariant> product_candidates(const DeviceState& state, KernelFamily family,
                                               const ProductShape& shape) {
  const DeviceLimits& limits = state.context->limits();
  if (on_matrix_cores(family)) {
    return variants_of(matrix_candidates(shape, state.matrix_of(family), state.max_tile, state.software, limits));
  }
  return variants_of(fma_candidates(shape, state.max_tile, state.software, limits));
}

ProductVariant variant_by_rule(const DeviceState& state, KernelFamily family, const ProductShape& shape) {
  const DeviceLimits& limits = state.context->limits();
  if (on_matrix_cores(family)) {
    return choose_matrix(shape, state.matrix_of(family), state.max_tile, state.software, limits).variant();
  }
  return choose_fma(shape, state.max_tile, state.software, limits).variant();
}

VariantCandidate candidate_of(const ProductVariant& variant) {
  VariantCandidate candidate{{variant.options.subgroup_size}, variant.text};
  for (const SpecConstant& constant : variant.options.spec) candidate.numbers.push_back(constant.value);
  return candidate;
}

ProductVariant timed_variant(DeviceState& state, const VariantKey& key, const VulkanWeight& weight) {
  const ProductShape shape{key.rows, key.cols, chunk_columns(key.rows, key.cols), key.width};
  const std::vector<ProductVariant> variants = product_candidates(state, key.family, shape);
  std::vector<VariantCandidate> candidates;
  std::ranges::transform(variants, std::back_inserter(candidates), candidate_of);
  const auto force = [&](std::optional<size_t> candidate) {
    state.timed_product = candidate ? std::optional(variants[*candidate]) : std::nullopt;
  };
  return variants[state.tuner->choose(key, weight, candidates, force)];
}

/// Whether compiling variants of the weight's kernels costs more than they gain.
bool is_small(const VulkanWeight& weight) {
  return uint64_t{weight.rows()} * weight.cols() < kSmallWeight;
}

/// For `width` rows of a pass.
ProductVariant choose_product(DeviceState& state, ProductOp op, const VulkanWeight& weight, uint32_t width) {
  if (state.timed_product) return *state.timed_product;
  const KernelFamily family = product_family(state.family, weight.type());
  if (on_matrix_cores(family) && state.forced_matrix) {
    MatrixConfig forced = *state.forced_matrix;
    if (family == KernelFamily::matrix || !forced.integers()) forced.shape = state.matrix_of(family);
    return forced.variant();
  }
  if (state.family == KernelFamily::fma && state.forced_fma) return state.forced_fma->variant();
  const uint32_t rows = weight.rows(), cols = weight.cols();
  if (!state.tuner || is_small(weight)) {
    return variant_by_rule(state, family, {rows, cols, chunk_columns(rows, cols), width});
  }
  return timed_variant(state, {family, op, weight.type(), rows, cols, tuned_width(family, width)}, weight);
}

// The matrix products of GPUs: shaders/product_*.comp, a dispatch for each shard of a weight's rows, cut over tiles of
// columns, tiles of rows and chunks of K.

// The push constants that all ops begin with: PRODUCT_PUSH of shaders/product.glsl.
struct ProductPush {
  uint32_t rows, cols, width, in_stride, square_blocks, chunk_columns, partial_base, counter_base, row_offset,
      total_rows;
  float norm_eps;
};

struct LinearPush {
  ProductPush product;
  uint32_t stride, offset;
};

struct AddPush {
  ProductPush product;
  uint32_t out_stride, aux_stride, aux_offset;
};

struct HeadsPush {
  ProductPush product;
  uint32_t first_head, heads, kv_heads;
  float norm_eps;
  uint32_t query_offset;
};

struct SwigluPush {
  ProductPush product;
  uint32_t out_stride;
};

/// A product on the device, and where its shares of the partial sums (in quads) and of the counters begin.
struct Product {
  const VulkanWeight& weight;
  const VulkanActivations& in;
  uint32_t width;
  float norm_eps;
  uint32_t chunk_columns;
  ProductVariant variant;
  uint32_t partial_base = 0;
  uint32_t counter_base = 0;

  uint32_t chunks() const { return workgroups(weight.cols(), chunk_columns); }
  uint32_t column_tiles() const { return workgroups(width, variant.columns); }
  /// Quads of the sums of all chunks.
  uint64_t partials() const { return uint64_t{chunks()} * width * workgroups(weight.rows(), 4); }
  uint32_t tiles(const WeightShard& shard) const {
    return column_tiles() * workgroups(shard.layout.rows, variant.rows);
  }
  uint32_t all_tiles() const {
    uint32_t count = 0;
    for (const WeightShard& shard : weight.shards) count += tiles(shard);
    return count;
  }
  double flops() const { return 2.0 * weight.rows() * weight.cols() * width; }
};

Product product_of(DeviceState& state, ProductOp kind, const canopy::Weight& weight,
                   const canopy::Activations& activations, uint32_t width, float norm_eps) {
  const std::string op = kind == ProductOp::linear ? "linear" : std::string("linear_") + to_string(kind);
  const VulkanActivations& in = activations_of(activations);
  require_width(width, in, op.c_str());
  if (in.cols() != weight.cols()) {
    throw bad_input(op + " multiplies a weight of " + std::to_string(weight.cols()) + " columns with activations of " +
                    std::to_string(in.cols()) + "; they must agree.");
  }
  const VulkanWeight& matrix = weight_of(weight);
  return {matrix,
          in,
          width,
          norm_eps,
          chunk_columns(weight.rows(), weight.cols()),
          choose_product(state, kind, matrix, width)};
}

/// Quads from one row of activations to the next.
uint32_t stride_of(const VulkanActivations& activations) {
  return static_cast<uint32_t>(activation_stride(activations.cols()) / 4);
}

const char* shader_suffix(KernelFamily family) {
  switch (family) {
    case KernelFamily::matrix: return "_matrix";
    case KernelFamily::matrix_i8: return "_matrix_i8";
    default: return "";
  }
}

/// Where the sums of chunks and the counters of several products lie.
struct SharedMemory {
  const Buffer& sums;
  const Buffer& counters;
};

/// What an op has of its own: its shader without the type of weights, bindings behind the common ones, and whether
/// finished tiles are counted (each shard has counters for its own), or something of the whole weight.
struct ProductKernel {
  std::string shader;
  std::vector<Binding> bindings;
  std::vector<SpecConstant> spec = {};
  bool counts_tiles = true;
};

/// Records the dispatches of a product without the barrier behind them; push(common) completes the push constants.
template <class MakePush>
void dispatch(DeviceState& state, CommandList& list, const Product& product, const SharedMemory& memory,
              const ProductKernel& own, const MakePush& push) {
  const VulkanWeight& weight = product.weight;
  KernelOptions options = product.variant.options;
  options.spec.insert(options.spec.end(), own.spec.begin(), own.spec.end());
  const Kernel& kernel =
      state.context->kernel(weight_shader(own.shader, weight.type()) + shader_suffix(product.variant.family), options);
  uint32_t counter = product.counter_base;
  for (const WeightShard& shard : weight.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state);
    bindings.emplace_back(product.in.values);
    bindings.push_back(squares_of(product.in, product.width, "The sums of squares of a product"));
    bindings.emplace_back(memory.sums);
    bindings.emplace_back(memory.counters);
    bindings.insert(bindings.end(), own.bindings.begin(), own.bindings.end());
    const ProductPush common{
        shard.layout.rows,        weight.cols(),         product.width,        stride_of(product.in),
        product.in.square_blocks, product.chunk_columns, product.partial_base, counter,
        shard.layout.first_row,   weight.rows(),         product.norm_eps};
    list.bind(kernel, bindings, bytes_of(push(common)));
    list.dispatch(product.column_tiles(), workgroups(shard.layout.rows, product.variant.rows), product.chunks());
    if (own.counts_tiles) counter += product.tiles(shard);
  }
}

/// Gives products that run side by side their places in the memory for sums and counters.
class Places {
 public:
  /// counters: that the product needs if its sums are shared.
  void place(Product& product, bool shares_sums, uint32_t counters) {
    product.partial_base = static_cast<uint32_t>(quads_);
    product.counter_base = counters_;
    if (!shares_sums) return;
    quads_ += product.partials();
    counters_ += counters;
  }
  uint64_t sum_bytes() const { return quads_ * 16; }
  uint32_t counters() const { return counters_; }

 private:
  uint64_t quads_ = 0;
  uint32_t counters_ = 0;
};

}  // namespace

void VulkanRecorder::record_products(std::span<const LinearArgs> products) {
  std::vector<Product> all;
  Places places;
  double flops = 0;
  for (const LinearArgs& args : products) {
    Product& product =
        all.emplace_back(product_of(state_, ProductOp::linear, *args.weight, *args.in, args.width, args.norm_eps));
    places.place(product, product.chunks() > 1, product.all_tiles());
    flops += product.flops();
  }
  const SharedMemory memory{sums(places.sum_bytes()), counters(places.counters())};
  CommandList& list = this->list(flops);
  for (size_t i = 0; i < all.size(); ++i) {
    const LinearArgs& args = products[i];
    const Binding out = words(*args.out, uint64_t{args.width - 1} * args.stride + args.offset + args.weight->rows(),
                              "The output of linear");
    dispatch(state_, list, all[i], memory, {"product_linear", {out}}, [&](const ProductPush& common) {
      return LinearPush{common, args.stride, args.offset};
    });
  }
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const LinearArgs& args) {
  record_products({&args, 1});
}

template <>
void VulkanRecorder::record_op(const LinearAddArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "linear_add");
  Product product = product_of(state_, ProductOp::add, *args.weight, *args.in, args.width, 0);
  const uint32_t rows = args.weight->rows();
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * args.aux_stride + args.aux_offset + rows,
                                  "The aux hidden states of linear_add")
                          : Binding(state_.dummy);
  const std::vector<Binding> outputs = {
      words(*args.x, uint64_t{args.width} * rows, "The residual stream of linear_add"), out.values,
      squares_of(out, args.width, "The sums of squares of linear_add"),
      words(*args.norm.weight, rows, "The norm weight of linear_add"), aux};
  Places places;
  places.place(product, product.chunks() > 1, product.all_tiles());
  const SharedMemory memory{sums(places.sum_bytes()), counters(places.counters())};
  CommandList& list = this->list(product.flops());
  dispatch(state_, list, product, memory, {"product_add", outputs}, [&](const ProductPush& common) {
    return AddPush{common, 4 * stride_of(out), args.aux != nullptr ? args.aux_stride : 0, args.aux_offset};
  });
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const LinearSwigluArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "linear_swiglu");
  if (args.weight->rows() % 2 != 0) {
    throw bad_input("linear_swiglu needs a paired weight; this one has " + std::to_string(args.weight->rows()) +
                    " rows.");
  }
  Product product = product_of(state_, ProductOp::swiglu, *args.weight, *args.in, args.width, args.norm_eps);
  Places places;
  places.place(product, product.chunks() > 1, product.all_tiles());
  const SharedMemory memory{sums(places.sum_bytes()), counters(places.counters())};
  CommandList& list = this->list(product.flops());
  ProductKernel kernel{"product_swiglu", {out.values}};
  if (args.gate == GateFunction::gelu) kernel.spec.push_back({10, 1});
  dispatch(state_, list, product, memory, kernel, [&](const ProductPush& common) {
    return SwigluPush{common, 4 * stride_of(out)};
  });
  list.barrier();
}

namespace {

/// Whether product_heads.comp can do it: heads do not lie in two weights, and tiles are those of the whole weight.
bool finishes_heads(const Product& product, uint32_t head_dim) {
  const std::vector<WeightShard>& shards = product.weight.shards;
  return product.weight.rows() % head_dim == 0 && std::ranges::all_of(shards, [&](const WeightShard& shard) {
           return shard.layout.first_row % product.variant.rows == 0;
         });
}

std::vector<Binding> head_bindings(const ProjectHeadsArgs& args, const Buffer& none, const Buffer& none_written) {
  const RopeStoreArgs& heads = args.heads;
  const VulkanKv& kv = checked_kv(*heads.cache, heads.shape, "project_heads");
  const auto norm = [&](const canopy::Buffer* weight) {
    return weight != nullptr ? words(*weight, heads.shape.head_dim, "The head norm of project_heads") : Binding(none);
  };
  return {words(*heads.rows, uint64_t{heads.width} * sizeof(Row) / 4, "The rows of project_heads"),
          whole(*heads.rotation),
          norm(heads.q_norm),
          norm(heads.k_norm),
          queries_of(heads, none_written),
          kv.keys,
          kv.values};
}

std::vector<SpecConstant> head_constants(const RopeStoreArgs& heads) {
  return {{10, heads.shape.head_dim},
          {11, heads.interleaved ? 1u : 0u},
          {12, heads.q_norm != nullptr ? 1u : 0u},
          {13, heads.k_norm != nullptr ? 1u : 0u},
          {14, static_cast<uint32_t>(heads.shape.type)}};
}

}  // namespace

// The products and the heads in one step where that is possible; what is in between has the same bits.
template <>
void VulkanRecorder::record_op(const ProjectHeadsArgs& args) {
  check_heads(args);
  const RopeStoreArgs& heads = args.heads;
  const uint32_t dim = heads.shape.head_dim;
  std::vector<Product> all;
  Places places;
  double flops = 0;
  // The kernel norms no values, and always has keys.
  bool together = !state_.separate_steps && heads.v_norm == nullptr && heads.cache != nullptr;
  for (const canopy::Weight* weight : args.weights) {
    Product& product =
        all.emplace_back(product_of(state_, ProductOp::linear, *weight, *args.in, heads.width, args.in_norm_eps));
    places.place(product, true, product.column_tiles() * (weight->rows() / dim));
    flops += product.flops();
    together = together && finishes_heads(product, dim);
  }
  if (!together) return record_separate_heads(args);
  const SharedMemory memory{sums(places.sum_bytes()), counters(places.counters())};
  const ProductKernel kernel{"product_heads", head_bindings(args, state_.dummy, state_.written_dummy),
                             head_constants(heads), false};
  CommandList& list = this->list(flops);
  uint32_t first_head = 0;
  for (const Product& product : all) {
    dispatch(state_, list, product, memory, kernel, [&](const ProductPush& common) {
      return HeadsPush{common, first_head, heads.heads, heads.shape.kv_heads, heads.norm_eps, heads.query_offset};
    });
    first_head += product.weight.rows() / dim;
  }
  list.barrier();
}

void VulkanRecorder::record_separate_heads(const ProjectHeadsArgs& args) {
  std::vector<LinearArgs> products;
  for (const Op& op : separate_ops(args)) {
    if (const auto* product = std::get_if<LinearArgs>(&op)) products.push_back(*product);
  }
  record_products(products);
  record_op(args.heads);
}

// Which variant of a product with experts runs: the one that a test forces, else the one that timing chose, else that
// of a rule. A choice changes no bit.

namespace {

constexpr uint32_t kWidestTimed = 512;  // rows of a pass: wider ones take what is best there

ExpertShape shape_of(const DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                     uint32_t width) {
  return {experts,
          weight.rows() / experts.all,
          weight.cols(),
          width,
          on_matrix_cores(state.family) ? &*state.matrix : nullptr,
          state.software};
}

/// The variant with the kernel that a test wants.
ExpertVariant forced(const DeviceState& state, ExpertVariant variant) {
  if (!variant.matrix || !state.forced_matrix || state.forced_matrix->integers()) return variant;
  variant.matrix = *state.forced_matrix;
  variant.matrix->shape = *state.matrix;
  if (variant.tiles.grouped) variant.tiles.columns = variant.matrix->columns;
  return variant;
}

ExpertVariant timed_variant(DeviceState& state, const VulkanWeight& weight, const ExpertShape& shape) {
  const std::vector<ExpertVariant> variants = expert_candidates(shape, state.context->limits());
  std::vector<VariantCandidate> candidates;
  for (const ExpertVariant& variant : variants) candidates.push_back({variant.numbers(), variant.text()});
  const auto force = [&](std::optional<size_t> candidate) {
    state.timed_experts = candidate ? std::optional(variants[*candidate]) : std::nullopt;
  };
  const KernelFamily family = on_matrix_cores(state.family) ? KernelFamily::matrix : state.family;
  const VariantKey key{.family = family,
                       .op = ProductOp::experts,
                       .type = weight.type(),
                       .rows = shape.rows,
                       .cols = shape.cols,
                       .width = shape.width,
                       .experts = shape.experts.all,
                       .used = shape.experts.used};
  return variants[state.tuner->choose(key, weight, candidates, force)];
}

/// Of expert_swiglu, with a weight of all experts, for `width` rows of a pass.
ExpertVariant choose_experts(DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                             uint32_t width) {
  if (state.timed_experts) return *state.timed_experts;
  ExpertShape shape = shape_of(state, weight, experts, width);
  if (!state.tuner || is_small(weight) || state.forced_matrix) {
    return forced(state, choose_experts_by_rule(shape, state.context->limits()));
  }
  shape.width = std::bit_ceil(std::min(width, kWidestTimed));
  ExpertVariant variant = timed_variant(state, weight, shape);
  variant.tiles.width = width;
  return variant;
}

/// By rule, with tiles of so many columns as another product has: 1, if each pair is by itself.
ExpertVariant experts_like(const DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                           uint32_t width, std::optional<uint32_t> columns) {
  const ExpertShape shape = shape_of(state, weight, experts, width);
  const DeviceLimits& limits = state.context->limits();
  return forced(
      state, columns ? experts_in_tiles(shape, *columns, *columns > 1, limits) : choose_experts_by_rule(shape, limits));
}

}  // namespace

// Mixtures of experts: shaders/route_*.comp, expert_*.comp. Where products are computed on matrix cores, so are those
// with experts; else by multiply-adds.

/// What the two products with experts have in common, and the op's own part of the push constants.
struct ExpertProduct {
  const char* shader;
  const canopy::Weight& weight;
  const VulkanActivations& in;
  uint32_t in_rows;    // rows of activations
  uint32_t row_pairs;  // pairs that read the same one
  float norm_eps;
  Binding chosen;
  Binding out;
  const canopy::Buffer* bias;  // of the weight's rows, or null
  std::span<const std::byte> own_push;
};

namespace {

constexpr uint32_t kRouterExperts = 4;  // of a workgroup of route_logits.comp
constexpr uint32_t kExpertLanes = 64;   // shaders/expert_product.glsl: rows of an expert that a workgroup has
constexpr uint32_t kExpertSlice = 256;  // columns: SLICE there
constexpr uint32_t kMostSlices = 4;
// Of a weight's matrices on matrix cores: the constant that says whether pairs are grouped.
constexpr uint32_t kGroupedId = 9;

// As in shaders/expert_product.glsl.
struct ExpertPush {
  uint32_t shard_rows, shard_first, cols, expert_rows, row_pairs, square_blocks;
  float norm_eps;
  uint32_t has_bias;
};

uint64_t tile_bytes(const PairTiles& tiles) {
  return (uint64_t{tiles.most()} * 16 + 255) / 256 * 256;
}

/// A variant as it is dispatched: its shader's suffix and constants.
struct ExpertKernel {
  uint32_t rows = kExpertLanes;  // of a tile
  const char* suffix = "";
  KernelOptions options;
};

/// Of matrix cores, a pair by itself is a tile with one column: the same sums.
ExpertKernel kernel_of(const ExpertVariant& variant, uint32_t cols, bool software) {
  const uint32_t grouped = variant.tiles.grouped ? 1 : 0, columns = variant.tiles.columns;
  if (variant.matrix) {
    const ProductVariant product = variant.matrix->variant();
    KernelOptions options = product.options;
    options.spec.push_back({kGroupedId, grouped});
    return {product.rows, "_matrix", options};
  }
  const uint32_t useful = std::bit_floor(workgroups(cols, kExpertSlice));
  const uint32_t most = software ? 1 : std::max(1u, kMostSlices * 2 / std::max(2u, columns));
  return {kExpertLanes, "", {{{0, columns}, {1, kExpertLanes}, {2, std::min(useful, most)}, {3, grouped}}, 0}};
}

void check_shapes(const ExpertCounts& experts, const canopy::Weight& weight, const canopy::Activations& in,
                  const char* op) {
  check_experts(experts, op);
  if (weight.rows() % experts.all != 0) {
    throw bad_input(std::string(op) + " is given a weight of " + std::to_string(weight.rows()) +
                    " rows; allowed: a multiple of its " + std::to_string(experts.all) + " experts.");
  }
  if (in.cols() != weight.cols()) {
    throw bad_input(std::string(op) + " multiplies a weight of " + std::to_string(weight.cols()) +
                    " columns with activations of " + std::to_string(in.cols()) + "; they must agree.");
  }
}

Binding bias_of(const canopy::Buffer* bias, uint64_t rows, const Buffer& none) {
  return bias != nullptr ? words(*bias, rows, "The bias of experts") : Binding(none);
}

void record_groups(DeviceState& state, CommandList& list, const PairTiles& tiles, const Binding& chosen,
                   const Binding& tile_list, const Binding& order) {
  struct Push {
    uint32_t pairs, experts, tile_pairs, most_tiles;
  };
  list.bind(state.context->kernel("expert_groups"), {chosen, tile_list, order},
            bytes_of(Push{tiles.pairs(), tiles.experts.all, tiles.columns, tiles.most()}));
  list.dispatch(1);
  list.barrier();
}

}  // namespace

void VulkanRecorder::record_expert_product(const ExpertProduct& product, const ExpertVariant& variant) {
  const VulkanWeight& weight = weight_of(product.weight);
  const uint32_t cols = weight.cols(), rows = weight.rows() / variant.tiles.experts.all;
  const PairTiles& tiles = variant.tiles;
  const ExpertKernel kernel = kernel_of(variant, cols, state_.software);
  CommandList& list = this->list(2.0 * rows * cols * tiles.pairs());
  Binding tile_list(state_.dummy), order(state_.dummy);
  GroupedPairs grouped{product.chosen.buffer, product.chosen.offset, nullptr,
                       tiles.experts,         tiles.width,           tiles.columns};
  if (tiles.grouped) {
    const Buffer& room = scratch(tile_bytes(tiles) + uint64_t{tiles.pairs()} * 4, "groups of experts");
    grouped.room = &room;
    tile_list = Binding(room, 0, uint64_t{tiles.most()} * 16);
    order = Binding(room, tile_bytes(tiles), uint64_t{tiles.pairs()} * 4);
    if (grouped_ != grouped) record_groups(state_, list, tiles, product.chosen, tile_list, order);
  }
  grouped_ = grouped;
  const Kernel& compiled =
      state_.context->kernel(weight_shader(product.shader, weight.type()) + kernel.suffix, kernel.options);
  const Binding squares = words(product.in.squares, uint64_t{product.in_rows} * product.in.square_blocks,
                                "The sums of squares of a product with experts");
  for (const WeightShard& shard : weight.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state_);
    bindings.insert(bindings.end(), {product.in.values, squares, product.chosen, tile_list, order, product.out,
                                     bias_of(product.bias, weight.rows(), state_.dummy)});
    const ExpertPush common{
        shard.layout.rows, shard.layout.first_row,           cols, rows, product.row_pairs, product.in.square_blocks,
        product.norm_eps,  product.bias != nullptr ? 1u : 0u};
    std::vector<std::byte> push(bytes_of(common).begin(), bytes_of(common).end());
    push.insert(push.end(), product.own_push.begin(), product.own_push.end());
    list.bind(compiled, bindings, push);
    list.dispatch(tiles.most(), workgroups(rows, kernel.rows));
  }
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const RouteArgs& args) {
  check_route(args);
  const uint32_t all = args.experts.all, used = args.experts.used;
  const uint32_t router_rows = args.experts.router_rows(), row_shares = args.experts.row_shares();
  const VulkanActivations& in = activations_of(*args.in);
  require_width(args.width, in, "route");
  const uint32_t cols = in.cols();
  const Binding logits = words(*args.logits, uint64_t{args.width} * router_rows, "The logits of route");
  struct LogitsPush {
    uint32_t cols, experts, square_blocks;
    float norm_eps;
    uint32_t has_bias;
  };
  struct ChoosePush {
    uint32_t experts, used, of_chosen, shared_gates, shared_experts, first_word, has_choice_bias, groups, groups_used;
    float factor;
  };
  const bool marks = args.touched != nullptr;
  const uint32_t first_word = args.layer * args.experts.touched_words();
  const Binding rows =
      marks ? words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of route") : Binding(state_.dummy);
  const Binding touched =
      marks ? words(*args.touched, uint64_t{first_word} + args.experts.touched_words(), "The touched experts of route")
            : Binding(state_.dummy);
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  list.bind(state_.context->kernel(cols % 4 == 0 ? "route_logits_quads" : "route_logits_words"),
            {in.values, squares_of(in, args.width, "The sums of squares of route"),
             words(*args.router, uint64_t{router_rows} * cols, "The router of route"), logits,
             bias_of(args.bias, router_rows, state_.dummy)},
            LogitsPush{cols, router_rows, in.square_blocks, args.norm_eps, args.bias != nullptr ? 1u : 0u});
  list.dispatch(workgroups(router_rows, kRouterExperts), args.width);
  list.barrier();
  const KernelOptions choice{{{0, marks ? 1u : 0u}, {1, args.scales != nullptr ? 1u : 0u}, {2, args.sigmoid ? 1u : 0u}},
                             0};
  list.bind(
      state_.context->kernel("route_choose", choice),
      {logits, words(*args.chosen, uint64_t{args.width} * used, "The chosen experts of route"),
       words(*args.shares, uint64_t{args.width} * row_shares, "The shares of route"), rows, touched,
       args.scales != nullptr ? words(*args.scales, all, "The scales of route") : Binding(state_.dummy),
       args.choice_bias != nullptr ? words(*args.choice_bias, all, "The choice bias of route") : Binding(state_.dummy)},
      ChoosePush{all, used, args.of_chosen ? 1u : 0u, router_rows - all, row_shares - used, first_word,
                 args.choice_bias != nullptr ? 1u : 0u, args.groups, args.groups_used, args.factor});
  list.dispatch(args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const CountExpertsArgs& args) {
  check_experts(args.experts, "count_experts");
  struct Push {
    uint32_t words;
  };
  const uint32_t words_of_layer = args.experts.touched_words();
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("count_experts"),
            {words(*args.touched, uint64_t{args.layers} * words_of_layer, "The touched experts of count_experts"),
             words(*args.counts, args.layers, "The counts of count_experts")},
            Push{words_of_layer});
  list.dispatch(args.layers);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const ExpertSwigluArgs& args) {
  check_shapes(args.experts, *args.weight, *args.in, "expert_swiglu");
  const uint32_t pairs = args.width * args.experts.used;
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, *args.in, "expert_swiglu");
  require_width(pairs, out, "expert_swiglu");
  if (args.expert_rows() % 2 != 0) {
    throw bad_input("expert_swiglu needs paired experts; each has " + std::to_string(args.expert_rows()) + " rows.");
  }
  struct OwnPush {
    float limit;
    uint32_t is_gelu;
  };
  const OwnPush own{args.limit, args.gate == GateFunction::gelu ? 1u : 0u};
  record_expert_product({.shader = "expert_swiglu",
                         .weight = *args.weight,
                         .in = activations_of(*args.in),
                         .in_rows = args.width,
                         .row_pairs = args.experts.used,
                         .norm_eps = args.norm_eps,
                         .chosen = words(*args.chosen, pairs, "The chosen experts of expert_swiglu"),
                         .out = out.values,
                         .bias = args.bias,
                         .own_push = bytes_of(own)},
                        choose_experts(state_, weight_of(*args.weight), args.experts, args.width));
}

template <>
void VulkanRecorder::record_op(const ExpertAddArgs& args) {
  check_shapes(args.experts, *args.weight, *args.in, "expert_add");
  const uint32_t pairs = args.width * args.experts.used, rows = args.expert_rows();
  require_width(pairs, *args.in, "expert_add");
  const Binding products = words(*args.products, uint64_t{pairs} * rows, "The products of expert_add");
  const Binding chosen = words(*args.chosen, pairs, "The chosen experts of expert_add");
  // As the first of a layer's two products has taken the pairs.
  const bool follows = grouped_ && grouped_->is_of(chosen, args.experts, args.width);
  const ExpertVariant variant = experts_like(state_, weight_of(*args.weight), args.experts, args.width,
                                             follows ? std::optional(grouped_->columns) : std::nullopt);
  record_expert_product({.shader = "expert_products",
                         .weight = *args.weight,
                         .in = activations_of(*args.in),
                         .in_rows = pairs,
                         .row_pairs = 1,
                         .norm_eps = 0,
                         .chosen = chosen,
                         .out = products,
                         .bias = args.bias,
                         .own_push = {}},
                        variant);
  if (args.x == nullptr) return;
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "expert_add");
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * args.aux_stride + args.aux_offset + rows,
                                  "The aux hidden states of expert_add")
                          : Binding(state_.dummy);
  const uint32_t row_shares = args.experts.row_shares();
  const Binding shared = args.experts.shared
                             ? words(*args.shared, uint64_t{args.width} * rows, "The shared expert of expert_add")
                             : Binding(state_.dummy);
  CommandList& list = this->list(0);
  struct Push {
    uint32_t rows, used, shared_experts, square_blocks, aux_stride, aux_offset;
  };
  list.bind(state_.context->kernel("expert_add"),
            {products, words(*args.shares, uint64_t{args.width} * row_shares, "The shares of expert_add"),
             words(*args.x, uint64_t{args.width} * rows, "The residual stream of expert_add"),
             words(*args.norm.weight, rows, "The norm weight of expert_add"), out.values,
             squares_of(out, args.width, "The sums of squares of expert_add"), aux, shared},
            Push{rows, args.experts.used, row_shares - args.experts.used, out.square_blocks,
                 args.aux != nullptr ? args.aux_stride : 0, args.aux_offset});
  list.dispatch(out.square_blocks, args.width);
  list.barrier();
}

}  // namespace canopy::vk

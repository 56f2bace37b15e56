// Mixtures of experts: shaders/route_*.comp, expert_*.comp. Where products are computed on matrix cores, so are those
// with experts; else by multiply-adds.

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/expert_choice.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

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

// EXPERT_PUSH of shaders/expert_pairs.glsl.
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
  check_experts(args.experts, "route");
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
    uint32_t experts, used, of_chosen, shared_experts, first_word;
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
  list.bind(state_.context->kernel("route_choose", {{{0, marks ? 1u : 0u}}, 0}),
            {logits, words(*args.chosen, uint64_t{args.width} * used, "The chosen experts of route"),
             words(*args.shares, uint64_t{args.width} * row_shares, "The shares of route"), rows, touched},
            ChoosePush{all, used, args.of_chosen ? 1u : 0u, router_rows - all, first_word});
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
  record_expert_product({.shader = "expert_swiglu",
                         .weight = *args.weight,
                         .in = activations_of(*args.in),
                         .in_rows = args.width,
                         .row_pairs = args.experts.used,
                         .norm_eps = args.norm_eps,
                         .chosen = words(*args.chosen, pairs, "The chosen experts of expert_swiglu"),
                         .out = out.values,
                         .bias = args.bias,
                         .own_push = bytes_of(args.limit)},
                        choose_experts(state_, weight_of(*args.weight), args.experts, args.width));
}

template <>
void VulkanRecorder::record_op(const ExpertAddArgs& args) {
  check_shapes(args.experts, *args.weight, *args.in, "expert_add");
  const uint32_t pairs = args.width * args.experts.used, rows = args.expert_rows();
  const VulkanActivations& out = activations_of(*args.out);
  require_width(pairs, *args.in, "expert_add");
  require_width(args.width, out, "expert_add");
  const Binding products = words(*args.products, uint64_t{pairs} * rows, "The products of expert_add");
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * args.aux_stride + args.aux_offset + rows,
                                  "The aux hidden states of expert_add")
                          : Binding(state_.dummy);
  const uint32_t row_shares = args.experts.row_shares();
  const Binding shared = args.experts.shared
                             ? words(*args.shared, uint64_t{args.width} * rows, "The shared expert of expert_add")
                             : Binding(state_.dummy);
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

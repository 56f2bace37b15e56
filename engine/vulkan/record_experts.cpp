// Mixtures of experts: shaders/route_*.comp, expert_*.comp. Products with experts are multiply-adds in all families;
// those of the family that reads texels differ only in how weights are fetched.

#include <algorithm>
#include <bit>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kExpertLanes = 64;   // rows of an expert that a workgroup has
constexpr uint32_t kRouterExperts = 4;  // of a workgroup of route_logits.comp
constexpr uint32_t kExpertSlice = 256;  // columns: SLICE of shaders/expert_product.glsl
constexpr uint32_t kMostSlices = 4;
// Rows of a pass from which on pairs are grouped by their expert: with fewer, hardly two rows have the same.
constexpr uint32_t kGroupedWidth = 8;

// EXPERT_PUSH of shaders/expert_product.glsl.
struct ExpertPush {
  uint32_t shard_rows, shard_first, cols, expert_rows, row_pairs, in_tile, square_blocks;
  float norm_eps;
  uint32_t has_bias;
};

uint32_t groups_of(uint32_t count, uint32_t size) {
  return (count + size - 1) / size;
}

/// Pairs of a row and one of its experts, and how a product's workgroups take them: up to `columns` of one expert.
struct PairTiles {
  ExpertCounts experts;
  uint32_t width = 0;
  uint32_t columns = 1;

  uint32_t pairs() const { return width * experts.used; }
  bool grouped() const { return columns > 1; }
  /// Tiles that there are room for: at most so many experts have a last one that is not full.
  uint32_t most() const { return grouped() ? std::min(pairs(), experts.all) + pairs() / columns : pairs(); }
  uint64_t tile_bytes() const { return (uint64_t{most()} * 16 + 255) / 256 * 256; }
};

PairTiles pair_tiles(const ExpertCounts& experts, uint32_t width, bool software) {
  PairTiles tiles{experts, width};
  if (width < kGroupedWidth) return tiles;
  tiles.columns = !software && tiles.pairs() >= 8 * experts.all ? 8 : 4;
  return tiles;
}

KernelOptions product_options(const PairTiles& tiles, uint32_t cols, bool software) {
  const uint32_t useful = std::bit_floor(groups_of(cols, kExpertSlice));
  const uint32_t most = software ? 1 : std::max(1u, kMostSlices * 2 / std::max(2u, tiles.columns));
  return {{{0, tiles.columns}, {1, kExpertLanes}, {2, std::min(useful, most)}, {3, tiles.grouped() ? 1u : 0u}}, 0};
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

/// What the two products with experts have in common.
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
};

Binding bias_of(const canopy::Buffer* bias, uint64_t rows, const Buffer& none) {
  return bias != nullptr ? words(*bias, rows, "The bias of experts") : Binding(none);
}

/// Groups the pairs by expert, where tiles have several. Gives the bindings of tiles and order.
std::vector<Binding> record_groups(DeviceState& state, CommandList& list, const PairTiles& tiles, const Binding& chosen,
                                   const Buffer& room) {
  const Binding tile_list(room, 0, uint64_t{tiles.most()} * 16);
  const Binding order(room, tiles.tile_bytes(), uint64_t{tiles.pairs()} * 4);
  struct Push {
    uint32_t pairs, experts, tile_pairs, most_tiles;
  };
  list.bind(state.context->kernel("expert_groups"), {chosen, tile_list, order},
            Push{tiles.pairs(), tiles.experts.all, tiles.columns, tiles.most()});
  list.dispatch(1);
  list.barrier();
  return {tile_list, order};
}

template <class MakePush>
void record_product_of(DeviceState& state, CommandList& list, const PairTiles& tiles, const Buffer* room,
                       const ExpertProduct& product, const MakePush& push) {
  const VulkanWeight& weight = weight_of(product.weight);
  const uint32_t cols = weight.cols(), rows = weight.rows() / tiles.experts.all;
  std::vector<Binding> grouping = {Binding(state.dummy), Binding(state.dummy)};
  if (tiles.grouped()) grouping = record_groups(state, list, tiles, product.chosen, *room);
  const Kernel& kernel = state.context->kernel(weight_shader(product.shader, weight.type(), state.texel_fetch),
                                               product_options(tiles, cols, state.software));
  const Binding squares = words(product.in.squares, uint64_t{product.in_rows} * product.in.square_blocks,
                                "The sums of squares of a product with experts");
  for (const WeightShard& shard : weight.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state);
    bindings.insert(bindings.end(), {product.in.values, squares, product.chosen, grouping[0], grouping[1], product.out,
                                     bias_of(product.bias, weight.rows(), state.dummy)});
    const ExpertPush common{shard.layout.rows,
                            shard.layout.first_row,
                            cols,
                            rows,
                            product.row_pairs,
                            state.layout(product.in_rows, cols).tile,
                            product.in.square_blocks,
                            product.norm_eps,
                            product.bias != nullptr ? 1u : 0u};
    list.bind(kernel, bindings, bytes_of(push(common)));
    list.dispatch(tiles.most(), groups_of(rows, kExpertLanes));
  }
  list.barrier();
}

}  // namespace

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
    uint32_t cols, experts, tile, square_blocks;
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
            LogitsPush{cols, router_rows, state_.layout(args.width, cols).tile, in.square_blocks, args.norm_eps,
                       args.bias != nullptr ? 1u : 0u});
  list.dispatch(groups_of(router_rows, kRouterExperts), args.width);
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
  const PairTiles tiles = pair_tiles(args.experts, args.width, state_.software);
  const Buffer* room =
      tiles.grouped() ? &scratch(tiles.tile_bytes() + uint64_t{pairs} * 4, "groups of experts") : nullptr;
  struct Push {
    ExpertPush product;
    uint32_t out_tile;
    float limit;
  };
  const ExpertProduct product{.shader = "expert_swiglu",
                              .weight = *args.weight,
                              .in = activations_of(*args.in),
                              .in_rows = args.width,
                              .row_pairs = args.experts.used,
                              .norm_eps = args.norm_eps,
                              .chosen = words(*args.chosen, pairs, "The chosen experts of expert_swiglu"),
                              .out = out.values,
                              .bias = args.bias};
  record_product_of(state_, list(static_cast<double>(args.price().flops)), tiles, room, product,
                    [&](const ExpertPush& common) {
                      return Push{common, state_.layout(pairs, out.cols()).tile, args.limit};
                    });
}

template <>
void VulkanRecorder::record_op(const ExpertAddArgs& args) {
  check_shapes(args.experts, *args.weight, *args.in, "expert_add");
  const uint32_t pairs = args.width * args.experts.used, rows = args.expert_rows();
  const VulkanActivations& out = activations_of(*args.out);
  require_width(pairs, *args.in, "expert_add");
  require_width(args.width, out, "expert_add");
  const PairTiles tiles = pair_tiles(args.experts, args.width, state_.software);
  const Buffer* room =
      tiles.grouped() ? &scratch(tiles.tile_bytes() + uint64_t{pairs} * 4, "groups of experts") : nullptr;
  const Binding products = words(*args.products, uint64_t{pairs} * rows, "The products of expert_add");
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * args.aux_stride + args.aux_offset + rows,
                                  "The aux hidden states of expert_add")
                          : Binding(state_.dummy);
  const uint32_t row_shares = args.experts.row_shares();
  const Binding shared = args.experts.shared
                             ? words(*args.shared, uint64_t{args.width} * rows, "The shared expert of expert_add")
                             : Binding(state_.dummy);
  const ExpertProduct product{.shader = "expert_products",
                              .weight = *args.weight,
                              .in = activations_of(*args.in),
                              .in_rows = pairs,
                              .row_pairs = 1,
                              .norm_eps = 0,
                              .chosen = words(*args.chosen, pairs, "The chosen experts of expert_add"),
                              .out = products,
                              .bias = args.bias};
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  record_product_of(state_, list, tiles, room, product, [](const ExpertPush& common) { return common; });
  struct Push {
    uint32_t rows, used, shared_experts, out_tile, square_blocks, aux_stride, aux_offset;
  };
  list.bind(state_.context->kernel("expert_add"),
            {products, words(*args.shares, uint64_t{args.width} * row_shares, "The shares of expert_add"),
             words(*args.x, uint64_t{args.width} * rows, "The residual stream of expert_add"),
             words(*args.norm.weight, rows, "The norm weight of expert_add"), out.values,
             squares_of(out, args.width, "The sums of squares of expert_add"), aux, shared},
            Push{rows, args.experts.used, row_shares - args.experts.used, state_.layout(args.width, rows).tile,
                 out.square_blocks, args.aux != nullptr ? args.aux_stride : 0, args.aux_offset});
  list.dispatch(out.square_blocks, args.width);
  list.barrier();
}

}  // namespace canopy::vk

// Mixtures of experts: kernels/route.cu, kernels/experts.cu.

#include <string>

#include "cuda_backend/record.h"
#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy::cuda {
namespace {

static_assert(kMostExperts == kMaxExperts && kMostUsedExperts == kMaxUsedExperts && kGateSlope == kClampedSlope);

constexpr uint32_t kMostBlocks = 65535;  // of a grid, but along x

/// Pairs of a row and one of its experts.
uint32_t pairs_of(uint32_t width, const ExpertCounts& experts, const char* op) {
  const uint64_t pairs = uint64_t{width} * experts.used;
  if (pairs >= 1 && pairs <= kMostBlocks) return static_cast<uint32_t>(pairs);
  throw bad_input(std::string(op) + " is asked for " + std::to_string(width) + " rows of " + describe(experts) +
                  "; allowed: 1 to " + std::to_string(kMostBlocks / experts.used) + " rows.");
}

}  // namespace

void CallRecorder::add(const RouteArgs& args) {
  check_experts(args.experts, "route");
  const uint32_t all = args.experts.all, router_rows = args.experts.router_rows();
  const uint32_t cols = own<CudaActivations>(args.in, "The activations of a router").cols();
  RouteParams p;
  p.in = rows_of(args.in, args.width, cols, "The activations of a router");
  p.router = at(args.router, floats(router_rows, cols), "The router");
  p.logits = at(args.logits, floats(args.width, router_rows), "The logits of experts");
  p.chosen = at(args.chosen, floats(args.width, args.experts.used), "The chosen experts");
  p.shares = at(args.shares, floats(args.width, args.experts.row_shares()), "The shares of experts");
  p.counters = counters_.at_least(floats(1, args.width), "counters of blocks");
  p.experts = all;
  p.used = args.experts.used;
  p.shared_experts = router_rows - all;
  p.of_chosen = args.of_chosen ? 1 : 0;
  p.norm_eps = args.norm_eps;
  if (args.bias != nullptr) p.bias = at(args.bias, floats(1, router_rows), "The bias of a router");
  if (args.touched != nullptr) {
    const uint64_t words = args.experts.touched_words();
    p.rows = at(args.rows, uint64_t{args.width} * sizeof(Row), "The rows of a pass");
    p.touched = at(args.touched, (args.layer + 1) * words * 4, "The touched experts") + args.layer * words * 4;
  }
  groups_ = {};
  const uint32_t blocks = (router_rows + kRouteExperts - 1) / kRouteExperts;
  calls.push_back(call_of("route", p, kRouteExperts * 32, blocks, args.width, 1, kRouteShared));
}

void CallRecorder::add(const CountExpertsArgs& args) {
  check_experts(args.experts, "count_experts");
  CountExpertsParams p;
  p.words = args.experts.touched_words();
  p.touched = at(args.touched, floats(args.layers, p.words), "The touched experts");
  p.counts = at(args.counts, floats(1, args.layers), "The counts of experts");
  calls.push_back(call_of("count_experts", p, 32, args.layers));
}

CallRecorder::Groups CallRecorder::groups_of(Address chosen, const ExpertCounts& experts, uint32_t pairs,
                                             uint32_t columns) {
  if (columns == 1) return {};
  const uint32_t most = most_expert_tiles(experts, pairs, columns);
  const uint64_t tile_bytes = uint64_t{most} * sizeof(ExpertTile);
  Groups groups{chosen, pairs, columns, experts.all};
  groups.tiles = groups_memory_.at_least(tile_bytes + floats(1, pairs), "groups of rows with the same expert");
  groups.order = groups.tiles + tile_bytes;
  if (groups == groups_) return groups;  // made for the op before, and not written since
  groups_ = groups;
  ExpertGroupsParams p;
  p.chosen = chosen;
  p.tiles = groups.tiles;
  p.order = groups.order;
  p.pairs = pairs;
  p.experts = experts.all;
  p.tile_pairs = columns;
  p.most_tiles = most;
  calls.push_back(call_of("expert_groups", p, kGroupThreads, 1, 1, 1, kGroupShared));
  return groups;
}

void CallRecorder::product_of_experts(ProductParams product, const Weight* weight, const Activations* in,
                                      uint32_t in_rows, const Buffer* chosen, const ExpertCounts& experts,
                                      uint32_t pairs, const Buffer* bias, float limit) {
  const auto& all = own<CudaWeight>(weight, "The weight of experts");
  check_experts(experts, "A product with experts");
  const uint32_t rows = all.rows() / experts.all;
  if (all.rows() % experts.all != 0 || rows % kTileRows != 0) {
    throw bad_input("The weight of " + std::to_string(experts.all) + " experts has " + std::to_string(all.rows()) +
                    " rows; on CUDA devices each expert must have a multiple of " + std::to_string(kTileRows) +
                    " rows. Choose the GPU's Vulkan device.");
  }
  ExpertParams p;
  p.product = product;
  p.product.weights[0] = all.params();
  p.product.weights[0].rows = rows;
  p.product.in = rows_of(in, in_rows, all.cols(), "The activations of a product");
  const TileShape& shape = all.tiles.shape;
  const uint32_t columns = columns_of_experts(experts, pairs / experts.used);
  const ExpertPlan plan = plan_experts(p.product.weights[0], shape, columns, limits_);
  p.product.width = columns;
  p.product.chunk_supers = plan.product.cut.chunk_supers;
  p.product.segment_supers = plan.product.cut.segment_supers;
  p.product.row_warps = plan.product.row_warps;
  p.product.stages = plan.product.stages;
  p.product.row_tiles[0] = plan.product.row_tiles[0];
  p.tile_at = plan.tile_at;
  p.totals_at = plan.totals_at;
  p.chosen = at(chosen, floats(1, pairs), "The chosen experts");
  const Groups groups = groups_of(p.chosen, experts, pairs, columns);
  p.tiles = groups.tiles;
  p.order = groups.order;
  p.expert_bytes = uint64_t{p.product.weights[0].groups()} * p.product.weights[0].supers() * shape.bytes();
  p.row_pairs = pairs / in_rows;
  if (bias != nullptr) p.bias = at(bias, floats(1, all.rows()), "The bias of experts");
  p.limit = limit;
  calls.push_back(call_of(expert_kernel(all.type(), columns), p, plan.product.threads, plan.product.row_tiles[0],
                          most_expert_tiles(experts, pairs, columns), 1, plan.shared_bytes));
}

void CallRecorder::add(const ExpertSwigluArgs& args) {
  check_experts(args.experts, "expert_swiglu");
  const uint32_t pairs = pairs_of(args.width, args.experts, "expert_swiglu"), rows = args.expert_rows();
  if (rows % 2 != 0) throw bad_input("Paired experts have an odd number of rows.");
  ProductParams p;
  p.kind = ProductKind::swiglu;
  p.norm_eps = args.norm_eps;
  p.out_activations = rows_of(args.out, pairs, rows / 2, "The gated activations of experts");
  product_of_experts(p, args.weight, args.in, args.width, args.chosen, args.experts, pairs, args.bias, args.limit);
}

void CallRecorder::add(const ExpertAddArgs& args) {
  check_experts(args.experts, "expert_add");
  const uint32_t pairs = pairs_of(args.width, args.experts, "expert_add"), rows = args.expert_rows();
  ProductParams product;
  product.kind = ProductKind::store;
  product.out = at(args.products, floats(pairs, rows), "The products of experts");
  product.out_stride = rows;
  product_of_experts(product, args.weight, args.in, pairs, args.chosen, args.experts, pairs, args.bias, 0);
  ExpertAddParams p;
  p.products = product.out;
  p.shares = at(args.shares, floats(args.width, args.experts.row_shares()), "The shares of experts");
  if (args.experts.shared) p.shared = at(args.shared, floats(args.width, rows), "The shared expert");
  p.x = at(args.x, floats(args.width, rows), "The residual stream");
  p.norm = at(args.norm.weight, floats(1, rows), "The weight of a norm");
  p.out = rows_of(args.out, args.width, rows, "The activations of a sum");
  p.used = args.experts.used;
  if (args.aux != nullptr) {
    if (args.aux_offset + rows > args.aux_stride) throw bad_input("Aux hidden states do not fit into their rows.");
    p.aux = at(args.aux, floats(args.width, args.aux_stride), "The aux hidden states");
    p.aux_stride = args.aux_stride;
    p.aux_offset = args.aux_offset;
  }
  constexpr uint32_t threads = 256;
  calls.push_back(call_of("expert_add", p, threads, (rows + threads - 1) / threads, args.width));
}

}  // namespace canopy::cuda

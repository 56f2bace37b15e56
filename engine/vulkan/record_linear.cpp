// The matrix products of the family that reads texels: shaders/linear*.comp, a dispatch for each shard of rows. Those
// of the other families are in record_product.cpp.

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/product_choice.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

namespace {

// The first push constants of every shaders/linear*.comp: what is multiplied, and where the dispatch begins.
struct ProductPush {
  uint32_t rows, cols, first_column, first_quad;
};

struct LinearPush {
  ProductPush product;
  uint32_t width, stride, offset;
  float norm_eps;
};

struct LinearAddPush {
  ProductPush product;
  uint32_t row_offset, total_rows, width, tile, counter, groups, partial_base, aux_stride, aux_offset;
};

struct LinearHeadsPush {
  ProductPush product;
  uint32_t width, first_element, heads, kv_heads;
  float norm_eps;
};

struct LinearSwigluPush {
  ProductPush product;
  uint32_t row_offset, total_rows, width, tile;
  float norm_eps;
};

uint32_t group_count(const WeightShard& shard, const LinearConfig& config) {
  const uint32_t rows = config.lanes * config.rows;
  return (shard.layout.rows + rows - 1) / rows;
}

// The common part of all products: a weight, the activations it is multiplied with, and the tiles of both.
struct Product {
  const VulkanWeight& weight;
  const VulkanActivations& in;
  uint32_t width;
  ActivationLayout layout;
  LinearConfig config;

  double flops() const { return 2.0 * weight.rows() * weight.cols() * width; }
  bool has_whole_quads() const { return weight.rows() % config.rows == 0; }
};

Product product_of(DeviceState& state, const canopy::Weight& weight, const canopy::Activations& activations,
                   uint32_t width, const char* op) {
  const VulkanActivations& in = activations_of(activations);
  require_width(width, in, op);
  if (in.cols() != weight.cols()) {
    throw bad_input(std::string(op) + " multiplies a weight of " + std::to_string(weight.cols()) +
                    " columns with activations of " + std::to_string(in.cols()) + "; they must agree.");
  }
  const ActivationLayout layout = state.layout(width, weight.cols());
  const VulkanWeight& matrix = weight_of(weight);
  return {matrix, in, width, layout, choose_linear(state, matrix, layout.tile)};
}

KernelOptions options_of(const Product& product, bool quads) {
  const VulkanWeight& weight = product.weight;
  return linear_options(product.config, weight.type(), product.layout.tile, weight.cols() % 32 != 0, quads);
}

Binding squares_of(const Product& product) {
  return words(product.in.squares, product.width, "The sums of squares of a product");
}

// Records the dispatches of a product and the barrier behind them. The kernel is chosen for the whole weight, so that
// all shards use it. `outputs` are the bindings behind weight and activations; push(product, shard) completes the push
// constants.
template <class MakePush>
void dispatch(DeviceState& state, CommandList& list, const std::string& shader, const KernelOptions& options,
              const Product& product, const std::vector<Binding>& outputs, const MakePush& push) {
  const VulkanWeight& weight = product.weight;
  const ActivationLayout& layout = product.layout;
  const Kernel& kernel = state.context->kernel(weight_shader(shader, weight.type(), true), options);
  for (const WeightShard& shard : weight.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state);
    bindings.emplace_back(product.in.texels);
    bindings.insert(bindings.end(), outputs.begin(), outputs.end());
    const ProductPush common{shard.layout.rows, weight.cols(), 0, 0};
    list.bind(kernel, bindings, bytes_of(push(common, shard)));
    list.dispatch(layout.tiles(), group_count(shard, product.config));
  }
  list.barrier();
}

const BufferView& texels_of(const canopy::Buffer& buffer) {
  return static_cast<const VulkanBuffer&>(buffer).texels;
}

// Whether linear_heads.comp can do it: each invocation has whole pairs of one head, and no element needs the others of
// its block to be stored.
bool fuses(DeviceState& state, const ProjectHeadsArgs& args) {
  const RopeStoreArgs& heads = args.heads;
  const bool in_place = heads.shape.type != CacheType::q8_0 && heads.interleaved && heads.q_norm == nullptr &&
                        heads.k_norm == nullptr && heads.shape.head_dim % 4 == 0 && texels_of(*heads.rotation);
  return in_place && std::ranges::all_of(args.weights, [&](const canopy::Weight* weight) {
           const uint32_t columns = state.layout(heads.width, weight->cols()).tile;
           return weight->rows() % choose_linear(state, weight_of(*weight), columns).rows == 0;
         });
}

}  // namespace

template <>
void VulkanRecorder::record_op(const ProjectHeadsArgs& args) {
  check_heads(args);
  if (state_.family != KernelFamily::texel) return record_heads(args);
  if (!fuses(state_, args)) {
    for (const Op& op : separate_ops(args)) record(op);
    return;
  }
  uint32_t first_element = 0;
  for (const canopy::Weight* weight : args.weights) {
    record_fused_heads(args, *weight, first_element);
    first_element += weight->rows();
  }
}

void VulkanRecorder::record_fused_heads(const ProjectHeadsArgs& args, const canopy::Weight& weight,
                                        uint32_t first_element) {
  const RopeStoreArgs& heads = args.heads;
  const uint32_t dim = heads.shape.head_dim;
  const VulkanKv& kv = checked_kv(*heads.cache, heads.shape, "project_heads");
  const Product product = product_of(state_, weight, *args.in, heads.width, "project_heads");
  KernelOptions options = options_of(product, true);
  options.spec.insert(options.spec.end(), {{9, dim}, {10, heads.shape.type == CacheType::f16 ? 1u : 0u}});
  const std::vector<Binding> outputs = {
      squares_of(product),
      words(*heads.rows, uint64_t{heads.width} * sizeof(Row) / 4, "The rows of project_heads"),
      texels_of(*heads.rotation),
      queries_of(heads, state_.dummy),
      kv.keys,
      kv.values,
      kv.keys,
      kv.values};
  dispatch(state_, list(product.flops()), "linear_heads", options, product, outputs,
           [&](const ProductPush& common, const WeightShard& shard) {
             return LinearHeadsPush{common,      heads.width,          first_element + shard.layout.first_row,
                                    heads.heads, heads.shape.kv_heads, args.in_norm_eps};
           });
}

template <>
void VulkanRecorder::record_op(const LinearArgs& args) {
  if (state_.family != KernelFamily::texel) return record_products({&args, 1});
  const Product product = product_of(state_, *args.weight, *args.in, args.width, "linear");
  const bool quads = product.has_whole_quads() && args.stride % 4 == 0 && args.offset % 4 == 0;
  const Binding out = words(*args.out, uint64_t{args.width - 1} * args.stride + args.offset + args.weight->rows(),
                            "The output of linear");
  dispatch(state_, list(product.flops()), "linear", options_of(product, quads), product,
           {squares_of(product), out, out}, [&](const ProductPush& common, const WeightShard& shard) {
             return LinearPush{common, args.width, args.stride, args.offset + shard.layout.first_row, args.norm_eps};
           });
}

template <>
void VulkanRecorder::record_op(const LinearAddArgs& args) {
  if (state_.family != KernelFamily::texel) return record_product(args);
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "linear_add");
  const Product product = product_of(state_, *args.weight, *args.in, args.width, "linear_add");
  const uint32_t rows = args.weight->rows();
  const bool quads = product.has_whole_quads() && args.aux_stride % 4 == 0 && args.aux_offset % 4 == 0;
  const Binding x = words(*args.x, uint64_t{args.width} * rows, "The residual stream of linear_add");
  const Binding norm = words(*args.norm.weight, rows, "The norm weight of linear_add");
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * args.aux_stride + args.aux_offset + rows,
                                  "The tap of linear_add")
                          : Binding(state_.dummy);
  uint32_t groups = 0;
  for (const WeightShard& shard : product.weight.shards) groups += group_count(shard, product.config);
  const uint32_t out_tile = state_.layout(args.width, rows).tile;
  dispatch(state_, list(product.flops()), "linear_add", options_of(product, quads), product,
           {x, out.values, out.squares, out.counters, norm, aux, x, out.values, norm, aux},  // the last four as quads
           [&](const ProductPush& common, const WeightShard& shard) {
             return LinearAddPush{common,
                                  shard.layout.first_row,
                                  rows,
                                  args.width,
                                  out_tile,
                                  0,
                                  groups,
                                  out.partial_base(),
                                  args.aux != nullptr ? args.aux_stride : 0,
                                  args.aux_offset};
           });
}

template <>
void VulkanRecorder::record_op(const LinearSwigluArgs& args) {
  if (state_.family != KernelFamily::texel) return record_product(args);
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "linear_swiglu");
  const uint32_t rows = args.weight->rows();
  if (rows % 2 != 0) {
    throw bad_input("linear_swiglu needs a paired weight; this one has " + std::to_string(rows) + " rows.");
  }
  const Product product = product_of(state_, *args.weight, *args.in, args.width, "linear_swiglu");
  const uint32_t out_tile = state_.layout(args.width, rows / 2).tile;
  KernelOptions options = options_of(product, product.has_whole_quads());
  if (args.gate == GateFunction::gelu) options.spec.push_back({10, 1});
  dispatch(state_, list(product.flops()), "linear_swiglu", options, product,
           {squares_of(product), out.values, out.values}, [&](const ProductPush& common, const WeightShard& shard) {
             return LinearSwigluPush{common, shard.layout.first_row, rows, args.width, out_tile, args.norm_eps};
           });
}

}  // namespace canopy::vk

// The matrix products of GPUs: shaders/product_*.comp, a dispatch for each shard of a weight's rows, cut over tiles of
// columns, tiles of rows and chunks of K.

#include <string>

#include "engine/base/error.h"
#include "engine/compute/product_split.h"
#include "engine/vulkan/product_choice.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

namespace tiled {  // beside the products of the texel family, which have parts of the same names
namespace {

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

struct SwigluPush {
  ProductPush product;
  uint32_t out_stride;
};

uint32_t groups(uint32_t count, uint32_t size) {
  return (count + size - 1) / size;
}

/// A product on the device, and where its shares of the partial sums and of the counters begin.
struct Product {
  const VulkanWeight& weight;
  const VulkanActivations& in;
  uint32_t width;
  float norm_eps;
  uint32_t chunk_columns;
  ProductVariant variant;
  uint32_t partial_base = 0;
  uint32_t counter_base = 0;

  uint32_t chunks() const { return groups(weight.cols(), chunk_columns); }
  uint32_t column_tiles() const { return groups(width, variant.columns); }
  uint64_t partials() const { return chunks() == 1 ? 0 : uint64_t{chunks()} * width * weight.rows(); }
  uint32_t tiles(const WeightShard& shard) const { return column_tiles() * groups(shard.layout.rows, variant.rows); }
  uint32_t counters() const {
    uint32_t count = 0;
    for (const WeightShard& shard : weight.shards) count += chunks() == 1 ? 0 : tiles(shard);
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
  return static_cast<uint32_t>(ActivationLayout{1, activations.cols(), 1}.tile_stride() / 4);
}

const char* shader_suffix(KernelFamily family) {
  switch (family) {
    case KernelFamily::matrix: return "_matrix";
    case KernelFamily::matrix_i8: return "_matrix_i8";
    default: return "";
  }
}

/// Records the dispatches of a product without the barrier behind them; push(common) completes the push constants.
template <class MakePush>
void dispatch(DeviceState& state, CommandList& list, const std::string& shader, const Product& product,
              const Buffer& partials, const Buffer& counters, const std::vector<Binding>& outputs,
              const MakePush& push) {
  const VulkanWeight& weight = product.weight;
  const Kernel& kernel = state.context->kernel(
      weight_shader(shader, weight.type(), false) + shader_suffix(product.variant.family), product.variant.options);
  uint32_t counter = product.counter_base, first_partial = product.partial_base;
  for (const WeightShard& shard : weight.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state);
    bindings.emplace_back(product.in.values);
    bindings.push_back(squares_of(product.in, product.width, "The sums of squares of a product"));
    bindings.emplace_back(partials);
    bindings.emplace_back(counters);
    bindings.insert(bindings.end(), outputs.begin(), outputs.end());
    const ProductPush common{shard.layout.rows,        weight.cols(),         product.width,   stride_of(product.in),
                             product.in.square_blocks, product.chunk_columns, first_partial,   counter,
                             shard.layout.first_row,   weight.rows(),         product.norm_eps};
    list.bind(kernel, bindings, bytes_of(push(common)));
    list.dispatch(product.column_tiles(), groups(shard.layout.rows, product.variant.rows), product.chunks());
    if (product.chunks() == 1) continue;
    counter += product.tiles(shard);
    first_partial += product.chunks() * product.width * shard.layout.rows;
  }
}

}  // namespace
}  // namespace tiled

void VulkanRecorder::record_products(std::span<const LinearArgs> products) {
  std::vector<tiled::Product> all;
  uint64_t partials = 0;
  uint32_t counted = 0;
  double flops = 0;
  for (const LinearArgs& args : products) {
    tiled::Product& product = all.emplace_back(
        tiled::product_of(state_, ProductOp::linear, *args.weight, *args.in, args.width, args.norm_eps));
    product.partial_base = static_cast<uint32_t>(partials);
    product.counter_base = counted;
    partials += product.partials();
    counted += product.counters();
    flops += product.flops();
  }
  const Buffer& sums = partials > 0 ? scratch(partials * 4, "partial sums") : state_.dummy;
  const Buffer& counts = counted > 0 ? counters(counted) : state_.dummy;
  CommandList& list = this->list(flops);
  for (size_t i = 0; i < all.size(); ++i) {
    const LinearArgs& args = products[i];
    const Binding out = words(*args.out, uint64_t{args.width - 1} * args.stride + args.offset + args.weight->rows(),
                              "The output of linear");
    tiled::dispatch(state_, list, "product_linear", all[i], sums, counts, {out}, [&](const tiled::ProductPush& common) {
      return tiled::LinearPush{common, args.stride, args.offset};
    });
  }
  list.barrier();
}

void VulkanRecorder::record_product(const LinearAddArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "linear_add");
  const tiled::Product product = tiled::product_of(state_, ProductOp::add, *args.weight, *args.in, args.width, 0);
  const uint32_t rows = args.weight->rows();
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * args.aux_stride + args.aux_offset + rows,
                                  "The aux hidden states of linear_add")
                          : Binding(state_.dummy);
  const std::vector<Binding> outputs = {
      words(*args.x, uint64_t{args.width} * rows, "The residual stream of linear_add"), out.values,
      squares_of(out, args.width, "The sums of squares of linear_add"),
      words(*args.norm.weight, rows, "The norm weight of linear_add"), aux};
  const Buffer& sums = product.partials() > 0 ? scratch(product.partials() * 4, "partial sums") : state_.dummy;
  const Buffer& counts = product.counters() > 0 ? counters(product.counters()) : state_.dummy;
  CommandList& list = this->list(product.flops());
  tiled::dispatch(state_, list, "product_add", product, sums, counts, outputs, [&](const tiled::ProductPush& common) {
    return tiled::AddPush{common, 4 * tiled::stride_of(out), args.aux != nullptr ? args.aux_stride : 0,
                          args.aux_offset};
  });
  list.barrier();
}

void VulkanRecorder::record_product(const LinearSwigluArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "linear_swiglu");
  if (args.weight->rows() % 2 != 0) {
    throw bad_input("linear_swiglu needs a paired weight; this one has " + std::to_string(args.weight->rows()) +
                    " rows.");
  }
  const tiled::Product product =
      tiled::product_of(state_, ProductOp::swiglu, *args.weight, *args.in, args.width, args.norm_eps);
  const Buffer& sums = product.partials() > 0 ? scratch(product.partials() * 4, "partial sums") : state_.dummy;
  const Buffer& counts = product.counters() > 0 ? counters(product.counters()) : state_.dummy;
  CommandList& list = this->list(product.flops());
  tiled::dispatch(state_, list, "product_swiglu", product, sums, counts, {out.values},
                  [&](const tiled::ProductPush& common) {
                    return tiled::SwigluPush{common, 4 * tiled::stride_of(out)};
                  });
  list.barrier();
}

}  // namespace canopy::vk

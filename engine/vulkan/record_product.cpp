// The matrix products of GPUs: shaders/product_*.comp, a dispatch for each shard of a weight's rows, cut over tiles of
// columns, tiles of rows and chunks of K.

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/compute/product_split.h"
#include "engine/vulkan/product_choice.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

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

struct HeadsPush {
  ProductPush product;
  uint32_t first_head, heads, kv_heads;
  float norm_eps;
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
  bool together = !state_.separate_steps;
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
      return HeadsPush{common, first_head, heads.heads, heads.shape.kv_heads, heads.norm_eps};
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

}  // namespace canopy::vk

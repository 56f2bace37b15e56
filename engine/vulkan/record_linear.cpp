// The matrix products: shaders/linear*.comp, a dispatch per shard of rows and run of tiles.

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/linear_tuner.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

namespace {

struct LinearAddPush {
  uint32_t rows, cols, first_column, first_quad, row_offset, total_rows, width, tile, counter, groups, partial_base,
      tap_stride, tap_offset;
};

struct LinearHeadsPush {
  uint32_t rows, cols, first_column, first_quad, width, first_element, heads, kv_heads;
  float norm_eps;
};

struct LinearSwigluPush {
  uint32_t rows, cols, first_column, first_quad, row_offset, total_rows, width, tile;
  float norm_eps;
};

uint32_t group_count(const WeightShard& shard, const LinearConfig& config) {
  const uint32_t rows = config.lanes * config.rows;
  return (shard.layout.rows + rows - 1) / rows;
}

// First quad of tile t in a panel.
uint32_t first_quad(const PanelLayout& layout, uint32_t t) {
  return static_cast<uint32_t>(t * layout.tile_stride() / 4);
}

// Tiles that one dispatch computes: all, where activations are one texel buffer; else tiles have bindings of their own.
uint32_t tiles_together(const DeviceState& state, const PanelLayout& layout) {
  return state.texel_fetch ? layout.tiles() : 1;
}

double flops_of(const canopy::Weight& weight, uint32_t width) {
  return 2.0 * weight.rows() * weight.cols() * width;
}

PanelLayout input_layout(const DeviceState& state, const canopy::Weight& weight, const canopy::Panel& in,
                         uint32_t width, const char* op) {
  require_width(width, in, op);
  if (in.cols() != weight.cols()) {
    throw bad_input(std::string(op) + " multiplies a weight of " + std::to_string(weight.cols()) +
                    " columns with a panel of " + std::to_string(in.cols()) + "; they must agree.");
  }
  const PanelLayout layout = state.layout(width, weight.cols());
  if (layout.tile == 0) {
    throw bad_input(std::string(op) + " has " + std::to_string(weight.cols()) + " columns; at most " +
                    std::to_string(kUniformBindings * kUniformFloats) + " are possible.");
  }
  return layout;
}

// The kernel of one tile: chosen for the whole weight, so that all shards and tiles use it.
const Kernel& linear_kernel(DeviceState& state, const std::string& shader, const LinearConfig& config,
                            const canopy::Weight& weight, uint32_t columns, bool quads) {
  return state.context->kernel(shader, linear_options(config, weight.type(), columns, weight.cols() % 32 != 0, quads));
}

const BufferView& texels_of(const canopy::Buffer& buffer) {
  return static_cast<const VulkanBuffer&>(buffer).texels;
}

// Whether linear_heads.comp can do it: each invocation has whole pairs of one head.
bool fuses(DeviceState& state, const ProjectHeadsArgs& args) {
  const RopeStoreArgs& heads = args.heads;
  const bool in_place = heads.interleaved && heads.q_norm == nullptr && heads.k_norm == nullptr &&
                        heads.shape.head_dim % 4 == 0 && (!state.texel_fetch || texels_of(*heads.rotation));
  return in_place && std::ranges::all_of(args.weights, [&](const canopy::Weight* weight) {
           const uint32_t columns = state.layout(heads.width, weight->cols()).tile;
           return columns != 0 && weight->rows() % choose_linear(state, weight_of(*weight), columns).rows == 0;
         });
}

}  // namespace

void VulkanRecorder::project_heads(const ProjectHeadsArgs& args) {
  check_heads(args);
  if (!fuses(state_, args)) return Recorder::project_heads(args);
  uint32_t first_element = 0;
  for (const canopy::Weight* weight : args.weights) {
    linear_heads(args, *weight, first_element);
    first_element += weight->rows();
  }
}

void VulkanRecorder::linear_heads(const ProjectHeadsArgs& args, const canopy::Weight& rows, uint32_t first_element) {
  const RopeStoreArgs& heads = args.heads;
  const uint32_t dim = heads.shape.head_dim;
  const VulkanWeight& weight = weight_of(rows);
  const VulkanPanel& in = panel_of(*args.in);
  const VulkanKv& kv = checked_kv(*heads.cache, heads.shape, "project_heads");
  const PanelLayout layout = input_layout(state_, weight, in, heads.width, "project_heads");
  const LinearConfig config = choose_linear(state_, weight, layout.tile);
  KernelOptions options = linear_options(config, weight.type(), layout.tile, weight.cols() % 32 != 0, true);
  options.spec.insert(options.spec.end(), {{9, dim}, {10, heads.shape.type == CacheType::f16 ? 1u : 0u}});
  CommandList& list = this->list(flops_of(weight, heads.width));
  const Kernel& kernel =
      state_.context->kernel(weight_shader("linear_heads", weight.type(), state_.texel_fetch), options);
  const uint32_t together = tiles_together(state_, layout);
  for (uint32_t t = 0; t < layout.tiles(); t += together) {
    for (const WeightShard& shard : weight.shards) {
      std::vector<Binding> bindings;
      bind_weight(bindings, shard, state_);
      bind_activations(bindings, in.values, in.texels, layout, t);
      bindings.push_back(words(in.squares, heads.width, "The sums of squares of project_heads"));
      bindings.push_back(words(*heads.rows, uint64_t{heads.width} * sizeof(Row) / 4, "The rows of project_heads"));
      bindings.push_back(state_.texel_fetch ? Binding(texels_of(*heads.rotation))
                                            : Binding(buffer_of(*heads.rotation)));
      bindings.push_back(words(*heads.q, uint64_t{heads.width} * heads.heads * dim, "The queries of project_heads"));
      for (int as = 0; as < 2; ++as) bindings.insert(bindings.end(), {Binding(kv.keys), Binding(kv.values)});
      const LinearHeadsPush push{shard.layout.rows,     weight.cols(),        t * layout.tile,
                                 first_quad(layout, t), heads.width,          first_element + shard.layout.first_row,
                                 heads.heads,           heads.shape.kv_heads, args.in_norm_eps};
      list.bind(kernel, bindings, bytes_of(push));
      list.dispatch(together, group_count(shard, config));
    }
  }
  list.barrier();
}

void VulkanRecorder::linear(const LinearArgs& args) {
  const VulkanWeight& weight = weight_of(*args.weight);
  const VulkanPanel& in = panel_of(*args.in);
  const PanelLayout layout = input_layout(state_, weight, in, args.width, "linear");
  const LinearConfig config = choose_linear(state_, weight, layout.tile);
  const bool quads = weight.rows() % config.rows == 0 && args.stride % 4 == 0 && args.offset % 4 == 0;
  CommandList& list = this->list(flops_of(weight, args.width));
  const Kernel& kernel = linear_kernel(state_, weight_shader("linear", weight.type(), state_.texel_fetch), config,
                                       weight, layout.tile, quads);
  const uint32_t together = tiles_together(state_, layout);
  for (uint32_t t = 0; t < layout.tiles(); t += together) {
    for (const WeightShard& shard : weight.shards) {
      std::vector<Binding> bindings;
      bind_weight(bindings, shard, state_);
      bind_activations(bindings, in.values, in.texels, layout, t);
      bindings.push_back(words(in.squares, args.width, "The sums of squares of linear"));
      bindings.push_back(words(*args.out, uint64_t{args.width - 1} * args.stride + args.offset + weight.rows(),
                               "The output of linear"));
      bindings.push_back(bindings.back());
      const LinearPush push{shard.layout.rows,
                            weight.cols(),
                            t * layout.tile,
                            first_quad(layout, t),
                            args.width,
                            args.stride,
                            args.offset + shard.layout.first_row,
                            args.norm_eps};
      list.bind(kernel, bindings, bytes_of(push));
      list.dispatch(together, group_count(shard, config));
    }
  }
  list.barrier();
}

void VulkanRecorder::linear_add(const LinearAddArgs& args) {
  const VulkanWeight& weight = weight_of(*args.weight);
  const VulkanPanel& in = panel_of(*args.in);
  const VulkanPanel& out = panel_of(*args.out);
  require_width(args.width, out, "linear_add");
  const PanelLayout layout = input_layout(state_, weight, in, args.width, "linear_add");
  const PanelLayout out_layout = state_.layout(args.width, weight.rows());
  const LinearConfig config = choose_linear(state_, weight, layout.tile);
  const bool quads = weight.rows() % config.rows == 0 && args.tap_stride % 4 == 0 && args.tap_offset % 4 == 0;
  uint32_t groups = 0;
  for (const WeightShard& shard : weight.shards) groups += group_count(shard, config);
  CommandList& list = this->list(flops_of(weight, args.width));
  const Kernel& kernel = linear_kernel(state_, weight_shader("linear_add", weight.type(), state_.texel_fetch), config,
                                       weight, layout.tile, quads);
  const uint32_t together = tiles_together(state_, layout);
  for (uint32_t t = 0; t < layout.tiles(); t += together) {
    for (const WeightShard& shard : weight.shards) {
      std::vector<Binding> bindings;
      bind_weight(bindings, shard, state_);
      bind_activations(bindings, in.values, in.texels, layout, t);
      bindings.push_back(words(*args.x, uint64_t{args.width} * weight.rows(), "The residual stream of linear_add"));
      bindings.emplace_back(out.values);
      bindings.emplace_back(out.squares);
      bindings.emplace_back(out.counters);
      bindings.push_back(words(*args.norm.weight, weight.rows(), "The norm weight of linear_add"));
      bindings.push_back(args.tap != nullptr
                             ? words(*args.tap,
                                     uint64_t{args.width - 1} * args.tap_stride + args.tap_offset + weight.rows(),
                                     "The tap of linear_add")
                             : Binding(state_.dummy));
      for (size_t i : {6u, 6u, 4u, 4u})
        bindings.push_back(bindings[bindings.size() - i]);  // x, out, norm, tap as quads
      const LinearAddPush push{shard.layout.rows,
                               weight.cols(),
                               t * layout.tile,
                               first_quad(layout, t),
                               shard.layout.first_row,
                               weight.rows(),
                               args.width,
                               out_layout.tile,
                               t,
                               groups,
                               out.partial_base(),
                               args.tap != nullptr ? args.tap_stride : 0,
                               args.tap_offset};
      list.bind(kernel, bindings, bytes_of(push));
      list.dispatch(together, group_count(shard, config));
    }
  }
  list.barrier();
}

void VulkanRecorder::linear_swiglu(const LinearSwigluArgs& args) {
  const VulkanWeight& weight = weight_of(*args.weight);
  const VulkanPanel& in = panel_of(*args.in);
  const VulkanPanel& out = panel_of(*args.out);
  require_width(args.width, out, "linear_swiglu");
  if (weight.rows() % 2 != 0) {
    throw bad_input("linear_swiglu needs a paired weight; this one has " + std::to_string(weight.rows()) + " rows.");
  }
  const PanelLayout layout = input_layout(state_, weight, in, args.width, "linear_swiglu");
  const PanelLayout out_layout = state_.layout(args.width, weight.rows() / 2);
  const LinearConfig config = choose_linear(state_, weight, layout.tile);
  const bool quads = weight.rows() % config.rows == 0;
  CommandList& list = this->list(flops_of(weight, args.width));
  const Kernel& kernel = linear_kernel(state_, weight_shader("linear_swiglu", weight.type(), state_.texel_fetch),
                                       config, weight, layout.tile, quads);
  const uint32_t together = tiles_together(state_, layout);
  for (uint32_t t = 0; t < layout.tiles(); t += together) {
    for (const WeightShard& shard : weight.shards) {
      std::vector<Binding> bindings;
      bind_weight(bindings, shard, state_);
      bind_activations(bindings, in.values, in.texels, layout, t);
      bindings.push_back(words(in.squares, args.width, "The sums of squares of linear_swiglu"));
      bindings.emplace_back(out.values);
      bindings.push_back(bindings.back());
      const LinearSwigluPush push{shard.layout.rows,      weight.cols(), t * layout.tile, first_quad(layout, t),
                                  shard.layout.first_row, weight.rows(), args.width,      out_layout.tile,
                                  args.norm_eps};
      list.bind(kernel, bindings, bytes_of(push));
      list.dispatch(together, group_count(shard, config));
    }
  }
  list.barrier();
}

}  // namespace canopy::vk

// Heads: rotation and K/V store, attention, and moves between slots.

#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

const VulkanKv& checked_kv(const KvLayer& layer, const KvShape& shape, const char* op) {
  const VulkanKv& kv = kv_of(layer);
  if (kv.shape.slots != shape.slots || kv.shape.kv_heads != shape.kv_heads || kv.shape.head_dim != shape.head_dim ||
      kv.shape.type != shape.type) {
    throw bad_input(std::string(op) + " is given a K/V layer of another shape than its arguments say.");
  }
  return kv;
}

namespace {

uint32_t slot_words(const KvShape& shape) {
  return shape.kv_heads * shape.head_dim / (shape.type == CacheType::f16 ? 2 : 1);
}

}  // namespace

Binding queries_of(const RopeStoreArgs& args, const Buffer& none) {
  if (args.heads == 0) return Binding(none);
  return words(*args.q, uint64_t{args.width} * args.heads * args.shape.head_dim, "The queries of a pass");
}

template <>
void VulkanRecorder::record_op(const RopeStoreArgs& args) {
  const VulkanKv& kv = checked_kv(*args.cache, args.shape, "rope_store");
  const uint32_t dim = args.shape.head_dim;
  const uint32_t all_heads = args.heads + 2 * args.shape.kv_heads;
  struct Push {
    uint32_t heads, kv_heads;
    float norm_eps;
  };
  const KernelOptions options{{{0, state_.software ? 8u : 32u},
                               {1, dim},
                               {2, args.interleaved ? 1u : 0u},
                               {3, args.q_norm != nullptr ? 1u : 0u},
                               {4, args.k_norm != nullptr ? 1u : 0u}},
                              0};
  CommandList& list = this->list(0);
  const auto norm = [&](const canopy::Buffer* weight) {
    return weight != nullptr ? words(*weight, dim, "The head norm of rope_store") : Binding(state_.dummy);
  };
  std::vector<Binding> bindings = {words(*args.qkv, uint64_t{args.width} * all_heads * dim, "The input of rope_store"),
                                   words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of rope_store"),
                                   whole(*args.rotation),
                                   norm(args.q_norm),
                                   norm(args.k_norm),
                                   queries_of(args, state_.dummy),
                                   kv.keys,
                                   kv.values};
  const BufferView& qkv = static_cast<const VulkanBuffer&>(*args.qkv).texels;
  const BufferView& rotation = static_cast<const VulkanBuffer&>(*args.rotation).texels;
  const bool texel = qkv && rotation && args.interleaved && dim % 4 == 0;
  if (texel) bindings.insert(bindings.end(), {Binding(qkv), Binding(rotation), bindings[5], bindings[6], bindings[7]});
  list.bind(state_.context->kernel(cache_shader("rope_store", args.shape.type, texel), options), bindings,
            bytes_of(Push{args.heads, args.shape.kv_heads, args.norm_eps}));
  list.dispatch(all_heads, args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const AttentionArgs& args) {
  const VulkanKv& kv = checked_kv(*args.cache, args.shape, "attention");
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "attention");
  const uint32_t q_width = args.heads * args.shape.head_dim;
  const uint32_t rows_per_binding = kUniformFloats / q_width;
  if (rows_per_binding == 0 || args.heads % args.shape.kv_heads != 0) {
    throw bad_input("attention has " + std::to_string(args.heads) + " heads of " + std::to_string(args.shape.head_dim) +
                    " and " + std::to_string(args.shape.kv_heads) + " K/V heads; at most " +
                    std::to_string(kUniformFloats) + " elements in all, and heads a multiple of the K/V heads.");
  }
  struct Push {
    uint32_t first_row, rows_per_binding, kv_heads, tile;
    float scale;
  };
  const bool texel = kv.key_texels && static_cast<const VulkanBuffer&>(*args.q).texels;
  const KernelOptions options{{{0, state_.attention_lanes},
                               {1, args.shape.head_dim},
                               {2, args.heads / args.shape.kv_heads},
                               {3, args.mask == AttentionMask::block ? 1u : 0u},
                               {4, args.window}},
                              0};
  const Kernel& kernel =
      state_.context->kernel(cache_shader(texel ? "attention_shared" : "attention", args.shape.type, false), options);
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  const uint64_t q_bytes = uint64_t{args.width} * q_width * 4;
  const VulkanBuffer& q_buffer = static_cast<const VulkanBuffer&>(*args.q);
  // Rows whose queries one dispatch can see.
  const uint32_t rows_per_dispatch = texel ? args.width : rows_per_binding * kUniformBindings;
  for (uint32_t first = 0; first < args.width; first += rows_per_dispatch) {
    std::vector<Binding> bindings;
    if (texel) {
      bindings.emplace_back(kv.key_texels);
      bindings.emplace_back(kv.value_texels);
    } else {
      bindings.emplace_back(kv.keys);
      bindings.emplace_back(kv.values);
    }
    if (texel) {
      bindings.emplace_back(q_buffer.texels);
    } else {
      for (uint32_t b = 0; b < kUniformBindings; ++b) {
        const uint64_t wanted = uint64_t{first + b * rows_per_binding} * q_width * 4;
        const uint64_t offset = wanted < q_bytes ? wanted : 0;
        bindings.emplace_back(q_buffer.memory(), q_buffer.offset() + offset,
                              std::min<uint64_t>(kUniformBytes, q_buffer.bound_bytes() - offset));
      }
    }
    bindings.push_back(words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of attention"));
    bindings.push_back(whole(*args.ancestors));
    bindings.emplace_back(out.values);
    const Push push{first, rows_per_binding, args.shape.kv_heads, state_.layout(args.width, q_width).tile, args.scale};
    list.bind(kernel, bindings, bytes_of(push));
    list.dispatch(args.shape.kv_heads, std::min(rows_per_dispatch, args.width - first));
  }
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const KvMoveArgs& args) {
  const VulkanKv& kv = checked_kv(*args.cache, args.shape, "kv_move");
  if (args.count > kMaxKvMoves) {
    throw bad_input("kv_move is asked for " + std::to_string(args.count) + " moves; at most " +
                    std::to_string(kMaxKvMoves) + " are possible.");
  }
  struct Push {
    uint32_t count, slot_words;
  };
  const Push push{args.count, slot_words(args.shape)};
  CommandList& list = this->list(0);
  for (const Buffer* cache : {&kv.keys, &kv.values}) {
    list.bind(state_.context->kernel("kv_move"),
              {words(*args.moves, uint64_t{args.count} * 2, "The moves of kv_move"), Binding(*cache)}, push);
    list.dispatch((push.slot_words + 31) / 32);
  }
  list.barrier();
}

}  // namespace canopy::vk

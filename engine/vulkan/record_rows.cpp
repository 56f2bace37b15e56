// Embedding, choice of rows, and what is read off the logits.

#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/recorder.h"
#include "engine/vulkan/top_k.h"

namespace canopy::vk {

namespace {

constexpr uint32_t kArgmaxBlock = 1024;  // shaders/argmax.comp

}  // namespace

template <>
void VulkanRecorder::record_op(const EmbedArgs& args) {
  const VulkanWeight& table = weight_of(*args.table);
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "embed");
  CommandList& list = this->list(0);
  const Kernel& kernel =
      state_.context->kernel(weight_shader("embed", table.type()), {{{0, args.scale != 1 ? 1u : 0u}}, 0});
  struct Push {
    uint32_t rows, cols, row_offset, square_blocks;
    float scale;
  };
  for (const WeightShard& shard : table.shards) {
    std::vector<Binding> bindings;
    bind_weight(bindings, shard, state_);
    bindings.push_back(words(*args.rows, uint64_t{args.width} * sizeof(Row) / 4, "The rows of embed"));
    bindings.push_back(words(*args.x, uint64_t{args.width} * table.cols(), "The residual stream of embed"));
    bindings.emplace_back(out.values);
    bindings.push_back(squares_of(out, args.width, "The sums of squares of embed"));
    bindings.push_back(words(*args.norm.weight, table.cols(), "The norm weight of embed"));
    const Push push{shard.layout.rows, table.cols(), shard.layout.first_row, out.square_blocks, args.scale};
    list.bind(kernel, bindings, bytes_of(push));
    list.dispatch(args.width);
  }
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const NormRowsArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "norm_rows");
  const uint32_t cols = out.cols();
  const bool has_norm = args.norm.weight != nullptr;
  struct Push {
    uint32_t cols, square_blocks;
  };
  CommandList& list = this->list(0);
  list.bind(
      state_.context->kernel(cols % 4 == 0 ? "norm_rows_quads" : "norm_rows_words", {{{0, has_norm ? 1u : 0u}}, 0}),
      {squares_of(out, args.width, "The sums of squares of norm_rows"),
       words(*args.in, uint64_t{args.width} * cols, "The input of norm_rows"),
       has_norm ? words(*args.norm.weight, cols, "The norm weight of norm_rows") : Binding(state_.dummy), out.values},
      Push{cols, out.square_blocks});
  list.dispatch(args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const NormAddArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "norm_add");
  const uint32_t cols = out.cols(), aux_stride = args.aux != nullptr ? args.aux_stride : 0;
  const uint64_t elements = uint64_t{args.width} * cols;
  if (args.in == args.x) throw bad_input("norm_add has one buffer as input and residual stream; they must be two.");
  struct Push {
    uint32_t cols, square_blocks;
    float eps;
    uint32_t aux_stride, aux_offset;
    float aux_scale;
  };
  const bool quads = cols % 4 == 0 && aux_stride % 4 == 0 && args.aux_offset % 4 == 0;
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * aux_stride + args.aux_offset + cols,
                                  "The aux hidden states of norm_add")
                          : Binding(state_.dummy);
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel(quads ? "norm_add_quads" : "norm_add_words"),
            {squares_of(out, args.width, "The sums of squares of norm_add"),
             words(*args.in, elements, "The input of norm_add"), words(*args.weight, cols, "The weight of norm_add"),
             words(*args.x, elements, "The residual stream of norm_add"),
             words(*args.norm.weight, cols, "The norm weight of norm_add"), out.values, aux},
            Push{cols, out.square_blocks, args.eps, aux_stride, args.aux_offset, args.aux_scale});
  list.dispatch(args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const CapLogitsArgs& args) {
  if (!(args.cap > 0)) {
    throw bad_input("The cap of cap_logits is " + std::to_string(args.cap) + "; a positive number is allowed.");
  }
  struct Push {
    uint32_t vocab;
    float cap;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("cap_logits"),
            {words(*args.logits, uint64_t{args.width} * args.vocab, "The logits of cap_logits")},
            Push{args.vocab, args.cap});
  list.dispatch(workgroups(args.vocab, 64), args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const AddBiasArgs& args) {
  struct Push {
    uint32_t cols;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("add_bias"),
            {words(*args.bias, args.cols, "The bias of add_bias"),
             words(*args.x, uint64_t{args.width} * args.cols, "The rows of add_bias")},
            Push{args.cols});
  list.dispatch(workgroups(args.cols, 64), args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const CopyRowsArgs& args) {
  if (args.in == args.out) throw bad_input("copy_rows has one buffer as input and output; they must be two.");
  if (args.count == 0 || args.cols == 0) return;
  const bool quads = args.cols % 4 == 0;
  struct Push {
    uint32_t row_elements;
  };
  const Push push{quads ? args.cols / 4 : args.cols};
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel(quads ? "copy_rows_quads" : "copy_rows_words"),
            {whole(*args.in), words(*args.moves, uint64_t{args.count} * 2, "The moves of copy_rows"), whole(*args.out)},
            push);
  list.dispatch(workgroups(push.row_elements, 64), args.count);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const PickArgs& args) {
  if (args.count == 0 || args.rows == 0) return;
  struct Push {
    uint32_t count, first_row, rows, vocab;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("pick"),
            {words(*args.logits, uint64_t{args.rows} * args.vocab, "The logits of pick"),
             words(*args.pairs, uint64_t{args.count} * 2, "The pairs of pick"),
             words(*args.out, args.count, "The output of pick")},
            Push{args.count, args.first_row, args.rows, args.vocab});
  list.dispatch(workgroups(args.count, 64));
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const SelectArgs& args) {
  const VulkanActivations& in = activations_of(*args.in);
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, in, "select");
  require_width(args.count, out, "select");
  struct Push {
    uint32_t cols, first, square_blocks;
  };
  const Push push{in.cols(), args.first, in.square_blocks};
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("select"),
            {in.values, squares_of(in, args.width, "The sums of squares of select"),
             words(*args.index, uint64_t{args.first} + args.count, "The index of select"), out.values,
             squares_of(out, args.count, "The sums of squares of select")},
            push);
  list.dispatch(workgroups(in.cols(), 64), args.count);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const ArgmaxArgs& args) {
  const uint32_t blocks = workgroups(args.vocab, kArgmaxBlock);
  Buffer& candidates = scratch(uint64_t{args.width} * blocks * 8, "argmax candidates");
  const KernelOptions options{{{0, state_.attention_lanes}}, 0};
  struct Push {
    uint32_t count, blocks, first_row;
  };
  CommandList& list = this->list(0);
  const Binding logits = words(*args.logits, uint64_t{args.width} * args.vocab, "The logits of argmax");
  list.bind(state_.context->kernel("argmax_part", options), {logits, candidates}, Push{args.vocab, blocks, 0});
  list.dispatch(blocks, args.width);
  list.barrier();
  list.bind(state_.context->kernel("argmax_final", options),
            {candidates, words(*args.out, (uint64_t{args.first_out} + args.width) * 2, "The output of argmax")},
            Push{blocks, 1, args.first_out});
  list.dispatch(1, args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const TopKArgs& args) {
  if (args.k == 0 || args.k > kMaxTopK || args.k > args.vocab) {
    throw bad_input("top_k is asked for " + std::to_string(args.k) + " of " + std::to_string(args.vocab) +
                    " logits; allowed: 1 to " + std::to_string(std::min(kMaxTopK, args.vocab)) + ".");
  }
  Buffer& space = scratch(top_k_scratch_bytes(args.width, args.vocab, args.k), "top-k scratch");
  TopKBindings bindings{whole(*args.logits), whole(*args.ids), whole(*args.values), whole(*args.log_sum_exp), space};
  bindings.width = args.width;
  bindings.vocab = args.vocab;
  bindings.k = args.k;
  bindings.first_out = args.first_out;
  bindings.multiplier = args.multiplier;
  bindings.softcap = args.softcap;
  CommandList& list = this->list(0);
  record_top_k(*state_.context, list, bindings);
  list.barrier();
}

}  // namespace canopy::vk

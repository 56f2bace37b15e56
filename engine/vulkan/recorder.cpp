#include "engine/vulkan/recorder.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/vulkan/logits.h"

namespace canopy::vk {

// Embedding, choice of rows, and what is read off the logits.

namespace {

constexpr uint32_t kArgmaxBlock = 1024;  // shaders/argmax.comp

}  // namespace

RowGroups::RowGroups(uint32_t rows, const Context& context) {
  const uint32_t most = std::ranges::min(context.limits().max_group_count);
  again = workgroups(rows, most);
  along = again == 0 ? 0 : workgroups(rows, again);
}

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
  const RowGroups groups(args.width, *state_.context);
  struct Push {
    uint32_t cols, square_blocks, width;
  };
  CommandList& list = this->list(0);
  list.bind(
      state_.context->kernel(cols % 4 == 0 ? "norm_rows_quads" : "norm_rows_words", {{{0, has_norm ? 1u : 0u}}, 0}),
      {squares_of(out, args.width, "The sums of squares of norm_rows"),
       words(*args.in, uint64_t{args.width} * cols, "The input of norm_rows"),
       has_norm ? words(*args.norm.weight, cols, "The norm weight of norm_rows") : Binding(state_.dummy), out.values},
      Push{cols, out.square_blocks, args.width});
  list.dispatch(groups.along, groups.again);
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
    float aux_scale, x_scale;
    uint32_t width;
  };
  const RowGroups groups(args.width, *state_.context);
  const bool quads = cols % 4 == 0 && aux_stride % 4 == 0 && args.aux_offset % 4 == 0;
  const Binding aux = args.aux != nullptr
                          ? words(*args.aux, uint64_t{args.width - 1} * aux_stride + args.aux_offset + cols,
                                  "The aux hidden states of norm_add")
                          : Binding(state_.dummy);
  CommandList& list = this->list(0);
  list.bind(
      state_.context->kernel(quads ? "norm_add_quads" : "norm_add_words"),
      {squares_of(out, args.width, "The sums of squares of norm_add"),
       words(*args.in, elements, "The input of norm_add"), words(*args.weight, cols, "The weight of norm_add"),
       words(*args.x, elements, "The residual stream of norm_add"),
       words(*args.norm.weight, cols, "The norm weight of norm_add"), out.values, aux},
      Push{cols, out.square_blocks, args.eps, aux_stride, args.aux_offset, args.aux_scale, args.x_scale, args.width});
  list.dispatch(groups.along, groups.again);
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
void VulkanRecorder::record_op(const ConvRowsArgs& args) {
  check_conv_rows(args);
  struct Push {
    uint32_t cols, taps, group, side;
  };
  const uint64_t elements = uint64_t{args.width} * args.cols;
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("conv_rows"),
            {words(*args.in, elements, "The input of conv_rows"),
             words(*args.base, uint64_t{2} * args.taps * args.cols, "The base kernels of conv_rows"),
             words(*args.kernel, uint64_t{args.width} * args.kernel_cols(), "The kernels of conv_rows"),
             words(*args.x, elements, "The rows of conv_rows")},
            Push{args.cols, args.taps, args.group, args.side});
  list.dispatch(workgroups(args.cols, 64), args.width);
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
    uint32_t row_elements, count;
  };
  const Push push{quads ? args.cols / 4 : args.cols, args.count};
  const RowGroups groups(args.count, *state_.context);
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel(quads ? "copy_rows_quads" : "copy_rows_words"),
            {whole(*args.in), words(*args.moves, uint64_t{args.count} * 2, "The moves of copy_rows"), whole(*args.out)},
            push);
  list.dispatch(workgroups(push.row_elements, 64), groups.along, groups.again);
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

// Recurrent layers: gated delta nets and scans, and what gates results.

namespace {

constexpr uint32_t kColumns = 32;  // of a state that a workgroup of delta_net has

void require_steps(uint32_t width, const DeltaShape& shape, const char* op) {
  check_delta_shape(shape, op);
  if (width == 0) throw bad_input(std::string(op) + " is asked for no steps; allowed: 1 or more.");
}

}  // namespace

template <>
void VulkanRecorder::record_op(const DeltaInputsArgs& args) {
  const DeltaShape& shape = args.shape;
  require_steps(args.width, shape, "delta_inputs");
  const uint64_t elements = uint64_t{args.rows} * shape.row_elements();
  const bool has_conv_bias = args.conv_bias != nullptr;
  struct Push {
    uint32_t row_elements, channels, key_heads, value_heads, key_dim, value_dim;
    float query_scale, eps;
  };
  const Push push{shape.row_elements(),
                  shape.channels(),
                  shape.key_heads,
                  shape.value_heads,
                  shape.key_dim,
                  shape.value_dim,
                  static_cast<float>(1 / std::sqrt(static_cast<double>(shape.key_dim))),
                  DeltaInputsArgs::kEps};
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  list.bind(state_.context->kernel("delta_inputs",
                                   {{{0, shape.taps}, {1, shape.corrects ? 1u : 0u}, {2, has_conv_bias ? 1u : 0u}}, 0}),
            {words(*args.in, elements, "The inputs of delta_inputs"),
             words(*args.steps, uint64_t{args.width} * 4, "The steps of delta_inputs"),
             words(*args.taps, uint64_t{shape.channels()} * shape.taps, "The taps of delta_inputs"),
             words(*args.bias, shape.value_heads, "The bias of delta_inputs"),
             words(*args.rate, shape.value_heads, "The rates of delta_inputs"), whole(*args.tails),
             words(*args.out, elements, "The output of delta_inputs"),
             has_conv_bias ? words(*args.conv_bias, shape.channels(), "The bias of the convolution of delta_inputs")
                           : Binding(state_.dummy)},
            push);
  list.dispatch(2 * shape.key_heads + shape.value_heads + 1, args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const DeltaNetArgs& args) {
  const DeltaShape& shape = args.shape;
  require_steps(args.width, shape, "delta_net");
  const bool reads = args.out != nullptr;
  if ((args.skip != nullptr) == shape.corrects) {
    throw bad_input("delta_net is asked for " + describe(shape) + ", with" + (shape.corrects ? "" : "out") +
                    " a skip; scans have one, delta nets none.");
  }
  const Binding in = words(*args.in, uint64_t{args.rows} * shape.row_elements(), "The inputs of delta_net");
  struct Push {
    uint32_t step_count, row_elements, key_heads, value_heads, value_dim, tiled;
  };
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  list.bind(state_.context->kernel("delta_net",
                                   {{{0, shape.key_dim}, {1, reads ? 1u : 0u}, {2, shape.corrects ? 1u : 0u}}, 0}),
            {in, in, words(*args.steps, uint64_t{args.width} * 4, "The steps of delta_net"), whole(*args.states),
             whole(*args.spare),
             reads ? words(*args.out, uint64_t{args.rows} * shape.values(), "The output of delta_net")
                   : Binding(state_.dummy),
             shape.corrects ? Binding(state_.dummy) : words(*args.skip, shape.value_heads, "The skip of delta_net")},
            Push{args.width, shape.row_elements(), shape.key_heads, shape.value_heads, shape.value_dim,
                 shape.tiled ? 1u : 0u});
  list.dispatch(workgroups(shape.value_dim, kColumns), shape.value_heads);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const ShortConvArgs& args) {
  check_short_conv(args);
  const bool reads = args.out != nullptr;
  if (reads) {
    require_width(args.out_rows(), activations_of(*args.out), "short_conv");
    if (args.out->cols() != args.cols) {
      throw bad_input("short_conv has " + std::to_string(args.cols) + " columns; its activations have " +
                      std::to_string(args.out->cols()) + ".");
    }
  }
  struct Push {
    uint32_t cols;
  };
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  list.bind(state_.context->kernel("short_conv", {{{0, args.taps}, {1, reads ? 1u : 0u}}, 0}),
            {words(*args.in, uint64_t{args.rows} * 3 * args.cols, "The inputs of short_conv"),
             words(*args.steps, uint64_t{args.width} * 4, "The steps of short_conv"),
             words(*args.kernel, uint64_t{args.cols} * args.taps, "The kernel of short_conv"), whole(*args.tails),
             reads ? activations_of(*args.out).values : Binding(state_.dummy)},
            Push{args.cols});
  list.dispatch(workgroups(args.cols, 64), args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const GatedNormArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "gated_norm");
  const uint32_t cols = args.heads * args.head_dim;
  if (cols != out.cols()) {
    throw bad_input("gated_norm has " + std::to_string(args.heads) + " heads of " + std::to_string(args.head_dim) +
                    " elements; its activations have " + std::to_string(out.cols()) + " columns.");
  }
  struct Push {
    uint32_t heads, head_dim;
    float eps;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("gated_norm", {{{0, args.gate_within ? 1u : 0u}}, 0}),
            {words(*args.in, uint64_t{args.width} * cols, "The input of gated_norm"),
             words(*args.gate, uint64_t{args.width} * cols, "The gate of gated_norm"),
             words(*args.weight, args.weights(), "The weight of gated_norm"), out.values},
            Push{args.heads, args.head_dim, args.eps});
  list.dispatch(args.heads, args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const SquareReluArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "square_relu");
  const uint32_t cols = out.cols();
  struct Push {
    uint32_t cols;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("square_relu"),
            {words(*args.in, uint64_t{args.width} * cols, "The rows of square_relu"), out.values}, Push{cols});
  list.dispatch(workgroups(cols, 64), args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const GateInputsArgs& args) {
  const VulkanActivations& out = activations_of(*args.out);
  require_width(args.width, out, "gate_inputs");
  const uint32_t cols = out.cols();
  if (uint64_t{args.offset} + cols > args.stride) {
    throw bad_input("gate_inputs takes elements " + std::to_string(args.offset) + " to " +
                    std::to_string(uint64_t{args.offset} + cols) + " of rows of " + std::to_string(args.stride) + ".");
  }
  struct Push {
    uint32_t cols, stride, offset;
    float scale;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("gate_inputs"),
            {words(*args.gate, uint64_t{args.width} * cols, "The gates of gate_inputs"),
             words(*args.inputs, uint64_t{args.width} * args.stride, "The inputs of gate_inputs"), out.values},
            Push{cols, args.stride, args.offset, args.scale});
  list.dispatch(workgroups(cols, 64), args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const GateArgs& args) {
  const VulkanActivations& x = activations_of(*args.x);
  require_width(args.width, x, "gate");
  struct Push {
    uint32_t cols;
  };
  CommandList& list = this->list(0);
  list.bind(state_.context->kernel("gate"),
            {words(*args.gate, uint64_t{args.width} * x.cols(), "The gate of gate"), x.values}, Push{x.cols()});
  list.dispatch(workgroups(x.cols(), 64), args.width);
  list.barrier();
}

namespace {

// A submission is cut when it is expected to take longer: watchdogs end a device that is silent for two seconds.
constexpr double kSecondsPerSubmission = 0.1;
constexpr uint32_t kLeastCounters = 4096;

}  // namespace

std::string weight_shader(const std::string& op, WeightType type) {
  // Q4_0 and Q5_0 are kept as Q4_1 and Q5_1 whose minimum is a multiple of the scale.
  static const char* const names[kWeightTypes] = {"f32",  "f16",  "bf16", "q8_0", "q4_1", "q4_1",   "q5_1",   "q5_1",
                                                  "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"};
  return op + "_" + names[static_cast<uint32_t>(type)];
}

std::string cache_shader(const std::string& op, CacheType type) {
  return op + "_" + to_string(type);
}

void require_width(uint32_t width, const canopy::Activations& activations, const char* op) {
  if (width == 0 || width > activations.max_width()) {
    throw bad_input(std::string(op) + " is asked for width " + std::to_string(width) + "; its activations hold 1 to " +
                    std::to_string(activations.max_width()) + " rows.");
  }
}

Binding whole(const canopy::Buffer& buffer) {
  const VulkanBuffer& own = buffer_of(buffer);
  return Binding(own.memory(), own.offset(), own.bound_bytes());
}

namespace {

Binding first_words(const Binding& all, uint64_t count, const char* what) {
  if (count * 4 > all.bytes) {
    throw bad_input(std::string(what) + " needs " + std::to_string(count * 4) + " bytes; the buffer has " +
                    std::to_string(all.bytes) + ".");
  }
  return Binding(*all.buffer, all.offset, count * 4);
}

}  // namespace

Binding words(const Buffer& buffer, uint64_t count, const char* what) {
  return first_words(Binding(buffer), count, what);
}

Binding words(const canopy::Buffer& buffer, uint64_t count, const char* what) {
  return first_words(whole(buffer), count, what);
}

Binding squares_of(const VulkanActivations& activations, uint32_t width, const char* what) {
  return words(activations.squares, uint64_t{width} * activations.square_blocks, what);
}

void bind_weight(std::vector<Binding>& bindings, const WeightShard& shard, const DeviceState& state) {
  bindings.emplace_back(shard.units);
  bindings.emplace_back(shard.scales ? shard.scales : state.dummy);
}

VulkanRecorder::VulkanRecorder(DeviceState& state) : state_(state), commands_(std::make_unique<VulkanCommands>()) {}

CommandList& VulkanRecorder::list(double flops) {
  if (!commands_) throw bad_input("A recorder is used after finish().");
  const double budget = state_.flops_per_second * kSecondsPerSubmission;
  if (commands_->lists.empty() || (flops_in_list_ > 0 && flops_in_list_ + flops > budget)) {
    finish_list();
    commands_->lists.emplace_back(*state_.context, CommandListOptions{"pass", 2});
    commands_->lists.back().timestamp("start");
    commands_->flops.push_back(0);
    flops_in_list_ = 0;
  }
  flops_in_list_ += flops;
  commands_->flops.back() = flops_in_list_;
  return commands_->lists.back();
}

Buffer& VulkanRecorder::scratch(uint64_t bytes, const char* name) {
  std::shared_ptr<Buffer>& shared = state_.scratch;
  if (!shared || shared->bytes() < bytes) {
    shared = std::make_shared<Buffer>(state_.context->create_buffer(BufferKind::device, bytes, name));
  }
  std::vector<std::shared_ptr<Buffer>>& own = commands_->scratch;
  if (own.empty() || own.back() != shared) own.push_back(shared);
  return *shared;
}

const Buffer& VulkanRecorder::sums(uint64_t bytes) {
  return bytes > 0 ? scratch(bytes, "partial sums") : state_.written_dummy;
}

const Buffer& VulkanRecorder::counters(uint32_t count) {
  if (count == 0) return state_.written_dummy;
  std::vector<Buffer>& all = commands_->counters;
  const uint64_t bytes = std::max<uint64_t>(count, kLeastCounters) * 4;
  if (!all.empty() && all.back().bytes() >= bytes) return all.back();
  Buffer& counters = all.emplace_back(state_.context->create_buffer(BufferKind::device, bytes, "counters"));
  CommandList clear(*state_.context, {"clear counters", 0});
  clear.fill(counters, 0, bytes, 0);
  state_.context->run(clear);
  return counters;
}

void VulkanRecorder::finish_list() {
  if (commands_->lists.empty()) return;
  commands_->lists.back().timestamp("end");
  commands_->lists.back().finish();
}

void VulkanRecorder::record(const Op& op) {
  std::visit([this](const auto& args) { record_op(args); }, op);
  if (!std::holds_alternative<ExpertSwigluArgs>(op)) grouped_.reset();
}

std::unique_ptr<VulkanCommands> VulkanRecorder::finish() {
  if (!commands_) throw bad_input("A recorder is used after finish().");
  finish_list();
  return std::move(commands_);
}

}  // namespace canopy::vk

// Recurrent layers: gated delta nets, and what gates results.

#include <cmath>
#include <string>

#include "engine/base/error.h"
#include "engine/vulkan/recorder.h"

namespace canopy::vk {

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
  list.bind(state_.context->kernel("delta_inputs", {{{0, shape.taps}}, 0}),
            {words(*args.in, elements, "The inputs of delta_inputs"),
             words(*args.steps, uint64_t{args.width} * 4, "The steps of delta_inputs"),
             words(*args.taps, uint64_t{shape.channels()} * shape.taps, "The taps of delta_inputs"),
             words(*args.bias, shape.value_heads, "The bias of delta_inputs"),
             words(*args.rate, shape.value_heads, "The rates of delta_inputs"), whole(*args.tails),
             words(*args.out, elements, "The output of delta_inputs")},
            push);
  list.dispatch(2 * shape.key_heads + shape.value_heads + 1, args.width);
  list.barrier();
}

template <>
void VulkanRecorder::record_op(const DeltaNetArgs& args) {
  const DeltaShape& shape = args.shape;
  require_steps(args.width, shape, "delta_net");
  const bool reads = args.out != nullptr;
  const Binding in = words(*args.in, uint64_t{args.rows} * shape.row_elements(), "The inputs of delta_net");
  struct Push {
    uint32_t step_count, row_elements, key_heads, value_heads, value_dim, tiled;
  };
  CommandList& list = this->list(static_cast<double>(args.price().flops));
  list.bind(state_.context->kernel("delta_net", {{{0, shape.key_dim}, {1, reads ? 1u : 0u}}, 0}),
            {in, in, words(*args.steps, uint64_t{args.width} * 4, "The steps of delta_net"), whole(*args.states),
             whole(*args.spare),
             reads ? words(*args.out, uint64_t{args.rows} * shape.values(), "The output of delta_net")
                   : Binding(state_.dummy)},
            Push{args.width, shape.row_elements(), shape.key_heads, shape.value_heads, shape.value_dim,
                 shape.tiled ? 1u : 0u});
  list.dispatch(workgroups(shape.value_dim, kColumns), shape.value_heads);
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
  list.bind(state_.context->kernel("gated_norm"),
            {words(*args.in, uint64_t{args.width} * cols, "The input of gated_norm"),
             words(*args.gate, uint64_t{args.width} * cols, "The gate of gated_norm"),
             words(*args.weight, args.head_dim, "The weight of gated_norm"), out.values},
            Push{args.heads, args.head_dim, args.eps});
  list.dispatch(args.heads, args.width);
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

}  // namespace canopy::vk
